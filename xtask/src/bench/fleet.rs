//! `cargo xtask bench fleet`: what the way through a fleet costs.
//!
//! Point reads with one agent on a broker, beside the same run without a fleet, on the same server. The median of the ratios
//! must not be below 0.97. Then simulated agents report to a coordinator for a minute, which must need less than half a
//! processor and 500 MB.

use super::contest::{Contest, Figure, Going, Place, Side};
use super::options::Variables;
use super::run::Kurabe;
use super::server::Server;
use super::serving::{Background, Listening};
use crate::shell::{self, Outcome};

const CONTEST: Contest = Contest {
    cases: "engine",
    figures: &[Figure { name: "reads/s", digits: 0, compared: true }],
    allowed: [0.97, f64::INFINITY],
};

const ALONE: Side = Side {
    name: "without a fleet",
    command: "ours point-read \"$URL\" $LENGTH --interleave=off",
    ..Side::OURS
};

const AGENT: Side = Side {
    name: "one agent",
    command: "ours point-read \"$URL\" $LENGTH --interleave=off --fleet \"$BROKER\" --agents 1",
    ..ALONE
};

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(
        args,
        &[
            ("rounds", "9"),
            ("engines", "memcached,postgres"),
            ("clients", "8"),
            ("duration", "1s"),
            ("agents", "1000"),
            ("seconds", "60"),
        ],
    )?;
    let kurabe = Kurabe::build("fleet")?;
    let broker = Listening::start(&["nats-server", "-a", "127.0.0.1", "-p"])?;
    let url = format!("nats://127.0.0.1:{}", broker.port);
    let _agent = Background::start(kurabe.command().args(["agent", "--broker", &url, "--name", "one"]))?;
    let length =
        format!("--clients={} --duration={} --rounds=3", given.number("clients")?, given.get("duration"));
    let mut going = Going::begin(&CONTEST, &given, &format!("point-read {length}; loopback"))?;
    for engine in given.list("engines") {
        let server = Server::start(&kurabe.program, &engine, &[])?;
        let mut variables = server.variables();
        variables.extend([("LENGTH", length.clone()), ("BROKER", url.clone())]);
        let place = Place::new(&kurabe, variables);
        going.case(&engine, &place, &[ALONE, AGENT]);
    }
    // The test of the coordinator, with as many agents and for as long.
    let mut cargo = shell::cargo();
    cargo.args(["test", "--workspace", "--test", "many_agents", "coordinator_of_many", "--", "--nocapture"]);
    cargo.env("KURABE_SIMULATED_AGENTS", given.get("agents"));
    cargo.env("KURABE_SIMULATED_SECONDS", given.get("seconds"));
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if !status.success() {
        going.problem(format!("the coordinator's test ended with {status}"));
    }
    going.end()
}
