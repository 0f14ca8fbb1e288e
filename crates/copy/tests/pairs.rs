//! A few random tables; the full tier has two thousand.

use crate::random::check;

/// Each engine's tables go to one other engine, which the seed chooses.
#[test]
fn random_tables_arrive_as_they_were_or_as_the_plan_said() {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = given("KURABE_COPY_SEED").unwrap_or(4);
    let tables = given("KURABE_COPY_TABLES").unwrap_or(4) as usize;
    let step = 1 + (seed % 4) as usize;
    assert!(check(seed, tables, &|from, to| (from + step) % 5 == to) > 0);
}
