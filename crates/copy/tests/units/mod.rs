//! Functions of the crate by themselves.

mod canonical;
mod casts;
mod catalog;
mod classes;
mod defaults;
mod issue;
mod names;
mod rows;
mod types;
mod verify_form;
