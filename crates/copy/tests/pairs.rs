//! A few random tables and databases, and keys of each type to two engines; the full tier has two thousand, and all pairs.

use crate::databases;
use crate::keys::{ENGINES, sweep};
use crate::random::check;

/// The number that a variable gives.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Tables of the engine go to another database of its kind, and to one other engine.
fn keys_of(at: usize) {
    sweep(ENGINES[at], &[ENGINES[at], ENGINES[(at + 2) % ENGINES.len()]]);
}

#[test]
fn all_rows_of_every_key_of_sqlite_arrive() {
    keys_of(0);
}

#[test]
fn all_rows_of_every_key_of_postgres_arrive() {
    keys_of(1);
}

#[test]
fn all_rows_of_every_key_of_mysql_arrive() {
    keys_of(2);
}

#[test]
fn all_rows_of_every_key_of_mariadb_arrive() {
    keys_of(3);
}

/// Each engine's tables go to one other engine, which the seed chooses.
#[test]
fn random_tables_arrive_as_they_were_or_as_the_plan_said() {
    let seed = given("KURABE_COPY_SEED").unwrap_or(4);
    let tables = given("KURABE_COPY_TABLES").unwrap_or(4) as usize;
    let step = 1 + seed as usize % (ENGINES.len() - 1);
    assert!(check(seed, tables, &|from, to| (from + step) % ENGINES.len() == to) > 0);
}

#[test]
fn each_row_and_definition_of_a_random_database_is_carried_or_listed() {
    // Each pair of engines once, or more often.
    let count = given("KURABE_COPY_DATABASES").unwrap_or(4);
    let is_chosen = |number: u64, _, to: usize| number as usize % ENGINES.len() == to;
    databases::all_pairs(given("KURABE_COPY_SEED").unwrap_or(5), count, false, &is_chosen);
}

#[test]
fn objects_of_every_kind_are_carried_or_listed() {
    databases::all_pairs(given("KURABE_COPY_SEED").unwrap_or(6), 1, true, &|_, from, to| {
        to == from || to == (from + 1) % ENGINES.len()
    });
}
