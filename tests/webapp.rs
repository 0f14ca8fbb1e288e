//! The web application: on databases, through one application process and through two before one database.

#![allow(clippy::unwrap_used, clippy::panic)]

mod explain;
pub(crate) mod held;
mod plain;
mod soak;
mod tiers;
