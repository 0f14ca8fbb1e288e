//! `kurabe copy` at length: 2,000 random tables, 2,000 copies of random databases, and keys of every type between all engines, and a hundred copies that are killed.

#[path = "../../crates/copy/tests/common/mod.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../crates/copy/tests/databases.rs"]
mod databases;
#[path = "../../crates/copy/tests/keys.rs"]
mod keys;
#[path = "../copy/kills.rs"]
mod kills;
#[path = "../../crates/copy/tests/random/mod.rs"]
mod random;

/// The seed that is given, or one of the clock.
fn seed() -> u64 {
    let clock =
        || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64;
    kills::given_seed().unwrap_or_else(clock)
}

#[test]
fn two_thousand_random_tables_arrive_as_they_were_or_as_the_plan_said() {
    let first = seed();
    // Each batch has 20 tables of each of four engines, which go to four engines each.
    for seed in first..first + 7 {
        let checked = random::check(seed, 20, &|_, _| true);
        assert!(checked > 200, "{checked}");
    }
}

#[test]
fn each_row_and_definition_of_two_thousand_copied_databases_is_carried_or_listed() {
    // Databases of each of four engines, which go to four engines each.
    databases::all_pairs(seed(), 125, &|_, _| true);
}

#[test]
fn all_rows_of_every_key_arrive_on_every_engine() {
    for engine in &keys::ENGINES {
        keys::sweep(engine, &keys::ENGINES);
    }
}

#[test]
fn hundred_killed_copies_are_continued_or_refused() {
    kills::kill(&["sqlite", "postgres", "mysql", "mariadb"], 25, seed());
}
