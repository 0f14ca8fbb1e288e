//! Named figures of a trial, beside those that every trial has: what an engine or an experiment measures that others do
//! not. One list says what each name means; reports show whatever a trial carries.

use crate::observation::{Observation, ServerUse};
use serde::{Deserialize, Serialize};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// Things.
    Count,
    /// A part of something, from 0 to 1.
    Share,
}

/// A figure of one trial: where it says nothing else, the mean over its measured transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Its name, one of [`FIGURES`], or that of a transaction type of a custom workload; a file of another version may have
    /// others.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// How much of it.
    pub value: f64,
}

impl Figure {
    /// A figure by name, unit and value.
    pub fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self { name: name.into(), unit, value }
    }
}

/// What is known of a figure's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureInfo {
    /// The name.
    pub name: &'static str,
    /// What it is, a clause.
    pub about: &'static str,
}

/// Until a transaction had a connection of its own.
pub const CONNECT: &str = "connect";
/// The part of [`CONNECT`] that the way to the server took.
pub const REACH: &str = "reach";
/// The part of [`CONNECT`] that encryption took.
pub const TLS: &str = "TLS";
/// The part of [`CONNECT`] that it took to prove who we are.
pub const AUTHENTICATE: &str = "auth";
/// The part of [`CONNECT`] that the server took beside these.
pub const SET_UP: &str = "set-up";
/// To say goodbye.
pub const CLOSE: &str = "close";
/// Until the pool had a connection to give.
pub const WAIT: &str = "wait";
/// CPU time of the application between client and database, for each request.
pub const APPLICATION_CPU: &str = "application CPU";
/// CPU time of the database behind applications, for each request.
pub const DATABASE_CPU: &str = "database CPU";

/// The CPU time that each tier behind the client used for each of so many requests, where there are several: named as
/// the tier, with "CPU". Applications that are several have numbers.
pub fn of_tiers(observed: &Observation, requests: u64) -> Vec<Figure> {
    let figure = |tier: &crate::observation::TierUse| match &tier.used {
        ServerUse::Seen(seen) => {
            let each = seen.cpu_ns as f64 / requests.max(1) as f64;
            Some(Figure::new(format!("{} CPU", tier.name), Unit::Nanoseconds, each))
        }
        ServerUse::InClient | ServerUse::NotObserved(_) => None,
    };
    observed.tiers.iter().filter_map(figure).collect()
}

/// The part of a request of `webapp` that finds the user by name and password.
pub const LOG_IN: &str = "log in";
/// The part of a request of `webapp` that writes the log.
pub const LOG: &str = "write log";
/// The part of a request of `webapp` that changes the user; the mean over all requests, as for all parts.
pub const UPDATE: &str = "update";
/// The part of a request of `webapp` that searches the postal codes.
pub const SEARCH: &str = "search";

/// What a server held with all connections of a trial open.
pub const MEMORY: &str = "memory";
/// By how much that was more than just before they were opened.
pub const MEMORY_ADDED: &str = "added";
/// [`MEMORY_ADDED`] for each connection.
pub const MEMORY_EACH: &str = "each";
/// The part of [`MEMORY_ADDED`] that is no other process's, for each connection.
pub const PRIVATE_EACH: &str = "private each";
/// Processes of the server with all connections open.
pub const PROCESSES: &str = "processes";
/// How many of them came with the connections.
pub const PROCESSES_ADDED: &str = "processes added";
/// Threads of the server with all connections open.
pub const THREADS: &str = "threads";
/// How many of them came with the connections.
pub const THREADS_ADDED: &str = "threads added";

/// Clients that starved: the trial had ended for most others when they had their last answer.
pub const STARVED: &str = "clients starved";

/// The share of reads that the cache answered.
pub const HIT_RATIO: &str = "hit ratio";
/// The same as the cache itself counted it.
pub const HITS_TOLD: &str = "as told";
/// A read that the cache answered.
pub const HIT: &str = "hit";
/// A read that it did not.
pub const MISS: &str = "miss";
/// To change a record in the store.
pub const CHANGE: &str = "change";
/// To deal with the cache after that.
pub const AFTER_CHANGE: &str = "then cache";
/// Reads that gave an older version.
pub const STALE: &str = "stale";
/// The same as a share of all reads.
pub const STALE_SHARE: &str = "stale share";
/// Values that the cache threw out.
pub const EVICTIONS: &str = "evictions";
/// Copies that the cache refused to take.
pub const REFUSED: &str = "refused";
/// Values in the cache.
pub const CACHED: &str = "cached";

/// Figures that have a chart of their own, along the experiment's chart axis.
pub const CHARTED: [&str; 1] = [MEMORY];

/// Figures that a verdict states, where a run has them.
pub const SUMMARISED: [&str; 2] = [HIT_RATIO, STALE_SHARE];

/// All figures that this version knows, in the order in which they are shown.
pub static FIGURES: &[FigureInfo] = &[
    FigureInfo {
        name: STARVED,
        about: "clients whose last answer came later than twice the median of all clients' ends; throughput counts what \
                they had completed by then",
    },
    FigureInfo { name: CONNECT, about: "until a new connection was ready" },
    FigureInfo {
        name: REACH,
        about: "of that, to reach the server: its name looked up, and TCP's handshake or the Unix socket",
    },
    FigureInfo { name: TLS, about: "of that, to agree on encryption" },
    FigureInfo { name: AUTHENTICATE, about: "of that, to prove who we are" },
    FigureInfo {
        name: SET_UP,
        about: "of that, what the server took to have a session: a thread on MySQL and MariaDB, a process on PostgreSQL; \
                connections are split into parts where the client is Kurabe's own",
    },
    FigureInfo { name: CLOSE, about: "to say goodbye" },
    FigureInfo { name: APPLICATION_CPU, about: "CPU time of the application for each request" },
    FigureInfo {
        name: "application 1 CPU",
        about: "CPU time of the first application for each request of all",
    },
    FigureInfo { name: "application 2 CPU", about: "that of the second" },
    FigureInfo { name: DATABASE_CPU, about: "CPU time of the database behind for each request" },
    FigureInfo { name: LOG_IN, about: "of each request, to find the user by name and password" },
    FigureInfo { name: LOG, about: "of each request, to write the log" },
    FigureInfo { name: UPDATE, about: "of the mean request, to change the user, which one in 20 does" },
    FigureInfo {
        name: SEARCH,
        about: "of the mean request, to search the postal codes, which one in 10 does",
    },
    FigureInfo { name: WAIT, about: "until the pool had a connection to give" },
    FigureInfo {
        name: MEMORY,
        about: "resident memory of the server's processes with all connections open, a page that several share divided \
                among them (PSS); of the client's own where the database is in it; without pages of files, such as \
                programs and libraries, and what the kernel holds for sockets and page tables",
    },
    FigureInfo { name: MEMORY_ADDED, about: "by how much that was more than just before they were opened" },
    FigureInfo { name: MEMORY_EACH, about: "the same for each connection" },
    FigureInfo { name: PRIVATE_EACH, about: "of that, what no other process has" },
    FigureInfo { name: PROCESSES, about: "of the server, with all connections open" },
    FigureInfo { name: PROCESSES_ADDED, about: "how many of them came with the connections" },
    FigureInfo { name: THREADS, about: "of the server, with all connections open" },
    FigureInfo { name: THREADS_ADDED, about: "how many of them came with the connections" },
    FigureInfo { name: HIT_RATIO, about: "the share of reads that the cache answered" },
    FigureInfo { name: HITS_TOLD, about: "the same as the cache itself counted it" },
    FigureInfo { name: HIT, about: "mean time of a read that the cache answered" },
    FigureInfo {
        name: MISS,
        about: "mean time of a read that it did not: asked, the store read, the cache filled",
    },
    FigureInfo { name: CHANGE, about: "mean time to change a record in the store" },
    FigureInfo { name: AFTER_CHANGE, about: "and to remove or replace its copy in the cache" },
    FigureInfo {
        name: STALE,
        about: "reads in a trial that gave an older version than one whose write had been acknowledged when they began",
    },
    FigureInfo { name: STALE_SHARE, about: "the same as a share of all reads" },
    FigureInfo { name: EVICTIONS, about: "values that the cache threw out in a trial to make room" },
    FigureInfo { name: REFUSED, about: "copies that it refused to take, having no room at that moment" },
    FigureInfo { name: CACHED, about: "values in the cache at the end" },
];

/// What is known of a name.
pub fn about(name: &str) -> Option<&'static str> {
    FIGURES.iter().find(|figure| figure.name == name).map(|figure| figure.about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{ProcessUse, TierUse};

    #[test]
    fn tiers_that_were_seen_have_their_cpu_for_each_request() {
        let seen = |cpu_ns| ServerUse::Seen(Box::new(ProcessUse { cpu_ns, ..ProcessUse::default() }));
        let tier = |name: &str, used| TierUse { name: name.to_owned(), used };
        let mut observed = Observation::default();
        assert_eq!(of_tiers(&observed, 10), []);
        observed.tiers = vec![
            tier(TierUse::APPLICATION, seen(5_000)),
            tier("elsewhere", ServerUse::NotObserved("far away".to_owned())),
            tier(TierUse::DATABASE, seen(20_000)),
        ];
        let found = of_tiers(&observed, 10);
        let expected = [(APPLICATION_CPU, 500.0), (DATABASE_CPU, 2_000.0)];
        assert_eq!(found, expected.map(|(name, value)| Figure::new(name, Unit::Nanoseconds, value)));
    }
}
