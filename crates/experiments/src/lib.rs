//! The experiments: one file each, and one line in the [`registry`].

mod answer;
pub mod codec;
pub mod content;
mod fill;
pub mod ident;
mod kv;
mod parameters;
pub mod pieces;
mod point;
pub mod registry;
mod session;
