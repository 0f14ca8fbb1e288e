//! `cargo xtask bench app`: the web tier's own cost for a request.
//!
//! Beside each other: the program's `kurabe up app`, that of another build if one is named, the same database calls without a
//! web tier, and the kernel's floor: a program that only receives a request and answers it. ab requests the pages.
//! docs/web-tier.md has a table, and says what the figures are.

use std::process::Stdio;

use super::contest::{ANY, Contest, Figure, Going, Place, Row, Side};
use super::floor;
use super::options::Variables;
use super::run::{Kurabe, Spread, need};
use super::server::Server;
use super::serving::{Serving, ab_rate};
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "engine | connections of clients | page",
    figures: &[
        Figure { name: "CPU, µs/request", digits: 1, compared: true },
        Figure { name: "requests/s", digits: 0, compared: true },
    ],
    allowed: ANY,
};

/// Concurrent requests to the database, with and without the application.
const WORKERS: &str = "16";

/// ab's requests of a page, and the CPU of the program that serves it. All of it is in the servers' CPU: the others are idle.
const APP: Side = Side {
    name: "kurabe up app",
    program: ["ab", "apache2-utils"],
    command: "$AB \"$APP/kv/$PAGE\"",
    read: |ran, _| Some(vec![ran.servers * 1e6 / ran.work, ab_rate(ran)?]),
    ..Side::OURS
};
const BESIDE: Side = Side { name: "the other build", command: "$AB \"$BESIDE/kv/$PAGE\"", ..APP };
const FLOOR: Side = Side { name: "kernel's floor", command: "$AB \"$FLOOR/\"", ..APP };
const CALL: Side = Side {
    name: "the call alone",
    command: "ours kv \"$URL\" --operation $PAGE --clients 16 --records 10k --rounds 1 --duration 1s",
    read: |ran, _| Some(vec![ran.mean("client_cpu_us_per_op")?, f64::NAN]),
    ..APP
};

pub fn run(args: &[String]) -> Outcome {
    if args.first().is_some_and(|arg| arg == floor::ARGUMENT) {
        return floor::serve(args.get(1).is_some_and(|arg| arg == floor::KEPT));
    }
    let given = Variables::read(
        args,
        &[
            ("rounds", "5"),
            ("requests", "30000"),
            ("clients", "100"),
            ("engines", "null,postgres"),
            ("beside", ""),
        ],
    )?;
    let (requests, clients) = (given.number("requests")?, given.number("clients")?);
    if requests < clients {
        return Err("--requests: fewer than --clients".to_owned());
    }
    need("ab", "apache2-utils")?;
    let kurabe = Kurabe::build("app")?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let own = own.display();
    let floors = [floor::KEPT, "anew"]
        .map(|kind| serve(&kurabe, &format!("'{own}' bench app {} {kind}", floor::ARGUMENT)));
    let [kept_floor, new_floor] = floors;
    let (kept_floor, new_floor) = (kept_floor?, new_floor?);
    let about = format!("{requests} requests each by `ab -c {clients}`, {WORKERS} workers");
    let mut going = Going::begin(&CONTEST, &given, &about)?;
    for engine in given.list("engines") {
        // SQLite and `null:` are in the process, and need no server.
        let server = match engine.as_str() {
            "null" | "sqlite" => None,
            _ => Some(Server::start(&kurabe.program, &engine, &[])?),
        };
        let url = server.as_ref().map_or_else(|| format!("{engine}:"), |server| server.url.clone());
        let app = |program: &str| {
            serve(
                &kurabe,
                &format!(
                    "{program} up app '{url}' --listen 127.0.0.1:0 --experiment kv --records 10k --workers {WORKERS} \
                     --allow-get-writes"
                ),
            )
        };
        let beside = match given.get("beside") {
            "" => None,
            program => Some(app(&format!("'{program}'"))?),
        };
        let app = app("\"$KURABE\"")?;
        for (kept, page) in [(true, "read"), (true, "write"), (false, "read"), (false, "write")] {
            let floor = if kept { &kept_floor } else { &new_floor };
            let cpu = || app.cpu() + floor.cpu() + beside.as_ref().map_or(0.0, Serving::cpu);
            let ab =
                |requests: u32| format!("ab -q -c {clients}{} -n {requests}", if kept { " -k" } else { "" });
            let place = |requests: u32| Place {
                kurabe: &kurabe,
                processor: None,
                variables: vec![
                    ("AB", ab(requests)),
                    ("PAGE", page.to_owned()),
                    ("URL", url.clone()),
                    ("APP", app.url.clone()),
                    ("FLOOR", floor.url.clone()),
                    ("BESIDE", beside.as_ref().map_or(String::new(), |beside| beside.url.clone())),
                ],
                servers: &cpu,
                work: f64::from(requests),
            };
            let others = beside.iter().map(|_| BESIDE).chain([CALL, FLOOR]);
            let sides: Vec<Side> = others.chain([APP]).collect();
            // Opens the connections to the database.
            for side in sides.iter().filter(|side| side.name != CALL.name) {
                place(clients.max(1_000)).run(side.command)?;
            }
            let connections = if kept { "kept" } else { "per request" };
            let case = format!("{engine} | {connections} | {page}");
            if let Some(rows) = going.case(&case, &place(requests), &sides) {
                println!("| {case} | less the call | {:.1} | – | – | – |", less(&rows, &[CALL.name]));
                println!(
                    "| {case} | less the call and the floor | {:.1} | – | – | – |",
                    less(&rows, &[CALL.name, FLOOR.name])
                );
            }
        }
    }
    going.end()
}

fn serve(kurabe: &Kurabe, command: &str) -> Result<Serving, String> {
    Serving::start(kurabe.shell(None, &format!("exec {command}")).stderr(Stdio::null()))
}

/// Our first figure less those of other sides, within each round.
fn less(rows: &[Row], others: &[&str]) -> Spread {
    let of = |row: &Row, round: usize| row.samples[round][0];
    let rounds = rows.last().map_or(0, |ours| ours.samples.len());
    let others: Vec<&Row> = rows.iter().filter(|row| others.contains(&row.name)).collect();
    Spread::of((0..rounds).map(|round| {
        let ours = rows.last().map_or(f64::NAN, |ours| of(ours, round));
        ours - others.iter().map(|row| of(row, round)).sum::<f64>()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_taken_within_each_round() {
        let row =
            |name, figures: [f64; 3]| Row { name, samples: figures.map(|figure| vec![figure]).to_vec() };
        let rows = [row("call", [1.0, 12.0, 20.0]), row("floor", [2.0; 3]), row("app", [10.0, 20.0, 30.0])];
        assert_eq!(format!("{:.1}", less(&rows, &["call"])), "9.0 (8.0–10.0)");
        assert_eq!(format!("{:.1}", less(&rows, &["call", "floor"])), "7.0 (6.0–8.0)");
    }

    #[test]
    fn fewer_requests_than_clients_are_rejected() {
        let args = ["--requests", "10", "--clients", "11"].map(str::to_owned);
        assert!(run(&args).unwrap_err().contains("fewer than"));
    }
}
