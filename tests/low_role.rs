//! A role that may create in the measured schema sets traps; another one with all rights runs the program. None of the traps
//! runs with the rights of that one, and nothing of others is removed.

mod documents;
mod mysql;
mod postgres;
mod sqlite;

use crate::page::{Page, TOKEN, escaped};
use crate::support::{Answer, Place};
use kurabe_copy::engines::of_scheme;
use kurabe_copy::sql::Side;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::target::TargetUrl;

/// The low role and its password.
const LOW: &str = "low";
const PASSWORD: &str = "trap";

/// The options of a short run of each experiment.
const SESSION: [&str; 12] = [
    "--layout", "blob,rows", "--payload", "1k", "--requests", "40", "--records", "20", "--rounds", "1",
    "--operation", "write,read",
];
const SHORT: [&str; 4] = ["--requests", "40", "--rounds", "1"];

const GATE: [&str; 4] = ["--requests", "40", "--rounds", "6"];

/// A custom workload with a collection of its own.
const CUSTOM: &str = "[collection.a]\nrows = 30\nkey = 'id'\nfields = { id = 'int', n = { type = 'text', max = 20 } }\n\
    [transaction.t]\ndraw.id = { row = 'a' }\nsteps = [ { get = 'a', key = ':id' } ]\n";

/// A session of a URL's user, by which a test prepares and looks.
struct Db(Side);

impl Db {
    fn open(url: &str) -> Self {
        let parsed = TargetUrl::parse(url).unwrap();
        let driver = kurabe_drivers::registry::open(&parsed).unwrap();
        let session = driver.connect(&ConnectOptions::default()).unwrap();
        Self(Side { session, engine: of_scheme(&parsed.scheme).unwrap(), name: parsed.to_string() })
    }

    #[track_caller]
    fn run(&mut self, statement: &str) {
        self.0.run_text(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    #[track_caller]
    fn all(&mut self, statements: &[&str]) {
        for statement in statements {
            self.run(statement);
        }
    }

    #[track_caller]
    fn value(&mut self, query: &str) -> String {
        self.0.value(query).unwrap_or_else(|error| panic!("{query}: {error}")).unwrap_or_default()
    }
}

/// The same database as the low role.
fn as_low(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    let rest = rest.split_once('@').map_or(rest, |(_, rest)| rest);
    let low = format!("{scheme}://{LOW}:{PASSWORD}@{rest}");
    if scheme == "mysql" { crate::support::with(&low, "get_server_public_key=true") } else { low }
}

/// Runs every command with a session of its own on a server, of which each must succeed, and looks after each.
fn run_all(place: &Place, url: &str, look: &mut dyn FnMut(&str)) {
    let custom = place.file("custom.toml", CUSTOM);
    let file = format!("sqlite:{}", place.at("beside.db"));
    let (capture, scheme) = (place.at("mine.capture"), TargetUrl::parse(url).unwrap().scheme);
    let client = if scheme == "postgres" {
        "psql -XAtqc 'SELECT 4711'"
    } else {
        "mysql --no-defaults --protocol=tcp --user=\"$MYSQL_USER\" -e 'SELECT 4711' kurabe"
    };
    let client = ["--", "sh", "-ec", client];
    let commands: [&[&str]; 12] = [
        &["doctor", url],
        &["doctor", "--messages", url],
        &[&["run", "session", url][..], &SESSION].concat(),
        &[&["run", "point-read", url][..], &SHORT].concat(),
        &["run", "estimate", url, "--records", "300", "--rounds", "1", "--no-html"],
        &[
            "run", "copy", url, "--where", "remote", "--remote", &file, "--rows", "300", "--rounds", "1",
            "--interleave=off",
        ],
        &[&["run", "-f", &custom, url][..], &SHORT].concat(),
        &["run", "bulk", url, "--rows", "300", "--rounds", "1"],
        &[
            "run", "query", url, "-c", "SELECT 4711", "-c", "SELECT 4700 + 11", "--requests", "40",
            "--rounds", "1",
        ],
        &[&["capture", url, "-o", &capture][..], &client].concat(),
        &["run", "replay", &capture, url, "--rounds", "1", "--no-html"],
        &[&["gate", &custom, url, &file, "--fail-on", "slower:5%"][..], &GATE].concat(),
    ];
    for command in commands {
        let answer = place.run(command);
        let is_gate = command[0] == "gate";
        let allowed: &[i32] = if is_gate { &[0, 6, 7] } else { &[0] };
        assert!(answer.code.is_some_and(|code| allowed.contains(&code)), "{}: {answer:?}", command.join(" "));
        look(&command.join(" "));
    }
    let page = Page::with(place, &["--token", TOKEN, "--allow-any-target"]);
    let target = escaped(url);
    let run = page.run(&format!("targets={target}&rounds=1&duration=100ms"));
    page.wait_for(&run, "complete");
    page.end();
    look("serve");
}

/// Checks that a run is refused because of the ownership table.
#[track_caller]
fn assert_marker_refused(answer: &Answer, trap: &str) {
    assert_eq!(answer.code, Some(3), "{trap}: {answer:?}");
    for part in ["kurabe_marker was not created by Kurabe", "left alone"] {
        assert!(answer.err.contains(part), "{trap}: {part}: {answer:?}");
    }
}
