//! The tests of copies between databases.
#![allow(clippy::panic, clippy::unwrap_used, reason = "helpers of tests are tests")]

mod choices;
mod common;
mod databases;
mod encodings;
mod faults;
mod harm;
mod keys;
mod kinds;
mod leftovers;
mod listed;
mod mysql;
mod objects;
mod own_text;
mod pairs;
mod postgres;
mod random;
mod settings;
mod sqlite;
mod trial;
mod units;
