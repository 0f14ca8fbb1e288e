//! The experiments: one module each, and one line in the [`registry`].

mod answer;
mod axes;
mod bind;
mod built_in;
mod bulk;
mod cache;
mod codec;
mod connect;
mod content;
pub mod custom;
mod defect;
mod fill;
mod footprint;
mod ident;
mod kv;
mod link;
mod net;
mod point;
mod prelude;
mod readback;
pub mod registry;
mod reload;
mod rows;
mod session;
mod statement;
mod via;
mod webapp;
