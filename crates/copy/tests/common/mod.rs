//! Copies between databases of tests.

use kurabe_copy::engines;
use kurabe_copy::issue::Accepted;
use kurabe_copy::plan::{Plan, Wanted};
use kurabe_copy::run::{Copy, Event, TableDone, refusal};
use kurabe_copy::sql::Side;
use kurabe_core::Result;
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::target::TargetUrl;
use std::sync::atomic::AtomicBool;

/// The driver of a URL.
pub fn driver(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// A session of a database.
pub fn side(url: &str) -> Side {
    let parsed = TargetUrl::parse(url).unwrap();
    let session = driver(url).connect(&ConnectOptions::default()).unwrap();
    Side { session, engine: engines::of_scheme(&parsed.scheme).unwrap(), name: parsed.to_string() }
}

/// Executes statements.
pub fn run(url: &str, statements: &[&str]) {
    let mut side = side(url);
    for statement in statements {
        side.run(statement).unwrap();
    }
}

/// A copy of all tables, or its error; differences of these kinds are accepted.
pub fn copy(from: &str, to: &str, accept: &str) -> Result<(Plan, Vec<TableDone>)> {
    watched(from, to, accept, &AtomicBool::new(false), &mut |_| {})
}

/// A copy whose events are seen, and that stops if `stop` is set.
pub fn watched(
    from: &str,
    to: &str,
    accept: &str,
    stop: &AtomicBool,
    events: &mut dyn FnMut(Event<'_>),
) -> Result<(Plan, Vec<TableDone>)> {
    let accepted = Accepted::parse(accept.split(',').filter(|word| !word.is_empty()))?;
    let wanted = Wanted { tables: Vec::new(), accepted };
    let mut copy = Copy { source: side(from), target: side(to), stop, begun: false };
    let plan = copy.plan(&wanted)?;
    if let Some(error) = refusal(&plan, &wanted.accepted) {
        return Err(error);
    }
    let driver = driver(to);
    let mut namespace = driver.namespace()?;
    namespace.claim("copy")?;
    let done = copy.run(&plan, &mut *namespace, false, events)?;
    Ok((plan, done))
}
