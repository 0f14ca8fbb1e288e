//! Random databases: tables, names, comments, privileges and objects of every kind, copied between all pairs of engines. The engines'
//! own programs read both sides: each row and each definition is there, or in the plan, or the copy is refused before its first row.
//!
//! Each name and each text has a tag of its own, so that what became of it can be found in any text of a catalogue.

use super::common::{Place, begun, run_planned, wanted_all};
use super::random::draw::Draw;
use kurabe_copy::page::PageSize;
use kurabe_copy::run::How;
use kurabe_core::ErrorKind;
use std::fmt::Write as _;

const ENGINES: [&str; 4] = ["sqlite", "postgres", "mysql", "mariadb"];

/// A database that is being drawn.
struct Database<'d> {
    draw: &'d mut Draw,
    engine: &'static str,
    sql: String,
    tags: Vec<String>,
    /// The tables, each with its text column. The key is `id`.
    tables: Vec<(String, String)>,
}

impl Database<'_> {
    fn tag(&mut self) -> String {
        let tag = format!("q{}q", 100 + self.tags.len());
        self.tags.push(tag.clone());
        tag
    }

    /// What may end a name, a literal or a comment by the rules of some engine.
    fn ends(&mut self) -> String {
        let ends = [
            "", " ", "'", "\"", "`", "\\", "\\'", "''", "*/", "/*", "--", "$$", "]", ";", "\n", "\r\n", "é",
            "#", "%", "{x}",
        ];
        let rest = ["", "; DROP TABLE bait; --", "\nDROP TABLE bait;\n--", "\n.quit\n", "\n\\q\n"];
        (0..self.draw.below(3)).map(|_| self.draw.of(&ends)).collect::<String>() + self.draw.of(&rest)
    }

    /// A new name in quotes.
    fn name(&mut self) -> String {
        // A program that reads statements takes these two for one.
        let name = (self.tag() + &self.ends()).replace('\r', "");
        let name = name.chars().take(30).collect::<String>().trim_end().to_owned() + "z";
        let quote = if self.engine.starts_with('m') { '`' } else { '"' };
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }

    /// A new text as a literal.
    fn literal(&mut self) -> String {
        let text = (self.tag() + &self.ends()).replace('\'', "''");
        format!("'{}'", if self.engine.starts_with('m') { text.replace('\\', "\\\\") } else { text })
    }

    fn add(&mut self, sql: &str) {
        self.sql.push_str(sql);
        self.sql.push_str(";\n");
    }

    /// A statement with `;` in it.
    fn add_block(&mut self, sql: &str) {
        if self.engine.starts_with('m') {
            let _ = writeln!(self.sql, "DELIMITER //\n{sql} //\nDELIMITER ;");
        } else {
            self.add(sql);
        }
    }

    fn table(&mut self) {
        let (table, text, n) = (self.name(), self.name(), self.name());
        let my = self.engine.starts_with('m');
        let mut parts = vec!["id int NOT NULL".to_owned()];
        let default =
            if self.draw.one_in(2) { format!(" DEFAULT {}", self.literal()) } else { String::new() };
        let comment =
            if my && self.draw.one_in(2) { format!(" COMMENT {}", self.literal()) } else { String::new() };
        parts.push(format!("{text} varchar(200){default}{comment}"));
        parts.push(format!("{n} int"));
        if !self.draw.one_in(5) {
            parts.push("PRIMARY KEY (id)".to_owned());
        }
        if self.draw.one_in(2) {
            let (name, value) = (self.name(), self.literal());
            parts.push(format!("CONSTRAINT {name} CHECK ({text} <> {value})"));
        }
        let keyed =
            |table: &String| self.sql.contains(&format!("CREATE TABLE {table} (id int NOT NULL PRIMARY KEY"));
        let parent = self.tables.iter().map(|(parent, _)| parent.clone()).find(keyed);
        if let Some(parent) = parent.filter(|_| self.draw.one_in(2)) {
            let name = if self.engine == "sqlite" { "own".to_owned() } else { self.name() };
            parts.push(format!("CONSTRAINT {name} FOREIGN KEY ({n}) REFERENCES {parent} (id)"));
        }
        if let Some(at) = parts.iter().position(|part| part.starts_with("PRIMARY")) {
            parts.remove(at);
            parts[0].push_str(" PRIMARY KEY");
        }
        let options = match self.engine {
            "sqlite" if parts[0].ends_with("KEY") && self.draw.one_in(4) => " WITHOUT ROWID".to_owned(),
            "mysql" | "mariadb" if self.draw.one_in(2) => format!(" COMMENT {}", self.literal()),
            _ => String::new(),
        };
        self.add(&format!("CREATE TABLE {table} ({}){options}", parts.join(", ")));
        for row in 0..self.draw.below(30) {
            let value = if self.draw.one_in(6) { "NULL".to_owned() } else { self.literal() };
            // A value is no definition.
            if value != "NULL" {
                self.tags.pop();
            }
            self.add(&format!("INSERT INTO {table} (id, {text}) VALUES ({row}, {value})"));
        }
        for _ in 0..self.draw.below(3) {
            self.index(&table, &text, &n);
        }
        self.tables.push((table, text));
    }

    fn index(&mut self, table: &str, text: &str, n: &str) {
        let (name, kind) = (self.name(), self.draw.below(6));
        let value = if kind == 1 && !self.engine.starts_with('m') { self.literal() } else { String::new() };
        self.add(&match (kind, self.engine) {
            (1, "sqlite" | "postgres") => {
                format!("CREATE INDEX {name} ON {table} ({n}) WHERE {text} > {value}")
            }
            (1, _) => format!("CREATE INDEX {name} ON {table} ({text}(5))"),
            (2, "sqlite" | "postgres") => format!("CREATE INDEX {name} ON {table} (lower({text}))"),
            (2, "mysql") => format!("CREATE INDEX {name} ON {table} ((lower({text})))"),
            (3, _) => format!("CREATE INDEX {name} ON {table} ({n} DESC, id)"),
            (4, "mysql" | "mariadb") => format!("CREATE FULLTEXT INDEX {name} ON {table} ({text})"),
            (4, "postgres") => format!("CREATE INDEX {name} ON {table} USING hash ({text})"),
            (5, _) => format!("CREATE UNIQUE INDEX {name} ON {table} (id, {n})"),
            _ => format!("CREATE INDEX {name} ON {table} ({n}, {text})"),
        });
    }

    /// An object of a random kind that the engine has.
    #[expect(clippy::too_many_lines, reason = "an arm for each kind")]
    fn object(&mut self) {
        let at = self.draw.below(self.tables.len() as u64) as usize;
        let (table, text) = self.tables[at].clone();
        let name = self.name();
        match (self.engine, self.draw.below(20)) {
            ("sqlite", 0..5) | (_, 0..3) => {
                let value = self.literal();
                self.add(&format!("CREATE VIEW {name} AS SELECT id, {value} AS v FROM {table}"));
            }
            ("sqlite", 5..10) => {
                let value = self.literal();
                self.add(&format!(
                    "CREATE TRIGGER {name} AFTER INSERT ON {table} BEGIN UPDATE {table} SET {text} = {value} WHERE id = -1; END"
                ));
            }
            ("sqlite", 10..13) => self.add(&format!("CREATE VIRTUAL TABLE {name} USING fts5(x)")),
            ("sqlite", 13..16) => {
                self.add(&format!("CREATE TABLE {name} (id INTEGER PRIMARY KEY AUTOINCREMENT, x TEXT COLLATE NOCASE)"));
            }
            ("sqlite", _) => {
                self.add(&format!("CREATE TABLE {name} (id INTEGER PRIMARY KEY, x TEXT, y TEXT AS (upper(x))); PRAGMA user_version = 7"));
            }
            ("mysql" | "mariadb", 3..6) => {
                let value = self.literal();
                self.add_block(&format!(
                    "CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW BEGIN SET @a = {value}; SET @b = 1; END"
                ));
            }
            ("mysql" | "mariadb", 6..8) => {
                let value = self.literal();
                self.add_block(&format!("CREATE PROCEDURE {name}() COMMENT {value} BEGIN SELECT 1; SELECT 2; END"));
            }
            ("mysql" | "mariadb", 8..10) => {
                self.add(&format!("CREATE FUNCTION {name}() RETURNS int DETERMINISTIC RETURN 1"));
            }
            ("mysql" | "mariadb", 10..12) => {
                let value = self.literal();
                self.add(&format!("CREATE EVENT {name} ON SCHEDULE EVERY 1 DAY DISABLE COMMENT {value} DO SET @a = 1"));
            }
            ("mysql" | "mariadb", 12..14) => {
                self.add(&format!("CREATE TABLE {name} (id int PRIMARY KEY, x int) PARTITION BY HASH (id) PARTITIONS 2"));
            }
            ("mariadb", 14..16) => self.add(&format!("CREATE SEQUENCE {name} START WITH 7")),
            ("mariadb", 16..18) => {
                self.add(&format!("CREATE TABLE {name} (id int PRIMARY KEY, x int INVISIBLE) WITH SYSTEM VERSIONING"));
            }
            ("mysql", 14..16) => {
                self.add(&format!("CREATE TABLE {name} (id int PRIMARY KEY, g point NOT NULL SRID 4326, SPATIAL KEY (g))"));
            }
            ("mysql" | "mariadb", _) => {
                self.add(&format!("CREATE TABLE {name} (id int AUTO_INCREMENT PRIMARY KEY, x int AS (id_of + 1), id_of int) AUTO_INCREMENT = 50"));
            }
            (_, 3) => {
                let (of, value) = (self.name(), self.literal());
                self.add(&format!("CREATE FUNCTION {of}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'"));
                self.add(&format!("CREATE TRIGGER {name} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {of}()"));
                self.add(&format!("COMMENT ON TRIGGER {name} ON {table} IS {value}"));
            }
            (_, 4) => {
                let value = self.literal();
                self.add(&format!("CREATE FUNCTION {name}() RETURNS int LANGUAGE sql AS 'SELECT 1'"));
                self.add(&format!("COMMENT ON FUNCTION {name}() IS {value}"));
                self.add(&format!("REVOKE EXECUTE ON FUNCTION {name}() FROM PUBLIC"));
            }
            (_, 5) => {
                let value = self.literal();
                self.add(&format!("CREATE SEQUENCE {name} START 5; COMMENT ON SEQUENCE {name} IS {value}"));
                self.add(&format!("GRANT USAGE ON SEQUENCE {name} TO PUBLIC"));
            }
            (_, 6) => {
                let (value, comment) = (self.literal(), self.literal());
                self.add(&format!("CREATE TYPE {name} AS ENUM ({value}); COMMENT ON TYPE {name} IS {comment}"));
            }
            (_, 7) => {
                let value = self.literal();
                self.add(&format!("CREATE DOMAIN {name} AS text CHECK (VALUE <> {value})"));
            }
            (_, 8) => {
                let value = self.literal();
                self.add(&format!("CREATE POLICY {name} ON {table} USING ({text} <> {value})"));
            }
            (_, 9) => self.add(&format!("CREATE RULE {name} AS ON DELETE TO {table} DO INSTEAD NOTHING")),
            (_, 10) => self.add(&format!("CREATE STATISTICS {name} ON id, {text} FROM {table}")),
            (_, 11) => self.add(&format!("CREATE AGGREGATE {name} (int) (SFUNC = int4pl, STYPE = int)")),
            (_, 12) => self.add(&format!("CREATE TEXT SEARCH CONFIGURATION {name} (COPY = simple)")),
            (_, 13) => self.add(&format!("CREATE COLLATION {name} FROM \"C\"")),
            (_, 14) => self.add(&format!("CREATE MATERIALIZED VIEW {name} AS SELECT id FROM {table}")),
            (_, 15) => {
                let of = self.name();
                self.add(&format!("CREATE TABLE {name} (id int) PARTITION BY RANGE (id)"));
                self.add(&format!("CREATE TABLE {of} PARTITION OF {name} FOR VALUES FROM (1) TO (9)"));
            }
            (_, 16) => self.add(&format!("CREATE UNLOGGED TABLE {name} (id int GENERATED ALWAYS AS IDENTITY, x int GENERATED ALWAYS AS (1) STORED)")),
            (_, 17) => {
                self.add(&format!("ALTER TABLE {table} ADD CONSTRAINT {name} EXCLUDE USING gist (int4range(id, id + 1) WITH &&)"));
            }
            (_, 18) => {
                self.tags.pop();
                let (one, two) = (self.literal(), self.literal());
                self.add(&format!("COMMENT ON TABLE {table} IS {one}; COMMENT ON COLUMN {table}.{text} IS {two}"));
                // The last comment is the one that stays.
                self.tags.retain(|tag| !self.sql.contains(&format!("IS '{tag}")) || one.contains(tag) || two.contains(tag));
                self.add(&format!("GRANT SELECT ({text}) ON {table} TO PUBLIC"));
            }
            _ => self.add(&format!("CREATE TABLE {name} (id int, x int[], r int4range, j jsonb)")),
        }
    }
}

/// Everything that a server's catalogue says of the database, as one text.
fn catalogue(place: &Place, engine: &str) -> String {
    place.ask(match engine {
        "sqlite" => "SELECT name || ' ' || coalesce(sql, '') FROM sqlite_schema",
        "postgres" => {
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace UNION ALL SELECT conname FROM pg_constraint \
             UNION ALL SELECT typname FROM pg_type UNION ALL SELECT description FROM pg_description WHERE objoid > 16000 \
             UNION ALL SELECT attname FROM pg_attribute UNION ALL SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef \
             UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint UNION ALL SELECT enumlabel FROM pg_enum \
             UNION ALL SELECT indexdef FROM pg_indexes UNION ALL SELECT stxname FROM pg_statistic_ext"
        }
        _ => {
            "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = DATABASE() UNION ALL \
             SELECT column_name, CONCAT_WS(' ', column_default, column_comment) FROM information_schema.columns WHERE table_schema = DATABASE() \
             UNION ALL SELECT index_name, '' FROM information_schema.statistics WHERE table_schema = DATABASE() UNION ALL SELECT \
             constraint_name, '' FROM information_schema.table_constraints WHERE table_schema = DATABASE() UNION ALL SELECT constraint_name, \
             check_clause FROM information_schema.check_constraints WHERE constraint_schema = DATABASE()"
        }
    })
}

/// The rows of a table: keys, and the bytes of a text.
fn rows(place: &Place, engine: &str, table: &str, text: &str) -> Result<Vec<String>, String> {
    let requoted = |name: &str| {
        let from = name.chars().next().unwrap();
        let to = if engine.starts_with('m') { '`' } else { '"' };
        let bare = name[1..name.len() - 1].replace(&format!("{from}{from}"), &from.to_string());
        format!("{to}{}{to}", bare.replace(to, &format!("{to}{to}")))
    };
    let (table, text) = (requoted(table), requoted(text));
    let hex = match engine {
        "sqlite" => format!("lower(hex(CAST({text} AS BLOB)))"),
        "postgres" => format!("encode(convert_to({text}, 'UTF8'), 'hex')"),
        _ => format!("LOWER(HEX(CONVERT({text} USING utf8mb4)))"),
    };
    let sql = format!("SELECT id, CASE WHEN {text} IS NULL THEN '-' ELSE {hex} END FROM {table} ORDER BY id");
    let (done, out, error) = place.try_ask(&sql);
    if done { Ok(out.lines().map(|line| line.replace('\t', "|")).collect()) } else { Err(error) }
}

/// Copies a database to a new one. Returns what is wrong.
fn check(from: &Place, database: &Database<'_>, to: &'static str) -> Option<String> {
    let target = Place::new(to)?;
    target.ask("CREATE TABLE bait (id int); INSERT INTO bait VALUES (7)");
    let (mut copy, plan) = match begun(from, &target, &wanted_all(PageSize::default())) {
        Ok(begun) => begun,
        // It names what no acceptance maps, and nothing was made.
        Err(error) if error.kind() == ErrorKind::Unsupported => return None,
        Err(error) => return Some(format!("plan: {error}")),
    };
    let tried = copy.try_out(&plan).map_err(|error| error.to_string());
    let done = run_planned(&target.url(), &mut copy, &plan, How::default(), &mut |_| {});
    match (done, tried) {
        (_, Err(error)) => return Some(format!("trial: {error}")),
        (Err(error), Ok(tried)) if tried.is_empty() => {
            return Some(format!("the trial refused nothing, and: {error}"));
        }
        (Err(error), Ok(_)) => {
            return (!error.to_string().contains("nothing was copied")).then(|| error.to_string());
        }
        (Ok(_), Ok(tried)) if !tried.is_empty() => {
            return Some(format!("the trial refused {}: {}", tried[0].0, tried[0].1));
        }
        (Ok(_), Ok(_)) => {}
    }
    let left = plan.left_text(target.engine());
    let mut said = format!("{}\n{left}\n{}", catalogue(&target, to), plan.statements());
    for issue in &plan.issues {
        let _ = write!(said, "\n{} {} {}", issue.object, issue.detail, issue.text);
    }
    let lost: Vec<&String> = database.tags.iter().filter(|tag| !said.contains(*tag)).collect();
    if !lost.is_empty() {
        return Some(format!("neither carried nor listed: {lost:?}"));
    }
    for (table, text) in &database.tables {
        let [ours, theirs] = [rows(from, database.engine, table, text), rows(&target, to, table, text)];
        if ours != theirs {
            return Some(format!("rows of {table}: {ours:?} {theirs:?}"));
        }
    }
    let (ran, _, error) = target.feed(&left);
    if !ran || target.ask("SELECT id FROM bait") != "7" {
        return Some(format!("leftovers: {error}\n{left}"));
    }
    None
}

/// Draws `count` databases of each engine, and copies each to every engine that `is_chosen` has.
pub fn all_pairs(seed: u64, count: u64, is_chosen: &dyn Fn(u64, usize) -> bool) {
    let (mut wrong, mut copied) = (Vec::new(), 0);
    for (number, engine) in (0..count).flat_map(|number| ENGINES.map(|engine| (number, engine))) {
        let Some(from) = Place::new(engine) else { continue };
        let mut draw = Draw(seed + number * 7 + engine.len() as u64);
        let mut database =
            Database { draw: &mut draw, engine, sql: String::new(), tags: Vec::new(), tables: Vec::new() };
        (0..=database.draw.below(3)).for_each(|_| database.table());
        (0..database.draw.below(7)).for_each(|_| database.object());
        let (made, _, error) = from.feed(&database.sql);
        assert!(made, "seed {seed}, {engine} {number}: {error}\n{}", database.sql);
        for (_, to) in ENGINES.into_iter().enumerate().filter(|(at, _)| is_chosen(number, *at)) {
            copied += 1;
            wrong.extend(
                check(&from, &database, to)
                    .map(|what| format!("seed {seed}, {engine} {number} to {to}: {what}\n{}", database.sql)),
            );
        }
    }
    assert!(wrong.is_empty(), "{} of {copied}:\n{}", wrong.len(), wrong.join("\n\n"));
}
