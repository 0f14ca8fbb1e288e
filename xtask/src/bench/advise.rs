//! `cargo xtask bench advise`: what `kurabe advise` finds of what was planted, and what it calls a gain where nothing helps.
//!
//! An application is a script of statements for `psql` or `mariadb`, captured on a throwaway server with its tables.
//!
//! - `--plants all`: their names, with commas
//! - `--budget 3m`: that of each

use super::options::Variables;
use super::run::{Kurabe, need};
use crate::shell::{self, Outcome};
use std::fs;

/// A plant a line.
const PLANTS: &str = include_str!("advise.txt");

/// The tables, by name.
const TABLES: [(&str, &str); 9] = [
    (
        "items",
        "CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, state int NOT NULL, at int NOT NULL, name text NOT NULL);\
        INSERT INTO item SELECT n, n % 20000, n % 20, n * 7919 % 200003, md5(n::text) FROM generate_series(1, 200000) n;",
    ),
    (
        "items of mariadb",
        "CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, state int NOT NULL, at int NOT NULL, name text NOT NULL);\
        INSERT INTO item SELECT seq, seq % 20000, seq % 20, seq * 7919 % 200003, md5(seq) FROM seq_1_to_200000;",
    ),
    (
        "indexed",
        "CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, note text);\
        INSERT INTO item SELECT n, n % 20000, md5(n::text) FROM generate_series(1, 200000) n;\
        CREATE INDEX item_order ON item (order_id);",
    ),
    (
        "written",
        "CREATE TABLE entry (id int PRIMARY KEY, a text, b text);\
        INSERT INTO entry SELECT n, md5(n::text), md5((n + 1)::text) FROM generate_series(1, 200000) n;\
        CREATE INDEX entry_a ON entry (a, b); CREATE INDEX entry_b ON entry (b, a);",
    ),
    (
        "indexed of mariadb",
        "CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, note varchar(40));\
        INSERT INTO item SELECT seq, seq % 20000, md5(seq) FROM seq_1_to_200000; CREATE INDEX item_order ON item (order_id);",
    ),
    (
        "written of mariadb",
        "CREATE TABLE entry (id int PRIMARY KEY, a varchar(40), b varchar(40));\
        INSERT INTO entry SELECT seq, md5(seq), md5(seq + 1) FROM seq_1_to_200000;\
        CREATE INDEX entry_a ON entry (a, b); CREATE INDEX entry_b ON entry (b, a);",
    ),
    (
        "sales",
        "CREATE SCHEMA sales; CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL);\
        CREATE TABLE sales.item (id int PRIMARY KEY, order_id int NOT NULL, note text);\
        INSERT INTO sales.item SELECT n, n % 20000, md5(n::text) FROM generate_series(1, 200000) n;",
    ),
    (
        "joined",
        "DO $$ BEGIN FOR i IN 0..8 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY KEY, v%s text)', i, i);\
        EXECUTE format('INSERT INTO t%s SELECT n, md5(n::text) FROM generate_series(1, 2000) n', i); END LOOP; END $$; ANALYZE t0, t1, t2, t3, t4, t5, t6, t7, t8;",
    ),
    (
        "wide",
        "CREATE TABLE wide (id int PRIMARY KEY, k int NOT NULL, pad text NOT NULL);\
        INSERT INTO wide SELECT n, n * 7919 % 200003, repeat(md5(n::text), 4) FROM generate_series(1, 200000) n;",
    ),
];

/// A plant: tables, what is asked, and what must be found.
struct Plant<'a> {
    name: &'a str,
    /// The unchanged server.
    url: &'a str,
    tables: &'a str,
    passes: u32,
    /// A part of what is a gain; empty: nothing is.
    wanted: &'a str,
    /// Statements; `{n}` is the number of the pass, `{line}` begins a line.
    asked: &'a str,
}

impl<'a> Plant<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let [name, url, tables, passes, wanted, asked] =
            *line.splitn(6, '|').map(str::trim).collect::<Vec<_>>().as_slice()
        else {
            return None;
        };
        let (_, tables) = TABLES.iter().find(|(known, _)| *known == tables)?;
        Some(Self { name, url, tables, passes: passes.parse().ok()?, wanted, asked })
    }
}

pub fn run(args: &[String]) -> Outcome {
    let options = Variables::read(args, &[("plants", "all"), ("budget", "3m")])?;
    need("psql", "postgresql-client")?;
    need("mariadb", "mariadb-client")?;
    let kurabe = Kurabe::build("advise")?;
    let named = options.get("plants");
    let is_wanted =
        |plant: &&Plant<'_>| named == "all" || named.split(',').any(|name| name.trim() == plant.name);
    let (mut found, mut all) = (0, 0);
    let plants: Vec<Plant<'_>> = PLANTS.lines().filter_map(Plant::read).collect();
    for plant in plants.iter().filter(is_wanted) {
        let gains = advise(&kurabe, plant, options.get("budget"))?;
        let is_found = if plant.wanted.is_empty() {
            gains.is_empty()
        } else {
            gains.iter().any(|gain| gain.contains(plant.wanted))
        };
        (found, all) = (found + u32::from(is_found), all + 1);
        println!("{:24} {:8} {}", plant.name, if is_found { "as meant" } else { "NOT" }, gains.join("; "));
    }
    println!("{found} of {all} as meant");
    if 7 * found >= 6 * all { Ok(()) } else { Err("fewer than 6 of 7".to_owned()) }
}

/// The lines of what gains.
fn advise(kurabe: &Kurabe, plant: &Plant<'_>, budget: &str) -> Result<Vec<String>, String> {
    let file = |name: &str, text: &str| {
        let path = kurabe.scratch.join(name);
        fs::write(&path, text)
            .map(|()| path.display().to_string())
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    let data = file("data.sql", plant.tables)?;
    let asked = plant.asked.replace("{line}", "\n");
    let passes: Vec<String> =
        (1..=plant.passes).map(|n| asked.replace("{n}", &n.to_string()) + "\n").collect();
    let script = file("script.sql", &passes.concat())?;
    let capture = kurabe.scratch.join("plant.capture").display().to_string();
    let _ = fs::remove_file(&capture);
    let client = if plant.url.starts_with("up:mariadb") {
        "mariadb --no-defaults --protocol=tcp --port=$MYSQL_TCP_PORT --user=kurabe kurabe <"
    } else {
        "psql -qX -v ON_ERROR_STOP=1 -f"
    };
    // The tables are made through the relay of another capture.
    let engine = plant.url.split('?').next().unwrap_or_default().trim_start_matches("up:");
    let server = super::server::Server::start(&kurabe.program, engine, &[])?;
    for (output, input) in
        [(kurabe.scratch.join("tables.capture").display().to_string(), &data), (capture.clone(), &script)]
    {
        let _ = fs::remove_file(&output);
        let command = format!("{client} {input} > /dev/null");
        let mut record = kurabe.command();
        record.args(["capture", &server.url, "-o", &output, "--quiet", "--", "sh", "-ec", &command]);
        record.envs(server.variables());
        shell::run(&mut record, "kurabe capture")?;
    }
    drop(server);
    let mut advise = kurabe.command();
    advise.args([
        "advise", &capture, plant.url, "--data", &data, "--budget", budget, "--report", "json", "--quiet",
    ]);
    let said = shell::run(&mut advise, "kurabe advise")?;
    // Our own format: the labels before the list of others are those of gains.
    let gains = said.split("\"others\"").next().unwrap_or_default();
    let label = |line: &str| {
        line.trim().strip_prefix("\"label\": \"").map(|rest| rest.trim_end_matches("\",").to_owned())
    };
    Ok(gains.lines().filter_map(label).collect())
}
