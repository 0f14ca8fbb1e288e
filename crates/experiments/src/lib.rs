//! The experiments: one file each, and one line in the [`registry`].

pub mod codec;
pub mod content;
pub mod ident;
mod parameters;
pub mod pieces;
mod point;
pub mod registry;
mod session;
