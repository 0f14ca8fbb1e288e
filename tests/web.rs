//! The web tier: `kurabe app` before the tools that people put load on web servers with, before clients that behave
//! badly, and before a database that comes and goes.

pub(crate) mod common;
mod direct;
mod hostile;
mod outage;
mod stop;
mod tools;
mod via;
