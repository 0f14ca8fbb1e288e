//! Functions of the crate by themselves.

mod canonical;
mod catalog;
mod classes;
mod issue;
mod names;
mod types;
