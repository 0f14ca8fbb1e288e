//! The web tier: `kurabe up app` with common load generators, with misbehaving clients, and with a database that stops
//! and returns.

pub(crate) mod common;
mod hostile;
mod outage;
mod stop;
mod tools;
mod via;
