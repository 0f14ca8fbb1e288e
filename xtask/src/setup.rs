//! `cargo xtask setup`: the servers that tests need, from the distribution's packages; MySQL and Valkey from other
//! suites of Debian, since not every stable suite has them; the substitutes for MongoDB, which no suite has, and for
//! CouchDB, from npm.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::server_root::{MYSQL, PGBOUNCER, VALKEY};
use crate::shell::{Outcome, Root, on_path};
use crate::testbed::programs;
use crate::{apt, ferretdb, languages, mysql55, pouchdb, server_root};

/// The option that installs what all application stacks need, and drivers of other languages.
pub const STACKS: &str = "--stacks";
/// Another name of it: nothing is left out.
const ALL: &str = "--all";

/// What is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What the default tier of the tests needs (`cargo xtask test`).
    Tests,
    /// Also a browser, packet captures, other load generators, and what stacks of PHP and Java need (`cargo xtask setup`).
    More,
    /// Everything ([`STACKS`], `cargo xtask test --full`).
    All,
}

/// A server of the distribution, or another program that tests need.
struct Server {
    engine: &'static str,
    package: &'static str,
    /// Whether the default tier of the tests needs it.
    tests: bool,
    /// The programs and, by their paths, the files by which it is detected; `a|b`: either.
    parts: &'static [&'static str],
}

impl Server {
    const fn of_tests(engine: &'static str, package: &'static str, parts: &'static [&'static str]) -> Self {
        Self { engine, package, tests: true, parts }
    }

    const fn of_more(engine: &'static str, package: &'static str, parts: &'static [&'static str]) -> Self {
        Self { engine, package, tests: false, parts }
    }

    fn there(&self) -> bool {
        let is_there = |part: &str| match part {
            "postgres" => postgres(),
            path if path.starts_with('/') => Path::new(path).exists(),
            program => on_path(program),
        };
        self.parts.iter().all(|part| part.split('|').any(is_there))
    }
}

/// Programs that are only measured beside Kurabe's own (`cargo xtask bench`): a missing one is no problem.
const PEERS: &[Server] = &[Server::of_more("pgloader", "pgloader", &["pgloader"])];

const SERVERS: &[Server] = &[
    Server::of_tests("mariadb", "mariadb-server", &["mariadbd", "mariadb-install-db"]),
    // Storage engines that read tables of other servers, where Debian's packages install them.
    Server::of_tests("mariadb's CONNECT", "mariadb-plugin-connect", &["/usr/lib/mysql/plugin/ha_connect.so"]),
    Server::of_tests("mariadb's Spider", "mariadb-plugin-spider", &["/usr/lib/mysql/plugin/ha_spider.so"]),
    Server::of_tests("postgres", "postgresql", &["postgres"]),
    Server::of_tests("memcached", "memcached", &["memcached"]),
    // Not servers: common load generators for web servers, and a client.
    Server::of_tests("ab", "apache2-utils", &["ab"]),
    Server::of_more("wrk", "wrk", &["wrk"]),
    Server::of_tests("curl", "curl", &["curl"]),
    // Its statements and keys are compared with those of the suites named after it.
    Server::of_tests("sysbench", "sysbench", &["sysbench"]),
    Server::of_tests("memcslap", "libmemcached-tools", &["memcslap"]),
    // Pages are tested in it.
    Server::of_more("chromium", "chromium", &["chromium|google-chrome"]),
    // It reads what a copy made of a table.
    Server::of_tests("sqlite3", "sqlite3", &["sqlite3"]),
    // Counters are compared with captured packets. Capturing needs root or a capability.
    Server::of_tests("tcpdump", "tcpdump", &["tcpdump"]),
    // An agent is started over it.
    Server::of_tests("sshd", "openssh-server", &["/usr/sbin/sshd"]),
    // The broker of a fleet.
    Server::of_tests("nats-server", "nats-server", &["nats-server"]),
    // A pooler before PostgreSQL.
    Server::of_tests("pgbouncer", "pgbouncer", &["/usr/sbin/pgbouncer|pgbouncer"]),
    Server::of_tests("redis", "redis-server", &["redis-server"]),
];

pub fn run(args: &[String]) -> Outcome {
    let all = args.iter().any(|arg| [STACKS, ALL].contains(&arg.as_str()));
    if let Some(arg) = args.iter().find(|arg| ![STACKS, ALL].contains(&arg.as_str())) {
        return Err(format!(
            "unexpected argument `{arg}`: setup takes only {STACKS}, which is also called {ALL}"
        ));
    }
    install_for(if all { Extent::All } else { Extent::More })
}

/// Installs what is missing of this extent. Each line that it prints begins with `setup:`.
pub fn install_for(extent: Extent) -> Outcome {
    let started = Instant::now();
    let mut still = install(extent);
    if extent != Extent::Tests {
        for note in install_peers() {
            eprintln!("setup: {note}");
        }
        still.extend(languages::install(extent == Extent::All));
    }
    if extent == Extent::All {
        let root = Root::find();
        if let Err(why) = mysql55::make(root, apt::cannot(root)) {
            // Nothing requires it.
            eprintln!("setup: MySQL 5.5 is not there ({why})");
        }
    }
    for line in still.iter().flat_map(|problem| problem.lines()) {
        eprintln!("setup: {line}");
    }
    match still.len() {
        0 => println!(
            "setup: {}, valkey, mysql, mongodb and couchdb (or their substitutes){} are there ({:.1} s)",
            wanted(extent).map(|server| server.engine).collect::<Vec<_>>().join(", "),
            if extent == Extent::Tests { "" } else { ", and what application stacks need" },
            started.elapsed().as_secs_f32()
        ),
        _ if in_ci() => return Err("servers are missing, and CI=true requires all".to_owned()),
        _ => eprintln!("setup: tests that need missing servers will be skipped"),
    }
    Ok(())
}

/// The servers and programs of this extent.
fn wanted(extent: Extent) -> impl Iterator<Item = &'static Server> {
    SERVERS.iter().filter(move |server| server.tests || extent != Extent::Tests)
}

/// Installs peers that are missing, where that is possible, and says which still are.
fn install_peers() -> Vec<String> {
    let missing: Vec<&Server> = PEERS.iter().filter(|peer| !peer.there()).collect();
    let root = Root::find();
    // CI compares with none of them.
    if !missing.is_empty() && apt::cannot(root).is_none() && !in_ci() {
        let packages: Vec<&str> = missing.iter().map(|peer| peer.package).collect();
        let _ = apt::install(root, &packages);
    }
    let still = missing.into_iter().filter(|peer| !peer.there());
    still
        .map(|peer| {
            format!("{} is not there; to compare with it: apt-get install {}", peer.engine, peer.package)
        })
        .collect()
}

/// Installs what is missing, and returns what is still missing, with instructions.
fn install(extent: Extent) -> Vec<String> {
    let missing: Vec<&Server> = wanted(extent).filter(|server| !server.there()).collect();
    let valkey = on_path("valkey-server") || VALKEY.there();
    let (mysql, mongodb, couchdb) = (mysql(), ferretdb::there(), pouchdb::there());
    let pgbouncer = PGBOUNCER.there();
    // Without them, programs of MariaDB dump and restore tables of MySQL.
    let lacks_tools = MYSQL.there() && !MYSQL.whole();
    if missing.is_empty() && mysql && valkey && pgbouncer && mongodb && couchdb && !lacks_tools {
        return Vec::new();
    }
    let root = Root::find();
    let cannot = apt::cannot(root);
    let mut problems = Vec::new();
    // All packages at once, since each call of apt reads all lists anew.
    let mut packages: Vec<&str> = missing.iter().map(|server| server.package).collect();
    let makers: [(bool, &[(&str, &str)]); 3] = [
        (!mysql || !valkey || !pgbouncer, &[("debootstrap", "debootstrap")]),
        (!mongodb && !ferretdb::has_go(), &[("go", "golang-go")]),
        (!couchdb, &[("node", "nodejs"), ("npm", "npm")]),
    ];
    for (program, package) in makers.iter().filter(|(needed, _)| *needed).flat_map(|(_, programs)| *programs)
    {
        if !on_path(program) {
            packages.push(package);
        }
    }
    let refused = match cannot {
        Some(why) => Some(why.to_owned()),
        None if packages.is_empty() => None,
        None => apt::install(root, &packages).err(),
    };
    problems.extend(missing.iter().filter(|server| !server.there()).map(|server| {
        let why = refused.as_deref().unwrap_or("its package was installed, its programs were not found");
        format!("{} is missing ({why}); to get it: apt-get install {}", server.engine, server.package)
    }));
    let from_debian = |server: server_root::Server, engine: &str, package: &str| {
        let made = cannot.map_or_else(|| server.make(root), |why| Err(why.to_owned()));
        made.err().map(|why| {
            format!("{engine} is missing ({why}); to get it: {package}, or run `cargo xtask setup` as root on Debian")
        })
    };
    let mongodb_made = || {
        let how = "install MongoDB, so that `mongod` is on the PATH, or Go (apt-get install golang-go) and run this again";
        ferretdb::make(root, cannot).err().map(|why| format!("mongodb is missing ({why}); to get it: {how}"))
    };
    let couchdb_made = || {
        let install = |packages: &[&str]| match cannot {
            Some(why) => Err(format!("no {}, and {why}", packages.join(", no "))),
            None => apt::install(root, packages),
        };
        let made = pouchdb::make(install).err();
        made.map(|why| format!("couchdb is missing ({why}); to get it: {}", pouchdb::how(root)))
    };
    // Each fetches from elsewhere, and most of them wait.
    thread::scope(|scope| {
        let made = [
            scope.spawn(|| {
                let package = "install MySQL 8 or newer, so that `mysqld` is on the PATH";
                if mysql { None } else { from_debian(MYSQL, "mysql", package) }
            }),
            scope.spawn(|| {
                let package = "install Valkey, so that `valkey-server` is on the PATH";
                if valkey { None } else { from_debian(VALKEY, "valkey", package) }
            }),
            scope.spawn(|| {
                let package = "nothing but a test needs it";
                if pgbouncer { None } else { from_debian(PGBOUNCER, "pgbouncer (new)", package) }
            }),
            scope.spawn(|| if mongodb { None } else { mongodb_made() }),
            scope.spawn(|| if couchdb { None } else { couchdb_made() }),
        ];
        for thread in made {
            problems.extend(thread.join().unwrap_or_else(|_| Some("set-up panicked".to_owned())));
        }
    });
    if lacks_tools
        && cannot.is_none()
        && let Err(why) = MYSQL.make(root)
    {
        eprintln!("setup: MySQL's own mysqldump and mysql are missing ({why}); MariaDB's are used");
    }
    problems
}

/// Whether a missing server is a failure instead of a skip.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

fn postgres() -> bool {
    let chosen = std::env::var_os("KURABE_SERVER_PATH").is_some();
    let versions = if chosen { None } else { std::fs::read_dir("/usr/lib/postgresql").ok() };
    let versions = versions.into_iter().flatten().flatten();
    let folders = programs::folders().into_iter().chain(versions.map(|entry| entry.path().join("bin")));
    folders.filter_map(|folder| folder.join("postgres").canonicalize().ok()).any(|program| {
        programs::is_program(&program) && programs::is_program(&program.with_file_name("initdb"))
    })
}

/// A `mysqld` of MySQL's own in PATH, or the one in the cache.
fn mysql() -> bool {
    let installed = programs::any("mysqld").is_some_and(|program| {
        let line = programs::first_line(Command::new(program).arg("--version"));
        let version = line.ok().and_then(|line| programs::word_after(&line, "Ver"));
        version.is_some_and(|version| !version.contains("MariaDB"))
    });
    installed || MYSQL.there()
}
