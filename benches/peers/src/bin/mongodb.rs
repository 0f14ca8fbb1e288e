//! What reading and adding one document costs the client, by this driver and by its crate as everybody uses it (the
//! blocking API, `Collection<Document>`, `find_one` and `insert_one`), in turns. CPU time is the whole process's: the
//! crate works in threads of its own.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin mongodb -- mongodb://127.0.0.1:27017/kurabe`

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../crates/drivers/benches/prelude/mod.rs"]
mod prelude;

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use mongodb::options::ClientOptions;
use prelude::*;
use std::sync::atomic::AtomicUsize;

const ROUNDS: usize = 15;
const ROWS: usize = 500;
const BYTES: usize = 1_000;

fn main() {
    let url = arguments().into_iter().next().expect("the URL of a server");
    let id = FieldType::Text { max: 40 };
    let fixture = Fixture::new(&url, collection("kurabe_bench_mongodb", id, FieldType::LongBytes));
    let next = AtomicUsize::new(ROWS);
    (0..ROWS).for_each(insert(&fixture));
    for clients in [1, 16] {
        let mut options = ClientOptions::parse(&url).run().unwrap();
        options.max_pool_size = Some(64);
        let plain = mongodb::sync::Client::with_options(options).unwrap();
        let plain = plain.database(TargetUrl::parse(&url).unwrap().path.as_str());
        let plain = plain.collection::<Document>("kurabe_bench_mongodb");
        for (name, calls) in [("read  ", 2_000), ("insert", 500)] {
            let found = in_turns(ROUNDS, |way| {
                let worker = |_| match (way, name) {
                    (0, "insert") => insert(&fixture),
                    (0, _) => get(&fixture),
                    (_, "insert") => plain_insert(&plain),
                    _ => plain_get(&plain),
                };
                together((0..clients).map(worker).collect(), calls, &next)
            });
            let ratios = ratios(&found);
            let [ours, plain] = [&found[0], &found[1]].map(|costs| middle(costs));
            println!(
                "{clients:>2} clients, {name}: CPU {:>6.1} µs (crate used plainly {:>6.1}; ratio {:.2}, from {:.2} to {:.2}), \
                 clock {:>6.1} µs ({:>6.1})",
                ours.0,
                plain.0,
                ratios[ratios.len() / 2],
                ratios[0],
                ratios[ratios.len() - 1],
                ours.1,
                plain.1
            );
        }
    }
    fixture.remove();
}

fn get(fixture: &Fixture) -> Work {
    let (mut session, get) = fixture.worker(&fixture.get());
    let mut out = Reply::new();
    Box::new(move |n| {
        let id = format!("id {}", n * 7_919 % ROWS);
        session.execute(&get, &[Value::Text(&id)], &mut out).unwrap();
        assert_eq!(out.field_bytes(0, 0).map(<[u8]>::len), Some(BYTES));
    })
}

fn insert(fixture: &Fixture) -> Work {
    let (mut session, insert) = fixture.worker(&fixture.insert());
    let (mut out, data) = (Reply::new(), vec![7; BYTES]);
    Box::new(move |n| {
        let id = format!("id {n}");
        session.execute(&insert, &[Value::Text(&id), Value::Bytes(&data)], &mut out).unwrap();
    })
}

fn plain_get(collection: &mongodb::sync::Collection<Document>) -> Work {
    let collection = collection.clone();
    Box::new(move |n| {
        let id = format!("id {}", n * 7_919 % ROWS);
        let found = collection.find_one(doc! { "_id": id }).run().unwrap().unwrap();
        assert_eq!(found.get_binary_generic("data").map(Vec::len).ok(), Some(BYTES));
    })
}

fn plain_insert(collection: &mongodb::sync::Collection<Document>) -> Work {
    let collection = collection.clone();
    Box::new(move |n| {
        let data = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; BYTES] };
        collection.insert_one(doc! { "_id": format!("id {n}"), "data": data }).run().unwrap();
    })
}
