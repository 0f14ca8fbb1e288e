//! E3, the cost of a connection.
//!
//! The read is one round trip in every case: otherwise the ratio would include the cost of preparing. For that, the
//! key is a literal in the text if the database has statements.

use crate::axes::{self, CLIENTS, reads};
use crate::point::{LENGTH, NEW, PointWorkload, READ, content};
use crate::prelude::*;
use crate::via::{Added, PageClient, PageSet, ReadRows, Rows, ViaWorkload, path};

/// Default number of rows. The read itself hardly matters here.
const RECORDS: u64 = 10_000;

static INFO: ExperimentInfo = ExperimentInfo {
    name: "connect",
    question: "What does a new connection cost, and what does a pool save?",
    about: "Gets a connection, reads one small row by its key, and returns the connection: one that the \
            client keeps, one of a pool that all clients share, or a new one for each request. With \
            Kurabe's native client, the cost of a new connection is split into reaching the server, TLS, \
            authentication and the server's set-up. To compare TLS, a Unix socket, a method of \
            authentication, a character set that is set by a statement, or another client, give the \
            target twice: up:postgres 'up:postgres?charset=statement'. Through a web tier (--via) each read \
            is a page, and the connections are those of the application to its database: kept or pooled, as \
            it was started, or a new one for the page. As in the published experiments (connection_cost_http.csv, connection_cost_loop.csv).",
    axes: &[
        AxisInfo::new(
            "connection",
            "where a request gets its connection",
            AxisKind::choice(&[
                ("kept", "each client keeps its own"),
                ("pool", "taken from a pool that all clients share, and returned"),
                ("per-request", "opened and closed for every request"),
            ]),
            &["kept", "pool", "per-request"],
        ),
        AxisInfo::new("pool", "connections of the pool", AxisKind::count(1, 100_000), &["4"]),
        AxisInfo { default: &["1", "8"], ..CLIENTS },
    ],
    operations: &[reads(READ, "get a connection, read one row by its key, return the connection", 5_000)],
    metrics: &[Metric::cost("connection", "time per read beyond that on a connection that is kept")],
    chart_axis: "clients",
    answer: Answer::Metrics,
    published: Some("connection_cost"),
};

pub(crate) static CONNECT: Experiment =
    Experiment { plan_via: Some(plan_via), ..Experiment::new(&INFO, &plan) };

fn plan(cell: &Cell, dataset: &Dataset) -> Result<PlannedCell> {
    let dataset = Dataset { records: dataset.records.or(Some(RECORDS)), ..dataset.clone() };
    let mut policy = axes::policy(cell)?;
    let pooled = cell.word("connection")? == "pool";
    if pooled {
        policy.connections = Connections::Pool(cell.number("pool")? as usize);
    }
    let ignores = if pooled { &[][..] } else { &["pool"] };
    let planned = PointWorkload::plan_reads("connect", Bind::InOne, policy, &dataset);
    let connects_anew = Some(NEW);
    let pages = planned.pages.map(|pages| ServedPages { names: &[READ, NEW], connects_anew, ..pages });
    Ok(PlannedCell { ignores, pages, ..planned })
}

fn plan_via(cell: &Cell) -> Result<PlannedCell> {
    // Clients keep their connections to the application, so that nothing else differs.
    let policy = LoopPolicy { connections: Connections::Kept, ..axes::policy(cell)? };
    let ignores = if cell.word("connection")? == "pool" { &[][..] } else { &["pool"] };
    let (page, held) = page(cell)?;
    let mut planned = ViaWorkload::plan(&INFO, policy, ConnectPages { page });
    planned.demand.settings.extend(held);
    Ok(PlannedCell { ignores, stored_bytes: Some(LENGTH as u64), ..planned })
}

/// The page that reads, and the setting that the application must have if the page itself does not select it.
fn page(cell: &Cell) -> Result<(&'static str, Option<NeededSetting>)> {
    let held = |value: String, options: &str| NeededSetting {
        name: "connection".to_owned(),
        value,
        remedy: format!("start it with {options}, or use a stack's variant that does so"),
    };
    Ok(match cell.word("connection")? {
        "per-request" => (NEW, None),
        "pool" => {
            let size = cell.number("pool")?;
            (READ, Some(held(format!("pool of {size}"), &format!("--connection pool --pool {size}"))))
        }
        _ => (READ, Some(held("kept".to_owned(), "--connection kept"))),
    })
}

/// `connect` through an application: each page makes one read. The axis varies the application's connections to its
/// database.
struct ConnectPages {
    page: &'static str,
}

impl PageSet for ConnectPages {
    type Data = Rows;
    fn data(&self, session: &mut dyn Session) -> Result<Rows> {
        Rows::of(session, &INFO)
    }

    fn client(&self, _operation: &str, client: Client, data: Arc<Rows>) -> Result<Box<dyn PageClient>> {
        let page = path(&INFO, self.page);
        Ok(Box::new(ReadRows::new(page, data.records, client, content(data.seed))))
    }

    /// No operation writes.
    fn verify(&self, _: &mut dyn Session, _: &Rows, _: &[ClientSummary], _: &Added) -> Result<Verification> {
        Ok(Verification::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(connection: &str) -> Cell {
        INFO.baseline(&[("connection", connection), ("pool", "7"), ("clients", "100")]).unwrap()
    }

    #[test]
    fn each_connection_mode_has_its_number_of_connections() {
        let ways = [
            ("kept", Connections::Kept, 102),
            ("pool", Connections::Pool(7), 9),
            ("per-request", Connections::PerRequest, 102),
        ];
        for (word, connections, open) in ways {
            let dataset = Dataset { seed: 1, records: None, slot: 0 };
            let planned = plan(&cell(word), &dataset).unwrap();
            assert_eq!((planned.policy.connections, planned.connections()), (connections, open), "{word}");
            assert_eq!(planned.ignores.is_empty(), word == "pool", "{word}");
            // A database without statements has connections too.
            assert!(planned.demand.capabilities.is_empty());
        }
    }

    #[test]
    fn page_requires_matching_connection_setting() {
        let needs = |connection| page(&cell(connection)).unwrap().1;
        assert_eq!(needs("per-request"), None);
        assert_eq!(needs("kept").unwrap().value, "kept");
        let pool = needs("pool").unwrap();
        assert_eq!(pool.value, "pool of 7");
        assert!(pool.remedy.contains("--connection pool --pool 7"), "{pool:?}");
    }
}
