//! `cargo xtask bench stacks`: the rate of application stacks that ab and Kurabe measure, in pairs.
//!
//! Both request the same running stack, for as long and with as many clients, after a warm-up. ab requests records that the
//! application draws; Kurabe names them, compares each, and measures twice (a cell and its A/A control). The stack and its
//! database share one processor and the tools have another: a tool that compares answers would otherwise take the stack's
//! processor. The median of the ratios must be within 5 % of 1.

use std::process::Stdio;

use super::contest::{CLIENT, Contest, Figure, Going, Place, SERVER, Side};
use super::options::Variables;
use super::run::{Kurabe, need, said};
use super::serving::{Serving, ab_rate};
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "stack | page",
    figures: &[Figure { name: "requests/s", digits: 0, compared: true }],
    allowed: [0.95, 1.05],
};

/// Kurabe warms up too. Without a number of requests, ab ends after 50,000.
const AB: Side = Side {
    name: "ab",
    program: ["ab", "apache2-utils"],
    command: "$AB -t 1 -n 100000000 \"$PLACE/$PAGE\" >/dev/null && $AB -t $SECONDS_EACH -n 100000000 \"$PLACE/$PAGE\"",
    read: |ran, _| Some(vec![ab_rate(ran)?]),
    ..Side::PLAIN
};

/// The control takes the other half.
const OURS: Side = Side {
    command: "ours $EXPERIMENT --via \"$URL\" --operation read --duration $((SECONDS_EACH * 500))ms --clients $CLIENTS --rounds 1 \
              --interleave=off",
    ..Side::OURS
};

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(
        args,
        &[
            ("rounds", "10"),
            ("clients", "8"),
            ("seconds", "2"),
            ("stacks", "php/mysqli-persistent,java/hikari"),
            ("db", "up:mariadb"),
            ("page", "kv/read"),
        ],
    )?;
    need("ab", "apache2-utils")?;
    let kurabe = Kurabe::build("stacks")?;
    let (clients, seconds, database) = (given.number("clients")?, given.number("seconds")?, given.get("db"));
    let experiment = match given.get("page") {
        "kv/read" => "kv",
        "connect/new" => "connect --connection per-request",
        other => return Err(format!("--page {other}: there are kv/read and connect/new")),
    };
    let version = said("ab", &["-V"]);
    let version = version.lines().next().unwrap_or_default();
    let about = format!("{version}; {database}, {clients} clients, {seconds} s each");
    let mut going = Going::begin(&CONTEST, &given, &about)?;
    for stack in given.list("stacks") {
        let (name, variant) =
            stack.split_once('/').ok_or_else(|| format!("'{stack}' is not STACK/VARIANT"))?;
        let start =
            format!("exec \"$KURABE\" up stack {name} --variant {variant} --db '{database}' --records 10k");
        let serving = Serving::start(kurabe.shell(Some(SERVER), &start).stderr(Stdio::null()))?;
        // ab takes user and password apart from the URL.
        let (login, place) = serving.url.trim_start_matches("http://").split_once('@').unwrap_or_default();
        let variables = vec![
            ("URL", serving.url.clone()),
            ("PLACE", format!("http://{place}")),
            ("PAGE", given.get("page").to_owned()),
            ("AB", format!("ab -q -k -c {clients} -A {login}")),
            ("CLIENTS", clients.to_string()),
            ("SECONDS_EACH", seconds.to_string()),
            ("EXPERIMENT", experiment.to_owned()),
        ];
        let place = Place::on(&kurabe, CLIENT, variables);
        // Java compiles then.
        place.run("$AB -t 15 -n 100000000 \"$PLACE/$PAGE\"")?;
        going.case(&format!("`{stack}` | `/{}`", given.get("page")), &place, &[AB, OURS]);
    }
    going.end()
}
