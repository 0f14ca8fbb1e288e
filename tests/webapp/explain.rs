//! Every search uses an index, as the engines report.

use crate::support::with;
use kurabe_core::driver::{ConnectOptions, Session};
use kurabe_core::experiment::Dataset;
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_testbed::testing;
use std::sync::Arc;

/// All rows of a statement, one per line.
fn rows(session: &mut dyn Session, sql: &str) -> String {
    let text = RawText { engine: None, pieces: vec![RawPiece::Text(sql.to_owned())] };
    let statement =
        RawStatement { place: "a test".into(), texts: vec![text], parameters: 0, collection: None };
    let prepared = session.prepare(&Operation::Raw { statement: Arc::new(statement) }).unwrap();
    let mut reply = Reply::new();
    session.execute(&prepared, &[], &mut reply).unwrap();
    let mut lines = String::new();
    for row in 0..reply.rows() {
        for field in 0..reply.width() {
            match reply.field(row, field).unwrap() {
                Value::Bytes(bytes) => lines += &String::from_utf8_lossy(bytes),
                Value::Int(n) => lines += &n.to_string(),
                _ => {}
            }
            lines.push(' ');
        }
        lines.push('\n');
    }
    lines
}

/// The statement that explains a plan, and how the engine reports an index search.
struct Asked {
    quote: char,
    gather: &'static str,
    explain: &'static str,
    /// One of these must be in the plan of the log-in.
    log_in: &'static [&'static str],
    /// One of these must be in the plan of the search by prefix.
    search: &'static [&'static str],
    /// None of these may be in either.
    never: &'static [&'static str],
}

const SQLITE: Asked = Asked {
    quote: '"',
    gather: "ANALYZE",
    explain: "EXPLAIN QUERY PLAN",
    log_in: &["USING INDEX kurabe_0_webapp_users_i1 (name=? AND password=?)"],
    search: &["USING INDEX sqlite_autoindex_kurabe_0_webapp_codes_1 (code>? AND code<?)"],
    never: &["SCAN", "TEMP B-TREE"],
};
const MYSQL: Asked = Asked {
    quote: '`',
    gather: "ANALYZE TABLE kurabe_0_webapp_users, kurabe_0_webapp_codes",
    explain: "EXPLAIN",
    log_in: &[
        "ref kurabe_0_webapp_users_i1 kurabe_0_webapp_users_i1",
        "Index lookup on kurabe_0_webapp_users using kurabe_0_webapp_users_i1",
    ],
    search: &["range PRIMARY PRIMARY", "Index range scan on kurabe_0_webapp_codes using PRIMARY"],
    // MyISAM sorts the one row of a log-in, because its indexes do not contain the key.
    never: &[" ALL ", "Table scan"],
};
const POSTGRES: Asked = Asked {
    quote: '"',
    gather: "ANALYZE",
    explain: "EXPLAIN",
    log_in: &["Index Scan using kurabe_0_webapp_users_i1"],
    search: &["Index Scan using kurabe_0_webapp_codes_pkey"],
    never: &["Seq Scan"],
};

fn uses_indexes(url: &str, asked: &Asked) {
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
    let experiment = kurabe_experiments::registry::find("webapp").unwrap();
    let cell = experiment.info.baseline(&[]).unwrap();
    let dataset = Dataset { seed: 1, records: Some(5_000), slot: 0 };
    let workload = (experiment.plan)(&cell, &dataset).unwrap().workload().unwrap();
    let mut namespace = driver.namespace().unwrap();
    let mut session = driver.connect(&ConnectOptions::default()).unwrap();
    workload.load(&mut *namespace, &mut *session).unwrap();
    rows(&mut *session, asked.gather);
    // As the dialect writes them (crates/drivers/tests/golden).
    let log_in = "SELECT 'id', 'name', 'email' FROM 'kurabe_0_webapp_users' WHERE 'name' = ~sato1~ AND 'password' = ~0~ ORDER BY 'id'";
    let search = "SELECT 'code', 'town' FROM 'kurabe_0_webapp_codes' WHERE 'code' >= ~10000~ AND 'code' < ~10001~ \
                  ORDER BY 'code', 'number'";
    for (sql, wanted) in [(log_in, asked.log_in), (search, asked.search)] {
        let sql = sql.replace('\'', &asked.quote.to_string()).replace('~', "'");
        let plan = rows(&mut *session, &format!("{} {sql}", asked.explain));
        assert!(wanted.iter().any(|part| plan.contains(part)), "{url}: {sql}\n{plan}");
        assert!(!asked.never.iter().any(|part| plan.contains(part)), "{url}: {sql}\n{plan}");
    }
    for name in namespace.list().unwrap() {
        namespace.remove(&name).unwrap();
    }
    namespace.finish().unwrap();
}

#[test]
fn every_search_uses_an_index() {
    uses_indexes("sqlite:", &SQLITE);
    for (engine, asked) in [("mysql", &MYSQL), ("mariadb", &MYSQL), ("postgres", &POSTGRES)] {
        let Some(server) = testing::server(engine) else { continue };
        uses_indexes(server.url(), asked);
        if engine == "mysql" {
            uses_indexes(&with(server.url(), "engine=MyISAM"), asked);
        }
    }
}
