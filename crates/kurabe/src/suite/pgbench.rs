//! pgbench's own options `-c -C -j -T -t -R -M` and `--max-tries` for `run pgbench`, as its manual defines them.

use super::Request;
use crate::options::parsed;
use crate::run_options::{PgbenchOptions, RunOptions};
use kurabe_core::custom::CustomWorkload;
use kurabe_core::load::{Arrivals, RATE};
use kurabe_core::threads::ClientThreads;
use kurabe_core::{Error, Result, units};

impl Request {
    /// Adds pgbench's own options to the request.
    ///
    /// # Errors
    /// [`Usage`](kurabe_core::ErrorKind::Usage) if a value is invalid, or if an option and its equivalent are given.
    pub(super) fn with_pgbench(mut self, options: &RunOptions) -> Result<Self> {
        let PgbenchOptions { client, jobs, time, transactions, rate_limit, protocol, .. } = &options.pgbench;
        // By their names in pgbench's manual, each with our option that it replaces.
        let replaced = [
            (client, "client", "clients"),
            (jobs, "jobs", "threads"),
            (time, "time", "duration"),
            (transactions, "transactions", "requests"),
            (rate_limit, "rate-limit", "rate"),
            (protocol, "protocol", "statement"),
        ];
        for (text, theirs, ours) in replaced {
            if text.is_some() && options.is_given(ours) {
                return Err(Error::usage(format!("pgbench's --{theirs} and --{ours} are the same"))
                    .hint(format!("leave out --{ours}")));
            }
        }
        let count = |name: &str, text: &Option<String>| parsed(name, text.as_ref(), units::parse_count);
        if let Some(clients) = count("client", client)? {
            self.axes.insert("clients".to_owned(), vec![clients.to_string()]);
        }
        if let Some(jobs) = jobs {
            self.threads = Some(ClientThreads::parse(jobs).map_err(|error| error.context("--jobs"))?);
        }
        if let Some(time) = parsed("time", time.as_ref(), units::parse_duration)? {
            self.duration = Some(time);
        }
        if let Some(each) = count("transactions", transactions)? {
            self.requests_of_each_client(each)?;
        }
        if let Some(rate) = rate_limit {
            self.axes.insert(RATE.name.to_owned(), vec![rate.clone()]);
            // "The rate is targeted by starting transactions along a Poisson-distributed schedule time line."
            self.arrivals = self.arrivals.or(Some(Arrivals::Poisson));
            // An open loop has other default clients, and pgbench's is one.
            self.axes.entry("clients".to_owned()).or_insert_with(|| vec!["1".to_owned()]);
        }
        if options.pgbench.connect {
            self.axes.insert("connection".to_owned(), vec!["per-request".to_owned()]);
        }
        let statement = match protocol.as_deref() {
            None => None,
            Some("prepared") => Some("once"),
            Some("extended") => Some("per-request"),
            Some(_) => Some("literal"),
        };
        if let Some(statement) = statement {
            self.axes.insert("statement".to_owned(), vec![statement.to_owned()]);
        }
        Ok(self)
    }

    /// Refuses, as pgbench does, tries without a limit in trials that nothing but a number of requests ends.
    pub(super) fn check_tries(&self) -> Result<()> {
        let is_unlimited =
            self.custom.as_ref().is_some_and(|custom| custom.max_tries == Some(CustomWorkload::UNLIMITED));
        let ends = self.requests.is_empty() || self.duration.is_some() || self.slo.is_some();
        if is_unlimited && !ends {
            return Err(Error::usage("--max-tries 0 has no limit, and nothing but a number of requests ends a trial")
                .hint("add a duration (-T 10, --duration 10s) or a limit of the latency (--slo 100ms), or a number of tries"));
        }
        Ok(())
    }

    /// Sets the requests of a trial from those of each client, as pgbench counts them.
    fn requests_of_each_client(&mut self, each: u64) -> Result<()> {
        let clients = match self.axes.get("clients").map(Vec::as_slice) {
            None => 1,
            Some([one]) => units::parse_count(one)?,
            Some(_) => {
                return Err(Error::usage(
                    "--transactions is a number for each client, and --clients has several values",
                )
                .hint("give the number of all clients: --requests"));
            }
        };
        let all = each.checked_mul(clients).filter(|all| *all > 0);
        let all = all.ok_or_else(|| Error::usage(format!("--transactions {each} is out of range")))?;
        let operations = self.find()?.info.operations.iter();
        self.requests = operations.map(|operation| (operation.name.to_owned(), all)).collect();
        Ok(())
    }
}
