//! `cargo xtask bench profiles`: what measures in the program that people build (`release`) beside that which is published (`dist`), in
//! turns: rates of reads, writes and scans in SQLite and on servers, and of the client alone (`null:`).
//!
//! `DIST` names the published program (`cargo xtask dist` builds it). The median of each case's ratios must be above 0.95.

use super::contest::{CLIENT, Contest, Figure, Going, Place, SERVER, Side};
use super::options::Variables;
use super::run::{Kurabe, processors};
use super::server::Server;
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "case",
    figures: &[Figure { name: "operations/s", digits: 0, compared: true }],
    allowed: [0.95, f64::INFINITY],
};

const PUBLISHED: Side = Side {
    name: "dist",
    command: "KURABE=$DIST; ours $CASE --rounds 1 --duration 2s --interleave=off",
    ..Side::OURS
};
const BUILT: Side =
    Side { name: "release", command: "ours $CASE --rounds 1 --duration 2s --interleave=off", ..Side::OURS };

/// What is measured, and the server that it needs; `URL` stands for the target.
const CASES: [(&str, &str, &str); 8] = [
    ("null:, reads", "", "point-read null:"),
    ("SQLite, reads", "", "point-read sqlite:"),
    ("SQLite, writes", "", "point-write sqlite:?synchronous=off"),
    ("SQLite, scans", "", "bulk sqlite: --operation read --fetch whole --rows 100000"),
    ("PostgreSQL, reads, 16 clients", "postgres", "point-read URL --clients 16"),
    ("MariaDB, reads, 16 clients", "mariadb", "point-read URL --clients 16"),
    ("Redis, reads, 16 clients", "redis", "point-read URL --clients 16"),
    ("PostgreSQL, scans", "postgres", "bulk URL --operation read --fetch whole --rows 100000"),
];

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(args, &[("rounds", "7"), ("dist", "")])?;
    let dist = std::fs::canonicalize(given.get("dist"))
        .map_err(|error| format!("--dist '{}': {error}; cargo xtask dist builds it", given.get("dist")))?;
    let kurabe = Kurabe::build("profiles")?;
    let mut going = Going::begin(&CONTEST, &given, "one client process on a processor of its own")?;
    for (name, engine, case) in CASES {
        let server =
            if engine.is_empty() { None } else { Some(Server::start(&kurabe.program, engine, &[])?) };
        let mut variables = server.as_ref().map(Server::variables).unwrap_or_default();
        if let Some(server) = server.as_ref().filter(|_| processors() > 1) {
            server.pin(SERVER)?;
        }
        let url = server.as_ref().map(|server| server.url.clone()).unwrap_or_default();
        variables.extend([("DIST", dist.display().to_string()), ("CASE", case.replace("URL", &url))]);
        going.case(name, &Place::on(&kurabe, CLIENT, variables), &[PUBLISHED, BUILT]);
    }
    going.end()
}
