//! Functions of the crate by themselves.

mod canonical;
mod casts;
mod catalog;
mod classes;
mod defaults;
mod issue;
mod leftovers;
mod names;
mod rows;
mod script;
mod types;
mod verify;
mod verify_form;
