//! Clients that write until their server is killed, and the check after its restart.

use crate::support::eventually;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver};
use kurabe_core::durability::{ABOUT_A_SECOND, DurabilityClass};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const CLIENTS: i64 = 4;
/// The minimum number of acknowledged rows for a meaningful check.
pub(super) const PROVE: usize = 100;
/// The maximum number of rows of a client. It is never reached; it ends a test whose server was not killed.
const MAX: i64 = 1 << 20;

/// A target under load: its own collection and the class that it must keep.
pub(super) struct Target {
    name: String,
    driver: Arc<dyn Driver>,
    collection: Arc<Collection>,
    class: DurabilityClass,
    stands_in: bool,
}

/// The running clients of a target.
pub(super) struct Load {
    clients: Vec<JoinHandle<Vec<(i64, Instant)>>>,
    /// The number of rows acknowledged to all clients so far.
    rows: Arc<AtomicUsize>,
}

/// The keys that the server acknowledged, and when; by client, in order.
pub(super) type Acknowledged = Vec<Vec<(i64, Instant)>>;

impl Target {
    /// Opens a target, requires a class, if any, and creates its collection.
    pub(super) fn open(url: &str, number: usize, required: Option<DurabilityClass>) -> Self {
        let mut driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
        if let Some(class) = required {
            driver.require_durability(class).unwrap();
        }
        let facts = driver.describe().unwrap();
        let class = facts.durability.unwrap();
        let stands_in = ["FerretDB", "PouchDB Server"].contains(&facts.engine.as_str());
        let fields = vec![
            Field { name: "id", kind: FieldType::Int },
            Field { name: "data", kind: FieldType::Text { max: 100 } },
        ];
        let collection = Collection::new(format!("kurabe_{number}_crash"), fields, vec![0]);
        driver.namespace().unwrap().create(&collection).unwrap();
        let name = format!("{url} ({class})");
        Self { name, driver: driver.into(), collection: Arc::new(collection), class, stands_in }
    }

    /// Whether the server is not the engine itself but another one with its protocol.
    pub(super) fn stands_in(&self) -> bool {
        self.stands_in
    }

    pub(super) fn class(&self) -> DurabilityClass {
        self.class
    }

    /// Starts the clients.
    pub(super) fn load(&self) -> Load {
        // Thousands of rows prove as much as hundreds of thousands, and take less time to read.
        self.clients(CLIENTS, Duration::from_micros(500))
    }

    /// Starts clients that write without pause.
    pub(super) fn load_hard(&self) -> Load {
        self.clients(4 * CLIENTS, Duration::ZERO)
    }

    fn clients(&self, clients: i64, pause: Duration) -> Load {
        let rows = Arc::new(AtomicUsize::new(0));
        // Who writes first does not have the server killed before all are connected.
        let all_connected = Arc::new(Barrier::new(usize::try_from(clients).unwrap()));
        let client = |number: i64| {
            let (driver, collection) = (Arc::clone(&self.driver), Arc::clone(&self.collection));
            let (rows, all_connected) = (Arc::clone(&rows), Arc::clone(&all_connected));
            std::thread::spawn(move || {
                write(&*driver, collection, number * MAX, pause, &rows, &all_connected)
            })
        };
        Load { clients: (0..clients).map(client).collect(), rows }
    }

    /// The number of acknowledged rows that are lost.
    pub(super) fn lost(&self, acknowledged: &Acknowledged) -> usize {
        let gone = self.missing(acknowledged).len();
        let rows = acknowledged.iter().flatten().count();
        tell(&format!("{}: {rows} acknowledged, {gone} of them gone", self.name));
        gone
    }

    /// Checks a restarted target: its class decides which acknowledged rows must exist.
    pub(super) fn judge(&self, acknowledged: &Acknowledged) {
        let rows: Vec<(i64, Instant)> = acknowledged.iter().flatten().copied().collect();
        assert!(rows.len() >= PROVE, "{}: {} acknowledged rows prove nothing", self.name, rows.len());
        let last = rows.iter().map(|(_, when)| *when).max().unwrap();
        let gone = self.missing(acknowledged);
        let oldest = gone.iter().map(|(_, when)| last.duration_since(*when)).max();
        tell(&format!(
            "{}: {} acknowledged, {} of them gone{}",
            self.name,
            rows.len(),
            gone.len(),
            oldest.map_or_else(String::new, |age| format!(", the oldest {age:.1?} before the last"))
        ));
        match self.class {
            DurabilityClass::Memory => assert_eq!(gone.len(), rows.len(), "{}", self.name),
            DurabilityClass::PeriodicSync => {
                assert!(oldest.unwrap_or_default() <= ABOUT_A_SECOND, "{}: {oldest:?}", self.name);
                let safe = rows.iter().any(|(_, when)| last.duration_since(*when) > ABOUT_A_SECOND);
                assert!(safe, "{}: no row was old enough to be required", self.name);
            }
            DurabilityClass::OsCache | DurabilityClass::Synced | DurabilityClass::Replicated => {
                assert_eq!(gone.len(), 0, "{}: {:?} …", self.name, gone.first());
            }
        }
    }

    /// The acknowledged rows that are missing, read one by one.
    fn missing(&self, acknowledged: &Acknowledged) -> Vec<(i64, Instant)> {
        std::thread::scope(|scope| {
            let of_clients: Vec<_> = acknowledged
                .iter()
                .map(|rows| {
                    scope.spawn(|| {
                        let mut session = self.driver.connect(&ConnectOptions::default()).unwrap();
                        let collection = Arc::clone(&self.collection);
                        let get = session.prepare(&Operation::Get { collection, fields: vec![1] }).unwrap();
                        let mut reply = Reply::new();
                        let mut gone = |key: i64| {
                            session.execute(&get, &[Value::Int(key)], &mut reply).unwrap();
                            let right = data(key);
                            assert!(reply.rows() == 0 || reply.field_bytes(0, 0) == Some(right.as_bytes()));
                            reply.rows() == 0
                        };
                        rows.iter().copied().filter(|(key, _)| gone(*key)).collect::<Vec<_>>()
                    })
                })
                .collect();
            of_clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        })
    }
}

impl Load {
    /// Waits until this many rows were acknowledged, which takes time on a busy machine.
    pub(super) fn wait_for(&self, rows: usize) {
        let there = || (self.rows.load(Ordering::Relaxed) >= rows).then_some(());
        assert!(eventually(60, there).is_some(), "{rows} rows were not acknowledged within a minute");
    }

    /// The errors of the clients when their connections failed.
    pub(super) fn end(self) -> Acknowledged {
        self.clients.into_iter().map(|client| client.join().unwrap()).collect()
    }
}

/// Adds rows until the server is killed.
fn write(
    driver: &dyn Driver,
    collection: Arc<Collection>,
    first: i64,
    pause: Duration,
    rows: &AtomicUsize,
    all_connected: &Barrier,
) -> Vec<(i64, Instant)> {
    let options = ConnectOptions::within(Duration::from_secs(20));
    let mut session = driver.connect(&options).unwrap();
    let put = session.prepare(&Operation::Put { collection }).unwrap();
    let mut acknowledged = Vec::new();
    let mut reply = Reply::new();
    all_connected.wait();
    for key in first..first + MAX {
        if session.execute(&put, &[Value::Int(key), Value::Text(&data(key))], &mut reply).is_err() {
            break;
        }
        acknowledged.push((key, Instant::now()));
        rows.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(pause);
    }
    acknowledged
}

/// The content of a row.
pub(super) fn data(key: i64) -> String {
    format!("row {key} of those that were acknowledged")
}

/// Prints the result to standard error, which the test harness shows for failed tests only.
pub(super) fn tell(what: &str) {
    if std::env::var_os("KURABE_TELL").is_some() {
        let _ = std::io::stderr().write_all(format!("{what}\n").as_bytes());
    }
}
