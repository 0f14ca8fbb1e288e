//! `cargo xtask bench copy`: a table copied by `kurabe copy`, beside pgloader (to PostgreSQL) and beside the engine's own dump
//! that is piped into its client (`pg_dump | psql`, `mysqldump | mysql`).
//!
//! pgloader 3.6 cannot log in to MySQL 9 ("unsupported authentication"), so that the source is MariaDB by default. Both
//! copy the same table between the same throwaway servers. The others run with their own defaults, but for pgloader with more than a
//! million rows: its memory does not suffice for ten million then. `kurabe copy` also compares
//! every value, which is part of its time, and is shown apart. Nothing is pinned: the programs have threads that read and
//! threads that write. Each command first removes the table and at its end counts the rows, which is in its time. The median of
//! the ratios with pgloader must not exceed 1.

use super::contest::{ANY, Contest, Figure, Going, Place, Side};
use super::options::Variables;
use super::run::{Kurabe, need, said};
use super::server::Server;
use crate::shell::Outcome;

const FIGURES: &[Figure] = &[
    Figure { name: "time, s", digits: 2, compared: true },
    Figure { name: "CPU, s", digits: 2, compared: true },
    Figure { name: "copying alone, s", digits: 2, compared: false },
    Figure { name: "comparing alone, s", digits: 2, compared: false },
];
const CONTEST: Contest = Contest { cases: "from | to", figures: FIGURES, allowed: ANY };
const OF_PGLOADER: Contest = Contest { allowed: [0.0, 1.0], ..CONTEST };

/// It makes a schema with the name of MySQL's database, and ends with code 0 after an error too.
const PGLOADER: Side = Side {
    name: "pgloader",
    program: ["pgloader", "pgloader"],
    command: "echo 'DROP TABLE IF EXISTS public.bench_copy; DROP SCHEMA IF EXISTS kurabe CASCADE' | $TO_SQL && \
              HOME=\"$SCRATCH\" TMPDIR=\"$SCRATCH\" pgloader --with \"prefetch rows = $PREFETCH\" \"$LOAD_FROM\" \"$LOAD_TO\" && \
              echo 'SET search_path TO kurabe, public; SELECT count(*) FROM bench_copy' | $TO_SQL | grep -qx $ROWS",
    read: |ran, _| (!ran.said.contains(" ERROR ")).then(|| vec![ran.wall, ran.cpu, f64::NAN, f64::NAN]),
    ..Side::PLAIN
};

const DUMP: Side = Side {
    name: "dump",
    program: ["bash", "bash"],
    command: "echo 'DROP TABLE IF EXISTS bench_copy' | $TO_SQL && bash -c \"set -o pipefail; $FROM_DUMP | $TO_SQL >/dev/null\" && \
              echo 'SELECT count(*) FROM bench_copy' | $TO_SQL | grep -qx $ROWS",
    read: PGLOADER.read,
    ..Side::PLAIN
};

/// What the table costs on its way: its text is compared without regard to case on MySQL.
const OURS: Side = Side {
    name: "kurabe copy",
    command: "echo \"DROP TABLE IF EXISTS bench_copy; $DROP_SCHEMA\" | $TO_SQL && \"$KURABE\" copy \"$FROM\" \"$TO\" --tables bench_copy \
              --accept collation --report json --jobs $JOBS && echo 'SELECT count(*) FROM bench_copy' | $TO_SQL | grep -qx $ROWS",
    read: |ran, _| Some(vec![ran.wall, ran.cpu, ran.after("\"copy_s\":")?, ran.after("\"verify_s\":")?]),
    ..Side::OURS
};

/// One end of a copy: a server, or a file of SQLite.
struct End {
    version: String,
    url: String,
    /// The commands that execute statements of their input, and that print the database as statements.
    sql: String,
    dump: String,
    /// As pgloader takes it.
    loaded: String,
    _server: Option<Server>,
}

impl End {
    fn start(kurabe: &Kurabe, engine: &str) -> Result<Self, String> {
        if engine == "sqlite" {
            let file = kurabe.scratch.join("source.db").display().to_string();
            return Ok(Self {
                version: "sqlite".to_owned(),
                url: format!("sqlite:{file}"),
                sql: format!("sqlite3 {file}"),
                dump: format!("sqlite3 {file} .dump"),
                loaded: format!("sqlite://{file}"),
                _server: None,
            });
        }
        let server = Server::start(&kurabe.program, engine, &[])?;
        let (host, port, password) = (&server.host, &server.port, &server.password);
        let (version, url) = (server.version.clone(), server.url.clone());
        let at = format!("--user=kurabe --protocol=tcp --host={host} --port={port} kurabe");
        let (sql, dump, loaded) = if engine == "postgres" {
            let quiet = "--no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1";
            let loaded = format!("postgresql://kurabe:{password}@{host}:{port}/kurabe");
            (format!("psql {quiet} --dbname={url}"), format!("pg_dump --dbname={url}"), loaded)
        } else {
            let loaded = format!("mysql://root:{password}@{host}:{port}/kurabe");
            let dump = format!("env MYSQL_PWD={password} mysqldump --no-defaults --single-transaction {at}");
            (
                format!("env MYSQL_PWD={password} mysql --no-defaults --batch --skip-column-names {at}"),
                dump,
                loaded,
            )
        };
        Ok(Self { version, url, sql, dump, loaded, _server: Some(server) })
    }
}

pub fn run(args: &[String]) -> Outcome {
    let pairs = "mariadb-postgres,sqlite-postgres,postgres-postgres,mariadb-mariadb";
    let given =
        Variables::read(args, &[("rounds", "5"), ("rows", "300000"), ("pairs", pairs), ("jobs", "1")])?;
    for (program, package) in
        [("psql", "postgresql-client"), ("mysql", "default-mysql-client"), ("sqlite3", "sqlite3")]
    {
        need(program, package)?;
    }
    let (kurabe, rows) = (Kurabe::build("copy")?, given.number("rows")?);
    let version = said("pgloader", &["--version"]);
    let version = version.lines().next().unwrap_or("no pgloader").to_owned();
    let about = format!("{version}; {rows} rows, --jobs {}", given.number("jobs")?);
    let mut going = Going::begin(&OF_PGLOADER, &given, &about)?;
    for pair in given.list("pairs") {
        let (from, to) = pair.split_once('-').ok_or("a pair is SOURCE-TARGET")?;
        let (source, target) = (End::start(&kurabe, from)?, End::start(&kurabe, to)?);
        let is_postgres = to == "postgres";
        let text = |text: &str| text.to_owned();
        let variables = vec![
            ("ROWS", rows.to_string()),
            ("JOBS", text(given.get("jobs"))),
            ("FROM", source.url.clone()),
            // pgloader makes its own schema the first of the database's search path.
            ("TO", target.url.clone() + if is_postgres { "?search_path=public" } else { "" }),
            ("DROP_SCHEMA", text(if is_postgres { "DROP SCHEMA IF EXISTS kurabe CASCADE" } else { "" })),
            ("FROM_SQL", source.sql),
            ("FROM_DUMP", source.dump),
            ("PREFETCH", if rows > 1_000_000 { "10000" } else { "100000" }.to_owned()),
            ("LOAD_FROM", source.loaded),
            ("LOAD_TO", target.loaded),
            ("TO_SQL", target.sql),
            ("FILL", fill(rows, from)),
        ];
        let place = Place::new(&kurabe, variables);
        place.run("printf '%s' \"$FILL\" | $FROM_SQL")?;
        // Its own dump may be quicker: it compares nothing.
        let loads = from != to;
        let other = if loads { PGLOADER } else { DUMP };
        going.contest = if loads { &OF_PGLOADER } else { &CONTEST };
        going.case(&format!("{} | {}", source.version, target.version), &place, &[other, OURS]);
    }
    going.end()
}

/// The statements that make and fill the table: that of sysbench, with a decimal number and a time. The texts are as long, and
/// the same in each run.
fn fill(rows: u32, engine: &str) -> String {
    let digits = "(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL \
                  SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    let places = rows.saturating_sub(1).to_string().len();
    let number: Vec<String> = (0..places).map(|at| format!("t{at}.d * {}", 10_u64.pow(at as u32))).collect();
    let from: Vec<String> = (0..places).map(|at| format!("{digits} t{at}")).collect();
    // Identity, time, and texts of 120 and 60 characters.
    let (identity, datetime, time, texts) = match engine {
        "sqlite" => (
            "integer NOT NULL PRIMARY KEY",
            "datetime",
            "datetime('2020-01-01', n || ' seconds')",
            ["substr(printf('%024d', n * 7919) || hex(zeroblob(60)), 1, 120)", "printf('%060d', n * 104729)"],
        ),
        "postgres" => (
            "int NOT NULL PRIMARY KEY",
            "timestamp",
            "timestamp '2020-01-01' + n * interval '1 second'",
            ["left(repeat(md5(n::text), 4), 120)", "left(repeat(md5((-n)::text), 2), 60)"],
        ),
        _ => (
            "int NOT NULL AUTO_INCREMENT PRIMARY KEY",
            "datetime",
            "TIMESTAMPADD(SECOND, n, '2020-01-01 00:00:00')",
            ["LEFT(REPEAT(SHA2(n, 256), 2), 120)", "LEFT(SHA2(-n, 256), 60)"],
        ),
    };
    format!(
        "CREATE TABLE bench_copy (id {identity}, k int NOT NULL, amount decimal(10,2) NOT NULL, \
         placed {datetime} NULL, c char(120) NOT NULL, pad char(60) NOT NULL); CREATE INDEX bench_copy_k ON bench_copy (k); \
         INSERT INTO bench_copy SELECT n, 1 + n * 7 % 100000, n / 100.0, {time}, {}, {} \
         FROM (SELECT 1 + {} AS n FROM {}) numbers WHERE n <= {rows};",
        texts[0],
        texts[1],
        number.join(" + "),
        from.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_row_for_each_number() {
        for engine in ["sqlite", "postgres", "mariadb"] {
            let text = fill(300_000, engine);
            assert!(text.contains("t5.d * 100000") && text.contains("n <= 300000"), "{text}");
            assert_eq!(text.matches("SELECT 0 AS d").count(), 6);
            assert_eq!(fill(1_000_000, engine).matches("SELECT 0 AS d").count(), 6);
        }
    }
}
