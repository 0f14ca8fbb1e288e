//! What tests of several drivers need.

use kurabe_core::Result;
use kurabe_core::driver::{Driver, Session};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};

pub(crate) fn open(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// Prepares, executes and releases.
pub(crate) fn once(
    session: &mut dyn Session,
    operation: &Operation,
    parameters: &[Value<'_>],
) -> Result<Reply> {
    let mut reply = Reply::new();
    let prepared = session.prepare(operation)?;
    let result = session.execute(&prepared, parameters, &mut reply);
    session.release(prepared)?;
    result.map(|()| reply)
}
