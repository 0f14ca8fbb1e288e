//! What one operation costs the client on each target named on the command line (`null:` and `sqlite:` otherwise).
//!
//! `cargo bench -p kurabe-drivers -- null: memcached://127.0.0.1:11211`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

mod prelude;

use prelude::*;
use std::time::Instant;

const RECORDS: usize = 1_000;

fn main() {
    let mut targets = arguments();
    if targets.is_empty() {
        targets = vec!["null:".into(), "sqlite:".into()];
    }
    for target in targets {
        measure(&target);
    }
}

fn measure(target: &str) {
    let collection = Arc::new(Collection::new(
        "kurabe_bench",
        vec![
            Field { name: "id", kind: FieldType::Text { max: 72 } },
            Field { name: "data", kind: FieldType::LongBytes },
            Field { name: "at", kind: FieldType::Timestamp },
        ],
        vec![0],
    ));
    let fixture = Fixture::new(target, collection);
    let (mut session, get) = (fixture.session(), fixture.get());
    let mut out = Reply::new();
    let ids: Vec<String> = (0..RECORDS).map(|n| format!("{n:072x}")).collect();
    let put = Operation::Put { collection: fixture.collection.clone() };
    for bytes in [1_000, 10_000, 100_000, 1_000_000] {
        let data = vec![b'x'; bytes];
        let records = (30_000_000 / bytes).min(RECORDS);
        let prepared = session.prepare(&put).unwrap();
        let begun = Instant::now();
        let batch = fixture.driver.supports(&Operation::Begin) == Support::Native;
        if batch {
            once(session.as_mut(), &Operation::Begin, &[]);
        }
        for id in &ids[..records] {
            let row = [Value::Text(id), Value::Bytes(&data), Value::Time(1)];
            session.execute(&prepared, &row, &mut out).unwrap();
        }
        if batch {
            once(session.as_mut(), &Operation::Commit, &[]);
        }
        let ns = begun.elapsed().as_nanos() as usize / records;
        println!("{target:<12} put {bytes:>8} B           {ns:>8} ns (one transaction: {batch})");
        session.release(prepared).unwrap();

        let reads = (200_000_000 / bytes).min(records);
        // A stride that shares no factor with the number of records visits all of them, far apart.
        let order: Vec<Value<'_>> = (0..reads).map(|n| Value::Text(&ids[n * 7_919 % records])).collect();
        let prepared = session.prepare(&get).unwrap();
        let ns = least(reads, |n| {
            session.execute(&prepared, &order[n..=n], &mut out).unwrap();
            assert_eq!(out.field_bytes(0, 0).map(<[u8]>::len), Some(bytes));
        });
        println!("{target:<12} get {bytes:>8} B prepared  {ns:>8} ns");
        session.release(prepared).unwrap();

        let ns = least(reads, |n| {
            let prepared = session.prepare(&get).unwrap();
            session.execute(&prepared, &order[n..=n], &mut out).unwrap();
            session.release(prepared).unwrap();
        });
        println!("{target:<12} get {bytes:>8} B preparing {ns:>8} ns");
    }
    fixture.remove();
}

/// The least mean of 50 repeats of `count` operations, in nanoseconds: other programs only ever add to it.
fn least(count: usize, mut operation: impl FnMut(usize)) -> usize {
    let mut least = usize::MAX;
    for _ in 0..50 {
        let begun = Instant::now();
        (0..count).for_each(&mut operation);
        least = least.min(begun.elapsed().as_nanos() as usize / count);
    }
    least
}
