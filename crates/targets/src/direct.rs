//! A target's driver, with what its server says of itself.

use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::facts::ServerFacts;
use kurabe_core::observation::Endpoint;
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::Reply;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::prepare::target::Target;
use std::time::{Duration, Instant};

/// The null target, on which the tool's own overhead is measured.
///
/// # Errors
/// If this program was built without it.
pub fn null() -> Result<Target> {
    let (driver, facts, skip_reason) = open_one(&TargetUrl::parse("null:")?, None)?;
    Ok(Target { skip_reason, ..Target::new("null", driver, facts) })
}

/// A driver, the server's facts, and the reason if it cannot provide the durability class.
pub type OpenedOne = (Box<dyn Driver>, ServerFacts, Option<String>);

/// Opens a target that is not a throwaway server.
///
/// # Errors
/// If it cannot be used, or reports another durability class than was set.
pub fn open_one(url: &TargetUrl, durability: Option<DurabilityClass>) -> Result<OpenedOne> {
    let mut driver = kurabe_drivers::registry::open(url)?;
    let skip_reason = match durability.map(|class| driver.require_durability(class)) {
        None | Some(Ok(())) => None,
        Some(Err(error)) if error.kind() == ErrorKind::Unsupported => Some(error.to_string()),
        Some(Err(error)) => return Err(error),
    };
    let began = Instant::now();
    let mut facts = driver.describe()?.printable();
    if began.elapsed() > SLOW_DESCRIPTION {
        facts.round_trip_ns =
            times(&*driver).1.filter(|time| *time >= LONG).map(|time| time.as_nanos() as u64);
    }
    if let Some(class) = durability
        && skip_reason.is_none()
        && facts.durability != Some(class)
    {
        let found = facts.durability.map_or("unknown", DurabilityClass::name);
        let why = format!("the durability class should be '{class}', but the server reports '{found}'");
        return Err(Error::new(ErrorKind::Server, why));
    }
    Ok((driver, facts, skip_reason))
}

/// A server that describes itself faster is not far: that takes a dozen round trips.
const SLOW_DESCRIPTION: Duration = Duration::from_millis(50);

/// A round trip from which on waiting for it dominates the load of data.
const LONG: Duration = Duration::from_millis(5);

/// A target with the times of a connection and of the smallest request, unless it is a throwaway server that is not started; `start`: how
/// long its throwaway server took to start.
pub(crate) fn with_times(target: Target, start: Option<Duration>) -> Target {
    let (connect, round_trip) = match target.facts.round_trip_ns {
        Some(far) => (None, Some(Duration::from_nanos(far))),
        None if target.is_described() => times(&*target.driver),
        None => (None, None),
    };
    Target { start, connect, round_trip, ..target }
}

/// The number of requests of which the median counts.
const PINGS: usize = 11;

/// How long a connection takes to open, and the median of a few round trips; `None` if the database has none, is no server, or
/// does not answer.
fn times(driver: &dyn Driver) -> (Option<Duration>, Option<Duration>) {
    // A session of a database in process may make or change its file.
    if driver.endpoint() == Endpoint::InProcess || driver.capabilities().is_application {
        return (None, None);
    }
    let began = Instant::now();
    let Ok(mut session) = driver.connect(&ConnectOptions::default()) else { return (None, None) };
    let connect = began.elapsed();
    let round_trip = session.prepare(&Operation::Ping).and_then(|ping| {
        let mut reply = Reply::new();
        let mut times = [Duration::ZERO; PINGS];
        for time in &mut times {
            let began = Instant::now();
            session.execute(&ping, &[], &mut reply)?;
            *time = began.elapsed();
        }
        times.sort_unstable();
        Ok(times[PINGS / 2])
    });
    let _ = session.close();
    (Some(connect), round_trip.ok())
}

/// A throwaway server's driver without the server, of which nothing is known but its engine.
pub(crate) fn without_server(url: &TargetUrl) -> Result<OpenedOne> {
    let driver = kurabe_drivers::registry::open(url)?;
    let engine = kurabe_drivers::registry::find(&url.scheme).map_or("", |info| info.engine).to_owned();
    Ok((driver, ServerFacts { engine, ..ServerFacts::default() }, None))
}
