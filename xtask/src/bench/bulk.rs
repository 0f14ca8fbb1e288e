//! `cargo xtask bench bulk`: the client's CPU time to read a whole table, with the engine's own tool and with kurabe.
//!
//! Both read as many rows of the same size from one throwaway server: `psql` by COPY, `mariadb --quick` by a SELECT, and kurabe
//! by `bulk --fetch whole`, which checks each row too. The tools write to /dev/null. docs/how-to/bulk.md has results.

use super::contest::{ANY, CLIENT, Contest, Figure, Going, Place, Ran, SERVER, Side};
use super::options::Variables;
use super::run::{Kurabe, processors};
use super::server::Server;
use crate::shell::Outcome;

const CONTEST: Contest = Contest {
    cases: "server",
    figures: &[
        Figure { name: "client CPU, ms/MB", digits: 2, compared: true },
        Figure { name: "peak memory, MB", digits: 0, compared: false },
    ],
    allowed: ANY,
};

/// Bytes of a row: a key of 8 bytes and text.
const ROW_BYTES: u32 = 1_024;

/// The tools, each with its engine and the command that makes the table.
const TOOLS: [(&str, &str, Side); 2] = [
    (
        "postgres",
        "psql -Xqd \"$URL\" -c \"CREATE TABLE bench_bulk (id bigint PRIMARY KEY, data varchar(1024)); INSERT INTO bench_bulk \
         SELECT n, left(repeat(md5(n::text), 32), 1016) FROM generate_series(1, $ROWS) n; ANALYZE bench_bulk\"",
        Side {
            name: "psql -c \"COPY … TO STDOUT\"",
            program: ["psql", "postgresql-client"],
            command: "exec psql -Xqd \"$URL\" -c 'COPY bench_bulk TO STDOUT' >/dev/null",
            nothing: "exec psql -Xqd \"$URL\" -c 'SELECT 1' >/dev/null",
            read: |ran, nothing| Some(cpu_per_mb(ran, nothing)),
        },
    ),
    (
        "mariadb",
        "$MARIADB --execute \"CREATE TABLE bench_bulk (id bigint PRIMARY KEY, data varchar(1024)); INSERT INTO bench_bulk \
         SELECT seq, LEFT(REPEAT(MD5(seq), 32), 1016) FROM seq_1_to_$ROWS\"",
        Side {
            name: "mariadb --quick",
            program: ["mariadb", "mariadb-client"],
            command: "exec $MARIADB --execute 'SELECT id, data FROM bench_bulk' >/dev/null",
            nothing: "exec $MARIADB --execute 'SELECT 1' >/dev/null",
            read: |ran, nothing| Some(cpu_per_mb(ran, nothing)),
        },
    ),
];

/// The client's CPU, without that of a trivial statement. What the memory was is not known.
fn cpu_per_mb(ran: &Ran, nothing: &Ran) -> Vec<f64> {
    vec![(ran.cpu - nothing.cpu) * 1e3 / ran.work, f64::NAN]
}

const OURS: Side = Side {
    command: "ours bulk \"$URL\" --operation read --fetch whole --rows $ROWS --row-bytes 1024 --rounds 1 --requests 1 \
              --interleave=off",
    read: |ran, _| {
        Some(vec![ran.mean("client CPU per MB (ns)")? / 1e6, ran.mean("peak memory (bytes)")? / 1e6])
    },
    ..Side::OURS
};

pub fn run(args: &[String]) -> Outcome {
    let given =
        Variables::read(args, &[("rounds", "5"), ("rows", "500000"), ("engines", "postgres,mariadb")])?;
    let (kurabe, rows) = (Kurabe::build("bulk")?, given.number("rows")?);
    let mut going = Going::begin(&CONTEST, &given, &format!("{rows} rows"))?;
    for (engine, fill, tool) in TOOLS {
        if !given.list("engines").iter().any(|name| name == engine) {
            continue;
        }
        let server = Server::start(&kurabe.program, engine, &[])?;
        server.pin(if processors() > 1 { SERVER } else { CLIENT })?;
        let client = format!(
            "mariadb --no-defaults --quick --batch --skip-column-names --user=kurabe --host={} --port={} --protocol=tcp kurabe",
            server.host, server.port
        );
        let mut variables = server.variables();
        variables.extend([("ROWS", rows.to_string()), ("MARIADB", client)]);
        let work = f64::from(rows) * f64::from(ROW_BYTES) / 1e6;
        let place = Place { work, ..Place::on(&kurabe, CLIENT, variables) };
        place.run(fill)?;
        going.case(&server.version, &place, &[tool, OURS]);
    }
    going.end()
}
