//! The experiments: one module each, and one line in the [`registry`].

mod answer;
mod axes;
mod bind;
mod built_in;
mod cache;
mod codec;
mod connect;
mod content;
mod cpus;
pub mod custom;
mod defect;
mod estimate;
mod fill;
mod footprint;
mod ident;
mod kv;
mod point;
mod prelude;
mod readback;
pub mod registry;
mod rows;
mod session;
mod statement;
mod via;
mod webapp;
