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

/// A plant: tables, what is asked, and what must be found.
struct Plant {
    name: &'static str,
    /// The unchanged server.
    url: &'static str,
    tables: &'static str,
    /// Statements; `{n}` is the number of the pass.
    asked: &'static str,
    passes: u32,
    /// A part of what is a gain; empty: nothing is.
    wanted: &'static str,
}

const ITEMS: &str = "CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, state int NOT NULL, at int NOT NULL, name text NOT NULL);\
    INSERT INTO item SELECT n, n % 20000, n % 20, n * 7919 % 200003, md5(n::text) FROM generate_series(1, 200000) n;";
const ITEMS_OF_MARIADB: &str = "CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, state int NOT NULL, at int NOT NULL, name text NOT NULL);\
    INSERT INTO item SELECT seq, seq % 20000, seq % 20, seq * 7919 % 200003, md5(seq) FROM seq_1_to_200000;";
const INDEXED: &str = "CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, note text);\
    INSERT INTO item SELECT n, n % 20000, md5(n::text) FROM generate_series(1, 200000) n;\
    CREATE INDEX item_order ON item (order_id);";
const WRITTEN: &str = "CREATE TABLE entry (id int PRIMARY KEY, a text, b text);\
    INSERT INTO entry SELECT n, md5(n::text), md5((n + 1)::text) FROM generate_series(1, 200000) n;\
    CREATE INDEX entry_a ON entry (a, b); CREATE INDEX entry_b ON entry (b, a);";
const WIDE: &str = "CREATE TABLE wide (id int PRIMARY KEY, k int NOT NULL, pad text NOT NULL);\
    INSERT INTO wide SELECT n, n * 7919 % 200003, repeat(md5(n::text), 4) FROM generate_series(1, 200000) n;";

const PLANTS: [Plant; 14] = [
    Plant {
        name: "one column",
        url: "up:postgres",
        tables: ITEMS,
        asked: "SELECT * FROM item WHERE order_id = {n};",
        passes: 60,
        wanted: "(order_id",
    },
    Plant {
        name: "several columns",
        url: "up:postgres",
        tables: ITEMS,
        asked: "SELECT * FROM item WHERE state = {n} % 20 AND at BETWEEN {n} AND {n} + 500;",
        passes: 60,
        wanted: "(state, at",
    },
    Plant {
        name: "order",
        url: "up:postgres",
        tables: ITEMS,
        asked: "SELECT id FROM item ORDER BY at, id LIMIT 10 OFFSET {n};",
        passes: 40,
        wanted: "(at",
    },
    Plant {
        name: "expression",
        url: "up:postgres",
        tables: ITEMS,
        asked: "SELECT id FROM item WHERE lower(name) = md5('{n}');",
        passes: 40,
        wanted: "(lower(name)",
    },
    Plant {
        name: "partial",
        url: "up:postgres",
        tables: ITEMS,
        asked: "SELECT id FROM item WHERE state = 7 AND at < {n};",
        passes: 60,
        wanted: "item (",
    },
    Plant {
        name: "unused index",
        url: "up:postgres",
        tables: WRITTEN,
        asked: "INSERT INTO entry SELECT 1000000 + {n} * 1000 + g, md5((g * {n})::text), md5(g::text) FROM generate_series(1, 500) g;",
        passes: 60,
        wanted: "DROP INDEX",
    },
    Plant {
        name: "sort that spills",
        url: "up:postgres?work_mem=256kB",
        tables: WIDE,
        asked: "SELECT count(*) FROM (SELECT pad, k FROM wide WHERE id > {n} ORDER BY pad, k OFFSET 0) s;",
        passes: 10,
        wanted: "work_mem",
    },
    Plant {
        name: "price of random reads",
        url: "up:postgres?random_page_cost=400",
        tables: INDEXED,
        asked: "SELECT count(note) FROM item WHERE order_id IN ({n}, {n} + 1, {n} + 2);",
        passes: 60,
        wanted: "random_page_cost",
    },
    Plant {
        name: "JIT of short statements",
        url: "up:postgres?jit_above_cost=0&jit_inline_above_cost=0&jit_optimize_above_cost=0",
        tables: INDEXED,
        asked: "SELECT count(note), max(note), min(id) FROM item WHERE order_id = {n} AND id > 5;",
        passes: 40,
        wanted: "jit",
    },
    Plant {
        name: "one column of MariaDB",
        url: "up:mariadb",
        tables: ITEMS_OF_MARIADB,
        asked: "SELECT * FROM item WHERE order_id = {n};",
        passes: 40,
        wanted: "(order_id",
    },
    Plant {
        name: "prefix",
        url: "up:mariadb",
        tables: ITEMS_OF_MARIADB,
        asked: "SELECT id FROM item WHERE name = md5({n});",
        passes: 40,
        wanted: "(name(32)",
    },
    Plant {
        name: "order of MariaDB",
        url: "up:mariadb",
        tables: ITEMS_OF_MARIADB,
        asked: "SELECT id, at FROM item WHERE state = {n} % 20 ORDER BY at, id LIMIT 10;",
        passes: 40,
        wanted: "(state, at",
    },
    Plant {
        name: "nothing helps",
        url: "up:postgres",
        tables: INDEXED,
        asked: "SELECT * FROM item WHERE order_id = {n}; SELECT * FROM item WHERE id = {n};",
        passes: 200,
        wanted: "",
    },
    Plant {
        name: "nothing helps a writer",
        url: "up:postgres",
        tables: INDEXED,
        asked: "INSERT INTO item VALUES (1000000 + {n}, {n}, 'x'); UPDATE item SET note = 'y' WHERE id = {n};",
        passes: 200,
        wanted: "",
    },
];

pub fn run(args: &[String]) -> Outcome {
    let options = Variables::read(args, &[("plants", "all"), ("budget", "3m")])?;
    need("psql", "postgresql-client")?;
    need("mariadb", "mariadb-client")?;
    let kurabe = Kurabe::build("advise")?;
    let named = options.get("plants");
    let is_wanted = |plant: &&Plant| named == "all" || named.split(',').any(|name| name.trim() == plant.name);
    let (mut found, mut all) = (0, 0);
    for plant in PLANTS.iter().filter(is_wanted) {
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
    if found + 2 >= all { Ok(()) } else { Err("fewer than 12 of 14".to_owned()) }
}

/// The lines of what gains.
fn advise(kurabe: &Kurabe, plant: &Plant, budget: &str) -> Result<Vec<String>, String> {
    let file = |name: &str, text: &str| {
        let path = kurabe.scratch.join(name);
        fs::write(&path, text)
            .map(|()| path.display().to_string())
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    let data = file("data.sql", plant.tables)?;
    let passes: Vec<String> =
        (1..=plant.passes).map(|n| plant.asked.replace("{n}", &n.to_string()) + "\n").collect();
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
