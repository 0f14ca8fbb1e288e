//! `cargo xtask bench capture`: what `kurabe capture` costs an application: the same client without it and with it.
//!
//! PostgreSQL with `pgbench -S`, whose server, client and relay share all processors; with one client, the difference is that of
//! a round trip. Then Redis with `redis-benchmark`, where the relay alone has a processor: what one processor relays.

use super::contest::{ANY, CLIENT, Contest, Figure, Going, Place, SERVER, Side};
use super::options::Variables;
use super::run::Kurabe;
use super::server::Server;
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "server | clients",
    figures: &[
        Figure { name: "requests/s", digits: 0, compared: true },
        Figure { name: "clients ÷ rate, µs", digits: 1, compared: false },
    ],
    allowed: ANY,
};

const PGBENCH: Side = Side {
    name: "without",
    program: ["pgbench", "postgresql-contrib"],
    command: "pgbench -n -S -M prepared -c $CLIENTS -j 1 -T 2 \"$URL\"",
    // `tps = 50229.479920 (without initial connection time)`
    read: |ran, _| Some(rate(ran.after("tps =")?, ran.work)),
    ..Side::PLAIN
};

const PGBENCH_CAPTURED: Side = Side {
    name: "kurabe capture",
    command: "\"$KURABE\" capture \"$URL\" -o \"$SCRATCH/bench.capture\" -- \
              sh -c 'pgbench -n -S -M prepared -c $CLIENTS -j 1 -T 2 \"$KURABE_URL\"'; rm \"$SCRATCH/bench.capture\"",
    ..PGBENCH
};

const REDIS: Side = Side {
    name: "without",
    program: ["redis-benchmark", "redis-tools"],
    command: "taskset -c $SERVER redis-benchmark -a $REDISCLI_AUTH -p $PORT -c $CLIENTS -n 100000 -t get --csv",
    // `"GET","58651.03","0.24",…`
    read: |ran, _| Some(rate(ran.after("\"GET\",\"")?, ran.work)),
    ..Side::PLAIN
};

const REDIS_CAPTURED: Side = Side {
    name: "kurabe capture",
    command: "taskset -c $CLIENT \"$KURABE\" capture \"$URL\" -o \"$SCRATCH/bench.capture\" -- \
              sh -c 'taskset -c $SERVER redis-benchmark -a $REDISCLI_AUTH -p $KURABE_PORT -c $CLIENTS -n 100000 -t get --csv'; \
              rm \"$SCRATCH/bench.capture\"",
    ..REDIS
};

fn rate(rate: f64, clients: f64) -> Vec<f64> {
    vec![rate, clients / rate * 1e6]
}

pub fn run(args: &[String]) -> Outcome {
    let given = Variables::read(args, &[("rounds", "5"), ("clients", "1,16,64")])?;
    let kurabe = Kurabe::build("capture")?;
    let mut going = Going::begin(&CONTEST, &given, "pgbench, redis-benchmark")?;
    for (engine, sides) in [("postgres", [PGBENCH, PGBENCH_CAPTURED]), ("redis", [REDIS, REDIS_CAPTURED])] {
        let server = Server::start(&kurabe.program, engine, &[])?;
        let mut variables = server.variables();
        variables.extend([("CLIENT", CLIENT.to_owned()), ("SERVER", SERVER.to_owned())]);
        let mut place = Place::new(&kurabe, variables);
        if engine == "postgres" {
            place.run("pgbench -i -q \"$URL\"")?;
        } else {
            server.pin(SERVER)?;
        }
        for clients in given.numbers("clients")? {
            place.work = f64::from(clients);
            place.variables.retain(|(name, _)| *name != "CLIENTS");
            place.variables.push(("CLIENTS", clients.to_string()));
            going.case(&format!("{} | {clients}", server.version), &place, &sides);
        }
    }
    going.end()
}
