//! [`kurabe_copy::names`].

use kurabe_copy::catalog::Table;
use kurabe_copy::names::{Names, ordered};

#[test]
fn names_are_unique_and_short_enough() {
    let find = |name| kurabe_copy::engines::of_scheme(name).unwrap();
    let table = |name: &str| Table { name: name.to_owned(), ..Table::default() };
    let mut names = Names::new(find("postgres"), &[table("orders"), table("items")]);
    assert_eq!(names.of("orders", "by_day", false, true), "by_day");
    assert_eq!(names.of("items", "by_day", false, true), "items_by_day");
    assert_eq!(names.of("items", "BY_DAY", false, true), "items_BY_DAY_k2");
    assert_eq!(names.of("orders", "items", false, true), "orders_items");
    assert_eq!(names.of("orders", "sqlite_autoindex_orders_1", false, true), "orders_k1");
    assert_eq!(names.of("orders", "", true, true), "orders_k2");
    let long = "é".repeat(40);
    let made = names.of("orders", &long, false, true);
    assert!(made.len() <= 63 && made.starts_with("orders_é"), "{made}");
    let mut names = Names::new(find("mysql"), &[table("orders"), table("items")]);
    assert_eq!(names.of("orders", "by_day", false, true), "by_day");
    assert_eq!(names.of("items", "by_day", false, true), "by_day");
    // A foreign key, with and without an index of its own.
    assert_eq!(names.of("items", "by_day", true, true), "items_by_day");
    assert_eq!(names.of("items", "by_day", true, false), "by_day");
    assert_eq!(names.of("items", "caf\0\u{fffd}", false, true), "caf_");
}

/// Each thing is asked once what it waits for: a schema may have thousands of tables.
#[test]
fn things_come_after_what_they_wait_for() {
    let mut asked = 0;
    let chain = ordered((0..5_000).collect(), |at| {
        asked += 1;
        if at + 1 < 5_000 { vec![at + 1] } else { Vec::new() }
    });
    assert!(asked == 5_000 && chain.iter().rev().copied().eq(0..5_000), "{asked}");
    // Two that wait for each other, and one that waits for the second: the first of them comes first.
    let waits = [vec![1], vec![0, 3], vec![1, 1], Vec::new()];
    assert_eq!(ordered(vec!["a", "b", "c", "d"], |at| waits[at].clone()), ["d", "a", "b", "c"]);
}
