//! Embedded databases have no server: the writing process is killed.

use super::load::{data, tell};
use crate::support::beside_each_other;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::durability::DurabilityClass;
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_testbed::testing;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const CLIENTS: i64 = 3;

fn open(url: &str) -> (Box<dyn Driver>, Arc<Collection>) {
    let fields = vec![
        Field { name: "id", kind: FieldType::Int },
        Field { name: "data", kind: FieldType::Text { max: 100 } },
    ];
    let driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
    (driver, Arc::new(Collection::new("kurabe_0_crash", fields, vec![0])))
}

/// Writes rows until the process is killed, and prints the key of each acknowledged row.
fn write_rows(url: &str) {
    let (driver, collection) = open(url);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (driver, collection) = (&driver, Arc::clone(&collection));
            scope.spawn(move || {
                let mut session = driver.connect(&ConnectOptions::default()).unwrap();
                let put = session.prepare(&Operation::Put { collection }).unwrap();
                for key in client * 1_000_000.. {
                    let row = [Value::Int(key), Value::Text(&data(key))];
                    session.execute(&put, &row, &mut Reply::new()).unwrap();
                    std::io::stdout().write_all(format!("\n#{key}\n").as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
fn embedded_databases_keep_their_promises_when_killed() {
    if let Some(url) = testing::rerun_input() {
        return write_rows(&url);
    }
    let test = "durability::embedded::embedded_databases_keep_their_promises_when_killed";
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("sqlite", "", DurabilityClass::Synced),
        ("sqlite", "?synchronous=normal", DurabilityClass::OsCache),
        ("sqlite", "?synchronous=off", DurabilityClass::OsCache),
        ("sqlite", "?journal_mode=delete&synchronous=extra", DurabilityClass::Synced),
        ("sqlite", "?journal_mode=delete&synchronous=off", DurabilityClass::OsCache),
        ("lmdb", "", DurabilityClass::Synced),
        ("lmdb", "?sync=no-meta", DurabilityClass::OsCache),
        ("lmdb", "?sync=off", DurabilityClass::OsCache),
    ]
    .into_iter()
    .filter(|(engine, ..)| *engine != "lmdb" || cfg!(feature = "full"))
    .enumerate();
    beside_each_other(cases, |(number, (engine, options, class))| {
        let url = format!("{engine}:{}/{number}.db{options}", folder.path().display());
        let (driver, collection) = open(&url);
        assert_eq!(driver.describe().unwrap().durability, Some(class), "{options}");
        driver.namespace().unwrap().create(&collection).unwrap();
        let mut child = testing::rerun(&mut Command::new(std::env::current_exe().unwrap()), test, &url)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            let keys = lines.filter_map(|line| line.strip_prefix('#')?.parse().ok());
            keys.collect::<HashSet<i64>>()
        });
        std::thread::sleep(Duration::from_secs(1));
        child.kill().unwrap();
        child.wait().unwrap();
        let acknowledged = reader.join().unwrap();
        assert!(acknowledged.len() > 20, "{options}: {} rows prove nothing", acknowledged.len());
        let mut session = driver.connect(&ConnectOptions::default()).unwrap();
        let get = session.prepare(&Operation::Get { collection, fields: vec![1] }).unwrap();
        let mut reply = Reply::new();
        let lost = acknowledged
            .iter()
            .filter(|key| {
                session.execute(&get, &[Value::Int(**key)], &mut reply).unwrap();
                reply.field_bytes(0, 0) != Some(data(**key).as_bytes())
            })
            .count();
        tell(&format!(
            "{engine}:{options} ({class}): {} acknowledged, {lost} of them gone",
            acknowledged.len()
        ));
        assert_eq!(lost, 0, "{engine}:{options}");
    });
}
