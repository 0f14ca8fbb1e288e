//! Random databases: tables, names, comments, privileges and objects of every kind, copied between all pairs of engines. The engines'
//! own programs read both sides: each row and each definition is there, or in the plan, or the copy is refused before its first row.
//!
//! Each name and each text has a tag of its own, so that what became of it can be found in any text of a catalogue.

use super::common::{Place, begun, run_planned, wanted_all};
use super::random::draw::Draw;
use kurabe_copy::page::PageSize;
use kurabe_copy::run::How;
use kurabe_core::ErrorKind;
use std::collections::BTreeMap;
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
    /// The statements that make roles, which are of the server.
    roles: Vec<String>,
}

impl<'d> Database<'d> {
    /// An empty database.
    fn new(engine: &'static str, draw: &'d mut Draw) -> Self {
        Self { draw, engine, sql: String::new(), tags: Vec::new(), tables: Vec::new(), roles: Vec::new() }
    }

    fn tag(&mut self) -> String {
        let tag = format!("q{}q", 100 + self.tags.len());
        self.tags.push(tag.clone());
        tag
    }

    /// What may end a name, a literal or a comment by the rules of some engine.
    fn ends(&mut self) -> String {
        let ends = [
            "", " ", "'", "\"", "`", "\\", "\\'", "''", "*/", "/*", "--", "$$", "[", "]", "(", ")", ".", ";",
            "\n", "\r\n", "é", "#", "%", "{x}",
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

    /// The kinds of objects that the engine has.
    fn kinds(&self) -> Vec<&'static str> {
        let is_own = |engines: &str| engines.split(' ').any(|engine| engine == self.engine);
        let own = OBJECTS.iter().filter(|(engines, _)| is_own(engines));
        own.flat_map(|(_, kinds)| kinds.iter().copied()).collect()
    }

    /// Adds an object of a kind of [`OBJECTS`].
    fn object(&mut self, kind: &str) {
        let at = self.draw.below(self.tables.len() as u64) as usize;
        let (table, text) = self.tables[at].clone();
        let mut sql = kind.replace("«t»", &table).replace("«c»", &text);
        while let Some((_, rest)) = sql.split_once('«') {
            let mark = rest.split_once('»').unwrap().0.to_owned();
            let new = match &mark[..1] {
                "n" => self.name(),
                "v" => self.literal(),
                _ => self.role(),
            };
            sql = sql.replace(&format!("«{mark}»"), &new);
        }
        match sql.strip_prefix("//") {
            Some(block) => self.add_block(block),
            None => self.add(&sql),
        }
    }

    /// A new role or user. The target of the same engine has every second one.
    fn role(&mut self) -> String {
        let my = self.engine.starts_with('m');
        let mut role = self.name();
        if my {
            let name = role[1..role.len() - 1].replace("``", "`").replace('\\', "\\\\").replace('\'', "''");
            role = format!("'{name}'@'localhost'");
        }
        let sql = format!("CREATE {} {role}", if my { "USER" } else { "ROLE" });
        self.add(&sql);
        self.roles.push(sql);
        role
    }
}

/// The kinds of objects of engines. In them, `«t»` is a table and `«c»` its text column; `«n1»` is a new name, `«v1»` a new text, and
/// `«r1»` a new role or user. One that begins with `//` has `;` in it.
const OBJECTS: [(&str, &[&str]); 5] = [
    (
        "sqlite",
        &[
            "CREATE VIEW «n1» AS SELECT id, «v1» AS v FROM «t»",
            "CREATE VIEW «n1» (a, «n2») AS SELECT id, «c» FROM «t» WHERE «c» <> «v1»; CREATE VIEW «n3» AS SELECT * FROM «n1»",
            "CREATE TRIGGER «n1» AFTER INSERT ON «t» BEGIN UPDATE «t» SET «c» = «v1» WHERE id = -1; END",
            "CREATE TRIGGER «n1» BEFORE UPDATE OF «c» ON «t» WHEN new.«c» = «v1» BEGIN SELECT RAISE(ABORT, «v2»); END",
            "CREATE VIEW «n1» AS SELECT id FROM «t»; CREATE TRIGGER «n2» INSTEAD OF DELETE ON «n1» BEGIN SELECT «v1»; END",
            "CREATE VIRTUAL TABLE «n1» USING fts5(x)",
            "CREATE VIRTUAL TABLE «n1» USING rtree(id, a, b)",
            "CREATE TABLE «n1» (id INTEGER PRIMARY KEY AUTOINCREMENT, «n2» TEXT COLLATE NOCASE UNIQUE ON CONFLICT IGNORE)",
            "CREATE TABLE «n1» (id INTEGER PRIMARY KEY, x TEXT, «n2» TEXT AS (upper(x) || «v1») STORED); PRAGMA user_version = 7",
            "CREATE TABLE «n1» (id INTEGER PRIMARY KEY, «n2» TEXT DEFAULT (lower(«v1»)) CHECK («n2» <> «v2»)) STRICT",
            "CREATE TABLE «n1» (a INT, b TEXT, p INT, PRIMARY KEY (a, b), CONSTRAINT own FOREIGN KEY (p, b) \
             REFERENCES «n1» (a, b) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED) WITHOUT ROWID",
            "CREATE INDEX «n1» ON «t» («c» COLLATE NOCASE DESC) WHERE «c» NOT IN («v1», «v2»)",
            "PRAGMA application_id = 9; ANALYZE",
        ],
    ),
    (
        "mysql mariadb",
        &[
            "CREATE ALGORITHM = MERGE SQL SECURITY INVOKER VIEW «n1» AS SELECT id, «v1» AS v FROM «t»",
            "CREATE VIEW «n1» (a, «n2») AS SELECT id, «c» FROM «t» WHERE «c» <> «v1» WITH CASCADED CHECK OPTION; CREATE VIEW «n3» AS SELECT * FROM «n1»",
            "//CREATE TRIGGER «n1» BEFORE INSERT ON «t» FOR EACH ROW BEGIN SET @a = «v1»; SET @b = 1; END",
            "CREATE TRIGGER «n1» AFTER DELETE ON «t» FOR EACH ROW SET @a = «v1»; \
             CREATE TRIGGER «n2» AFTER DELETE ON «t» FOR EACH ROW PRECEDES «n1» SET @a = «v2»",
            "//CREATE PROCEDURE «n1»(IN «n2» int, OUT x text) COMMENT «v1» SQL SECURITY INVOKER BEGIN SELECT 1; SELECT «v2»; END",
            "CREATE FUNCTION «n1»(a int) RETURNS int DETERMINISTIC READS SQL DATA COMMENT «v1» RETURN length(«v2»)",
            "CREATE PROCEDURE «n1»() SELECT 1; GRANT EXECUTE ON PROCEDURE «n1» TO «r1»; GRANT EXECUTE ON PROCEDURE «n1» TO «r2» WITH GRANT OPTION",
            "CREATE EVENT «n1» ON SCHEDULE EVERY 1 DAY DISABLE COMMENT «v1» DO SET @a = «v2»",
            "//CREATE EVENT «n1» ON SCHEDULE AT '2037-01-01 00:00:00' ON COMPLETION PRESERVE DO BEGIN SET @a = «v1»; SET @b = 2; END",
            "CREATE TABLE «n1» (id int PRIMARY KEY, x int) PARTITION BY HASH (id) PARTITIONS 2",
            "CREATE TABLE «n1» (id int PRIMARY KEY, x int) PARTITION BY RANGE (id) (PARTITION «n2» VALUES LESS THAN (10) COMMENT = «v1», \
             PARTITION p VALUES LESS THAN MAXVALUE)",
            "CREATE TABLE «n1» (id int PRIMARY KEY, «n2» varchar(9) COMMENT «v1») ENGINE = MyISAM ROW_FORMAT = FIXED COMMENT «v2»",
            "CREATE TABLE «n1» (id int AUTO_INCREMENT PRIMARY KEY, x int AS (y + 1), y int) AUTO_INCREMENT = 50",
            "CREATE TABLE «n1» (id int PRIMARY KEY, «n2» varchar(200) AS (concat(«v1», id)) STORED, x varchar(200) DEFAULT (concat(«v2», 'b')))",
            "CREATE TABLE «n1» (id int PRIMARY KEY, «n2» enum('a', 'b') DEFAULT 'b', x set('a', 'b') COMMENT «v1»)",
            "ALTER TABLE «t» ADD INDEX «n1» («c»(7)) COMMENT «v1»",
            "CREATE TABLE «n1» (id int PRIMARY KEY, p int, KEY «n2» (p), CONSTRAINT «n3» FOREIGN KEY (p) REFERENCES «n1» (id) ON DELETE SET NULL ON UPDATE CASCADE)",
            "GRANT SELECT, INSERT («c») ON «t» TO «r1»; GRANT UPDATE ON «t» TO «r2» WITH GRANT OPTION",
            "GRANT CREATE VIEW, EVENT ON kurabe.* TO «r1»; GRANT TRIGGER ON kurabe.* TO «r2» WITH GRANT OPTION",
            "ALTER DATABASE kurabe CHARACTER SET latin1 COLLATE latin1_german2_ci",
            "CREATE TABLE «n1» (id int PRIMARY KEY, g point NOT NULL, SPATIAL KEY «n2» (g))",
        ],
    ),
    (
        "mysql",
        &[
            "CREATE TABLE «n1» (id int PRIMARY KEY, g point NOT NULL SRID 4326, SPATIAL KEY «n2» (g))",
            "ALTER TABLE «t» ADD CONSTRAINT «n1» CHECK («c» <> «v1») NOT ENFORCED",
            "CREATE INDEX «n1» ON «t» ((concat(«c», «v1»))) COMMENT «v2» INVISIBLE",
            "CREATE TABLE «n1» (id int PRIMARY KEY, j json, KEY «n2» ((CAST(j->'$.a' AS unsigned ARRAY)))) ROW_FORMAT = COMPRESSED KEY_BLOCK_SIZE = 4",
            "ANALYZE TABLE «t» UPDATE HISTOGRAM ON «c» WITH 4 BUCKETS",
            "CREATE FULLTEXT INDEX «n1» ON «t» («c») WITH PARSER ngram",
        ],
    ),
    (
        "mariadb",
        &[
            "CREATE SEQUENCE «n1» START WITH 7 INCREMENT BY 3 MINVALUE 1 MAXVALUE 99 CYCLE COMMENT = «v1»",
            "CREATE TABLE «n1» (id int PRIMARY KEY, «n2» int INVISIBLE) WITH SYSTEM VERSIONING",
            "CREATE TABLE «n1» (id int, s date, e date, PERIOD FOR «n2» (s, e), UNIQUE KEY «n3» (id, «n2» WITHOUT OVERLAPS))",
            "ALTER TABLE «t» ADD INDEX «n1» («c»(9)) IGNORED",
            "CREATE TABLE «n1» (id int PRIMARY KEY, «n2» uuid, b inet6 COMMENT «v1», c text COMPRESSED) ENGINE = Aria TRANSACTIONAL = 1",
            "//CREATE AGGREGATE FUNCTION «n1»(x int) RETURNS int COMMENT «v1» BEGIN DECLARE EXIT HANDLER FOR NOT FOUND RETURN 1; \
             LOOP FETCH GROUP NEXT ROW; END LOOP; END",
            "//SET sql_mode = ORACLE //\nCREATE PACKAGE «n1» COMMENT «v1» AS FUNCTION f RETURN int; END //\nSET sql_mode = DEFAULT",
            "ALTER DATABASE kurabe COMMENT «v1»",
        ],
    ),
    (
        "postgres",
        &[
            "CREATE VIEW «n1» WITH (security_barrier) AS SELECT id, «v1» AS v FROM «t»; CREATE VIEW «n2» AS SELECT * FROM «n1»",
            "CREATE VIEW «n1» AS SELECT * FROM «t» WHERE «c» <> «v1» WITH CHECK OPTION; ALTER VIEW «n1» ALTER COLUMN «c» SET DEFAULT «v2»; \
             COMMENT ON VIEW «n1» IS «v3»; COMMENT ON COLUMN «n1».«c» IS «v4»; GRANT UPDATE ON «n1» TO «r1»",
            "CREATE FUNCTION «n2»() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; \
             CREATE TRIGGER «n1» BEFORE UPDATE OF «c» ON «t» FOR EACH ROW WHEN (new.«c» <> «v1») EXECUTE FUNCTION «n2»(«v2»); \
             COMMENT ON TRIGGER «n1» ON «t» IS «v3»; ALTER TABLE «t» ENABLE REPLICA TRIGGER «n1»",
            "CREATE FUNCTION «n2»() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; CREATE VIEW «n3» AS SELECT id FROM «t»; \
             CREATE TRIGGER «n1» INSTEAD OF INSERT ON «n3» FOR EACH ROW EXECUTE FUNCTION «n2»()",
            "CREATE FUNCTION «n2»() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; \
             CREATE CONSTRAINT TRIGGER «n1» AFTER INSERT ON «t» DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION «n2»()",
            "CREATE FUNCTION «n1»(«n2» text DEFAULT «v1») RETURNS int LANGUAGE sql SECURITY DEFINER SET application_name = «v2» AS 'SELECT 1'; \
             COMMENT ON FUNCTION «n1»(text) IS «v3»; REVOKE EXECUTE ON FUNCTION «n1»(text) FROM PUBLIC; GRANT EXECUTE ON FUNCTION «n1»(text) TO «r1» WITH GRANT OPTION",
            "CREATE PROCEDURE «n1»() LANGUAGE sql AS 'SELECT 1'; COMMENT ON PROCEDURE «n1»() IS «v1»; GRANT EXECUTE ON PROCEDURE «n1»() TO «r1»",
            "CREATE SEQUENCE «n1» AS smallint INCREMENT -2 MINVALUE -9 MAXVALUE 5 START 3 CACHE 2 CYCLE; COMMENT ON SEQUENCE «n1» IS «v1»; \
             GRANT USAGE ON SEQUENCE «n1» TO «r1»",
            "CREATE SEQUENCE «n1» OWNED BY «t».id; ALTER TABLE «t» ALTER id SET DEFAULT 5",
            "CREATE TYPE «n1» AS ENUM («v1»); COMMENT ON TYPE «n1» IS «v2»; GRANT USAGE ON TYPE «n1» TO «r1»",
            "CREATE TYPE «n1» AS ENUM («v1», 'b'); CREATE TABLE «n2» (id int PRIMARY KEY, e «n1» DEFAULT 'b', es «n1»[]); INSERT INTO «n2» VALUES (1, «v1», NULL)",
            "CREATE TYPE «n1» AS (a int, «n2» text COLLATE \"C\"); COMMENT ON COLUMN «n1».«n2» IS «v1»; CREATE TABLE «n3» (id int PRIMARY KEY, x «n1»)",
            "CREATE TYPE «n1» AS RANGE (subtype = text, multirange_type_name = «n2»); COMMENT ON TYPE «n1» IS «v1»; CREATE TABLE «n3» (id int PRIMARY KEY, x «n1», y «n2»)",
            "CREATE TYPE «n1» AS (id int, «n2» text); CREATE TABLE «n3» OF «n1» (PRIMARY KEY (id)); COMMENT ON TABLE «n3» IS «v1»",
            "CREATE DOMAIN «n1» AS text DEFAULT «v1» CONSTRAINT «n2» CHECK (VALUE <> «v2»); COMMENT ON CONSTRAINT «n2» ON DOMAIN «n1» IS «v3»; \
             COMMENT ON DOMAIN «n1» IS «v4»; REVOKE USAGE ON DOMAIN «n1» FROM PUBLIC",
            "CREATE DOMAIN «n1» AS int NOT NULL CONSTRAINT «n2» CHECK (VALUE > 0); CREATE TABLE «n3» (id int PRIMARY KEY, x «n1»); \
             ALTER DOMAIN «n1» ADD CONSTRAINT «n4» CHECK (VALUE < 9) NOT VALID",
            "CREATE POLICY «n1» ON «t» AS RESTRICTIVE FOR UPDATE TO «r1» USING («c» <> «v1») WITH CHECK («c» <> «v2»); \
             COMMENT ON POLICY «n1» ON «t» IS «v3»; ALTER TABLE «t» ENABLE ROW LEVEL SECURITY",
            "CREATE RULE «n1» AS ON DELETE TO «t» WHERE old.«c» = «v1» DO INSTEAD NOTHING; COMMENT ON RULE «n1» ON «t» IS «v2»; ALTER TABLE «t» DISABLE RULE «n1»",
            "CREATE STATISTICS «n1» (ndistinct) ON id, «c» FROM «t»; COMMENT ON STATISTICS «n1» IS «v1»",
            "CREATE AGGREGATE «n1» (int) (SFUNC = int4pl, STYPE = int); COMMENT ON AGGREGATE «n1» (int) IS «v1»; GRANT EXECUTE ON FUNCTION «n1»(int) TO «r1»",
            "CREATE TEXT SEARCH DICTIONARY «n2» (TEMPLATE = simple); COMMENT ON TEXT SEARCH DICTIONARY «n2» IS «v1»; \
             CREATE TEXT SEARCH CONFIGURATION «n1» (COPY = simple); COMMENT ON TEXT SEARCH CONFIGURATION «n1» IS «v2»",
            "CREATE COLLATION «n1» FROM \"C\"; COMMENT ON COLLATION «n1» IS «v1»",
            "CREATE CONVERSION «n1» FOR 'UTF8' TO 'LATIN1' FROM utf8_to_iso8859_1; COMMENT ON CONVERSION «n1» IS «v1»",
            "CREATE FUNCTION «n1»(int, int) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE OPERATOR ### (LEFTARG = int, RIGHTARG = int, FUNCTION = «n1»); \
             COMMENT ON OPERATOR ### (int, int) IS «v1»",
            "CREATE OPERATOR CLASS «n1» FOR TYPE int USING hash AS OPERATOR 1 =, FUNCTION 1 hashint4(int4); COMMENT ON OPERATOR CLASS «n1» USING hash IS «v1»",
            "CREATE TYPE «n1» AS ENUM ('a'); CREATE CAST («n1» AS int) WITH INOUT; COMMENT ON CAST («n1» AS int) IS «v1»",
            "CREATE MATERIALIZED VIEW «n1» AS SELECT id, «v1» AS v FROM «t»; CREATE INDEX «n2» ON «n1» (id); \
             COMMENT ON MATERIALIZED VIEW «n1» IS «v2»; COMMENT ON INDEX «n2» IS «v3»",
            "CREATE TABLE «n1» (id int, x text) PARTITION BY RANGE (id); CREATE TABLE «n2» PARTITION OF «n1» FOR VALUES FROM (1) TO (9); \
             CREATE INDEX «n3» ON «n2» (x); ALTER TABLE «n2» ADD CONSTRAINT «n4» CHECK (x <> «v1»); COMMENT ON TABLE «n2» IS «v2»; COMMENT ON TABLE «n1» IS «v3»; \
             INSERT INTO «n1» VALUES (1, 'x')",
            "CREATE TABLE «n1» (extra int DEFAULT 7) INHERITS («t»); COMMENT ON TABLE «n1» IS «v1»",
            "CREATE UNLOGGED TABLE «n1» (id int GENERATED ALWAYS AS IDENTITY (START 5 INCREMENT 2), x text GENERATED ALWAYS AS («v1») STORED)",
            "ALTER TABLE «t» ADD CONSTRAINT «n1» EXCLUDE USING gist (int4range(id, id + 1) WITH &&); COMMENT ON CONSTRAINT «n1» ON «t» IS «v1»",
            "ALTER TABLE «t» ADD CONSTRAINT «n1» CHECK («c» <> «v1») NO INHERIT NOT VALID; COMMENT ON CONSTRAINT «n1» ON «t» IS «v2»",
            "CREATE UNIQUE INDEX «n1» ON «t» (id) INCLUDE («c») WITH (fillfactor = 70) WHERE «c» <> «v1»; COMMENT ON INDEX «n1» IS «v2»",
            "CREATE TABLE «n1» (id int PRIMARY KEY, p int, CONSTRAINT «n2» FOREIGN KEY (p) REFERENCES «n1» ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED); \
             COMMENT ON CONSTRAINT «n2» ON «n1» IS «v1»",
            "GRANT SELECT («c»), UPDATE («c») ON «t» TO PUBLIC; GRANT DELETE ON «t» TO «r1»; GRANT TRUNCATE, SELECT («c») ON «t» TO «r2» WITH GRANT OPTION",
            "GRANT USAGE ON SCHEMA public TO «r1»; GRANT CREATE ON DATABASE kurabe TO «r2»",
            "ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO «r1»",
            "ALTER DATABASE kurabe SET application_name = «v1»; ALTER ROLE «r1» IN DATABASE kurabe SET application_name = «v2»",
            "COMMENT ON DATABASE kurabe IS «v1»; COMMENT ON SCHEMA public IS «v2»",
            "CREATE TABLE «n1» (id int PRIMARY KEY, x int[], r int4range, j jsonb); ALTER TABLE «n1» OWNER TO «r1»",
            "CREATE FUNCTION «n2»() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'; \
             CREATE EVENT TRIGGER «n1» ON sql_drop WHEN TAG IN ('DROP VIEW') EXECUTE FUNCTION «n2»(); COMMENT ON EVENT TRIGGER «n1» IS «v1»",
            "CREATE PUBLICATION «n1» FOR TABLE «t»; COMMENT ON PUBLICATION «n1» IS «v1»",
            "CREATE SUBSCRIPTION «n1» CONNECTION 'host=/nowhere' PUBLICATION p WITH (connect = false, slot_name = NONE); COMMENT ON SUBSCRIPTION «n1» IS «v1»",
            "CREATE FOREIGN DATA WRAPPER «n1»; COMMENT ON FOREIGN DATA WRAPPER «n1» IS «v1»; CREATE SERVER «n2» FOREIGN DATA WRAPPER «n1»; COMMENT ON SERVER «n2» IS «v2»; \
             CREATE USER MAPPING FOR «r1» SERVER «n2»; CREATE FOREIGN TABLE «n3» (id int, «n4» text) SERVER «n2»; COMMENT ON FOREIGN TABLE «n3» IS «v3»; \
             COMMENT ON COLUMN «n3».«n4» IS «v4»; GRANT SELECT ON «n3» TO «r3»; GRANT USAGE ON FOREIGN SERVER «n2» TO «r2»",
            "SELECT lo_create(4711); COMMENT ON LARGE OBJECT 4711 IS «v1»; GRANT SELECT ON LARGE OBJECT 4711 TO «r1»",
            "CREATE ACCESS METHOD «n1» TYPE INDEX HANDLER bthandler; COMMENT ON ACCESS METHOD «n1» IS «v1»",
            "CREATE LANGUAGE «n1» HANDLER plpgsql_call_handler; COMMENT ON LANGUAGE «n1» IS «v1»; GRANT USAGE ON LANGUAGE plpgsql TO «r1»",
            "CREATE EXTENSION citext; COMMENT ON EXTENSION citext IS «v1»",
            "COMMENT ON TABLE «t» IS «v1»; COMMENT ON COLUMN «t».«c» IS «v2»",
        ],
    ),
];

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

/// Copies a database to a new one. Returns whether it was, or was refused before its first row; or what is wrong.
fn check(from: &Place, database: &Database<'_>, target: &Place, to: &str) -> Result<bool, String> {
    target.ask("CREATE TABLE bait (id int); INSERT INTO bait VALUES (7)");
    if to == database.engine {
        // Of the others, what names them is a comment.
        let known: Vec<&str> = database.roles.iter().step_by(2).map(String::as_str).collect();
        target.feed(&known.join(";\n"));
    }
    let (mut copy, plan) = match begun(from, target, &wanted_all(PageSize::default())) {
        Ok(begun) => begun,
        // It names what no acceptance maps, and nothing was made.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(false),
        Err(error) => return Err(format!("plan: {error}")),
    };
    let tried = copy.try_out(&plan).map_err(|error| format!("trial: {error}"))?;
    match run_planned(&target.url(), &mut copy, &plan, How::default(), &mut |_| {}) {
        Err(error) if tried.is_empty() => return Err(format!("the trial refused nothing, and: {error}")),
        Err(error) if error.to_string().contains("nothing was copied") => return Ok(false),
        Err(error) => return Err(error.to_string()),
        Ok(_) => {}
    }
    if let Some((what, why)) = tried.first() {
        return Err(format!("the trial refused {what}: {why}"));
    }
    let left = plan.left_text(target.engine());
    let mut said = format!("{}\n{left}\n{}", catalogue(target, to), plan.statements());
    for issue in &plan.issues {
        let _ = write!(said, "\n{} {}", issue.object, issue.detail);
    }
    let lost: Vec<&String> = database.tags.iter().filter(|tag| !said.contains(*tag)).collect();
    if !lost.is_empty() {
        return Err(format!("neither carried nor listed: {lost:?}"));
    }
    for (table, text) in &database.tables {
        let [ours, theirs] = [rows(from, database.engine, table, text), rows(target, to, table, text)];
        if ours != theirs {
            return Err(format!("rows of {table}: {ours:?} {theirs:?}"));
        }
    }
    let (ran, _, error) = target.feed(&left);
    let bait = target.try_ask("SELECT id FROM bait").1;
    if ran && bait == "7" { Ok(true) } else { Err(format!("leftovers: {error}\nbait {bait:?}\n{left}")) }
}

/// Draws `count` databases of each engine, and copies each to every engine that `is_chosen` has of
/// its number, its engine and the target's. Objects of up to eight kinds are
/// drawn, or one of each kind.
#[expect(clippy::print_stdout, reason = "what was drawn is shown with --nocapture")]
pub fn all_pairs(seed: u64, count: u64, of_each_kind: bool, is_chosen: &dyn Fn(u64, usize, usize) -> bool) {
    let (mut wrong, mut pairs) = (Vec::new(), BTreeMap::<(&str, &str), [u64; 2]>::new());
    for (number, at) in (0..count).flat_map(|number| (0..ENGINES.len()).map(move |at| (number, at))) {
        let engine = ENGINES[at];
        let Some(from) = Place::new(engine) else { continue };
        let mut draw = Draw(seed + number * 7 + engine.len() as u64);
        let mut database = Database::new(engine, &mut draw);
        (0..=database.draw.below(3)).for_each(|_| database.table());
        let mut kinds = database.kinds();
        let left = if of_each_kind { 0 } else { kinds.len() - database.draw.below(9) as usize };
        while kinds.len() > left {
            let at = if of_each_kind { 0 } else { database.draw.below(kinds.len() as u64) as usize };
            database.object(kinds.remove(at));
        }
        let named = format!("seed {seed}, {engine} {number}");
        let (made, _, error) = from.feed(&database.sql);
        if !made {
            wrong.push(format!("{named}: {error}\n{}", database.sql));
            continue;
        }
        for (_, to) in ENGINES.into_iter().enumerate().filter(|(to, _)| is_chosen(number, at, *to)) {
            let Some(target) = Place::new(to) else { continue };
            match check(&from, &database, &target, to) {
                Ok(is_copied) => pairs.entry((engine, to)).or_default()[usize::from(!is_copied)] += 1,
                Err(what) => wrong.push(format!("{named} to {to}: {what}\n{}", database.sql)),
            }
        }
    }
    println!("seed {seed}: databases that were copied, and that were refused: {pairs:?}");
    assert!(wrong.is_empty(), "{} databases:\n{}", wrong.len(), wrong.join("\n\n"));
}
