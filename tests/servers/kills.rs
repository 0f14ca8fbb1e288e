//! Runs that are killed at random moments on servers of other people: nothing of Kurabe's stays there once a run has ended
//! by itself, and nothing of theirs is changed. Looked at by the engines' own programs and protocols.

use super::common::{by, sql, tables};
use super::eviction::Cache;
use super::pooler::PgBouncer;
use super::standby::Standby;
use crate::support::{Answer, Place, eventually, piped, signal};
use kurabe_testbed::{Server, testing};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// How many runs are killed on all servers together, in the full tier by this variable: 200.
const KILLS: &str = "KURABE_KILLS";
/// The same in the default tier.
const FEW: u64 = 10;
/// How many set-ups there are.
const SET_UPS: u64 = 6;
/// A run is killed within this time, in which it ends by itself on a quiet machine.
const LONGEST_MS: u64 = 4_000;

const THEIRS: &str = "CREATE TABLE theirs (id int PRIMARY KEY, n int); INSERT INTO theirs SELECT g, g * 7 FROM \
                      generate_series(1, 500) g; GRANT SELECT ON theirs TO PUBLIC;";

fn random(below: u64) -> u64 {
    RandomState::new().hash_one(std::process::id()) % below
}

/// A server of others, and ways to look at it.
struct SetUp<'a> {
    name: &'a str,
    /// The arguments of a run there.
    run: Vec<&'a str>,
    /// How a run ends that nobody kills.
    ends_with: i32,
    /// What must stay as it is.
    theirs: &'a dyn Fn() -> String,
    /// What is left of Kurabe's; empty if there is nothing.
    ours: &'a dyn Fn() -> String,
}

impl SetUp<'_> {
    fn check(&self, place: &Place) {
        let kills = std::env::var(KILLS).ok().and_then(|text| text.parse().ok()).unwrap_or(FEW);
        let before = (self.theirs)();
        for _ in 0..kills.div_ceil(SET_UPS) {
            let moment = Duration::from_millis(random(LONGEST_MS));
            let how = if random(4) == 0 { "-INT" } else { "-KILL" };
            let what = format!("{}: {how} after {moment:?}", self.name);
            let mut child = piped(&mut place.command(&self.run));
            let ended = eventually_within(moment, || child.try_wait().unwrap());
            if ended.is_none() {
                signal(&child, how);
            }
            let answer = Answer::at_end_of(child);
            let known = [None, Some(130), Some(self.ends_with)];
            // Where no session holds the lease, that of a killed run ends by its own time.
            assert!(known.contains(&answer.code) || in_use(&answer), "{what}: {answer:?}");
            assert_eq!((self.theirs)(), before, "{what}");
        }
        // The next run removes what was left, and is not refused.
        let last = eventually(90, || {
            let answer = place.run(&self.run);
            (!in_use(&answer)).then_some(answer)
        });
        let answer = last.unwrap_or_else(|| panic!("{}: a lease does not end", self.name));
        assert_eq!(answer.code, Some(self.ends_with), "{}: {answer:?}", self.name);
        let left = eventually(20, || (self.ours)().is_empty().then_some(()));
        assert!(left.is_some(), "{}: left: {}", self.name, (self.ours)());
        assert_eq!((self.theirs)(), before, "{}", self.name);
    }
}

/// Whether another run, which was killed, still has the lease.
fn in_use(answer: &Answer) -> bool {
    answer.code == Some(3)
        && ["is in use by", "another run of Kurabe is using"].iter().any(|part| answer.err.contains(part))
}

/// As [`eventually`], within this time.
fn eventually_within<T>(time: Duration, mut find: impl FnMut() -> Option<T>) -> Option<T> {
    let until = std::time::Instant::now() + time;
    loop {
        let found = find();
        if found.is_some() || std::time::Instant::now() >= until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The owner's rows, of a PostgreSQL server.
fn rows(server: &Server) -> String {
    sql(server, "", "SELECT md5(string_agg(id || ':' || n, ',' ORDER BY id)) FROM theirs").unwrap()
}

/// Kurabe's tables, locks and sessions that are left on a PostgreSQL server.
fn left(server: &Server) -> String {
    let held = "SELECT 'lock of ' || pid FROM pg_locks WHERE locktype = 'advisory' UNION ALL \
                SELECT 'transaction of ' || pid FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid() \
                AND backend_type = 'client backend'";
    let tables = tables(server).unwrap();
    let tables: Vec<&str> = tables.lines().filter(|table| *table != "theirs").collect();
    format!("{} {}", tables.join(" "), sql(server, "", held).unwrap()).trim().to_owned()
}

const BRIEF: [&str; 8] = ["--requests", "400", "--records", "2000", "--rounds", "2", "--clients", "2"];

#[test]
fn killed_runs_harm_nobody_behind_a_pooler() {
    let Some(server) = testing::own_server("postgres") else { return };
    let Some(_) = sql(&server, "", THEIRS) else { return };
    for (mode, ends_with) in [("session", 0), ("transaction", 3), ("statement", 3)] {
        let Some(pooler) = PgBouncer::start(&server, mode) else { return };
        let url = pooler.url();
        SetUp {
            name: mode,
            run: [&["run", "point-write", &url][..], &BRIEF].concat(),
            ends_with,
            theirs: &|| rows(&server),
            ours: &|| left(&server),
        }
        .check(&Place::new());
    }
}

#[test]
fn killed_runs_harm_nobody_on_a_standby() {
    let Some(standby) = Standby::start() else { return };
    let Some(_) = sql(&standby.primary, "", THEIRS) else { return };
    standby.catch_up();
    let place = Place::new();
    let file = place.file("read.sql", "\\set id random(1, 500)\nSELECT n FROM theirs WHERE id = :id;\n");
    let url = standby.url();
    let rest = ["--requests", "400", "--rounds", "2", "--clients", "2"];
    SetUp {
        name: "standby",
        run: [&["run", "pgbench", "-f", &file, &url][..], &rest].concat(),
        ends_with: 0,
        theirs: &|| rows(&standby.primary),
        ours: &|| {
            let held = "SELECT pid FROM pg_locks WHERE locktype = 'advisory'";
            format!("{} {}", left(&standby.primary), standby.ask(held).unwrap()).trim().to_owned()
        },
    }
    .check(&place);
}

#[test]
fn killed_runs_harm_nobody_as_a_user_with_few_connections() {
    let Some(server) = testing::own_server("postgres") else { return };
    let made = "CREATE ROLE few LOGIN PASSWORD 'a' CONNECTION LIMIT 9; GRANT CREATE ON SCHEMA public TO few;";
    let Some(_) = sql(&server, "", &format!("{THEIRS}{made}")) else { return };
    let url = by(&server, "few:a", "kurabe");
    let gone = || {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'few'";
        eventually(20, || (sql(&server, "", count).unwrap().trim() == "0").then_some(()));
    };
    SetUp {
        name: "limit of a role",
        run: [&["run", "point-write", &url][..], &BRIEF].concat(),
        ends_with: 0,
        theirs: &|| {
            // Sessions of a killed client end a moment later.
            gone();
            rows(&server)
        },
        ours: &|| left(&server),
    }
    .check(&Place::new());
}

#[test]
fn killed_runs_harm_nobody_on_a_cache_at_its_limit() {
    let Some(cache) = Cache::start("redis") else { return };
    cache.fill();
    let url = cache.server().url().to_owned();
    SetUp {
        name: "cache at its limit",
        run: [&["run", "kv", &url][..], &BRIEF].concat(),
        ends_with: 0,
        theirs: &|| cache.theirs().to_string(),
        ours: &|| {
            let keys = cache.ask("KEYS kurabe_*");
            if keys.starts_with("*0") { String::new() } else { keys }
        },
    }
    .check(&Place::new());
}
