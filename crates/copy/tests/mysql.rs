//! What only MySQL and MariaDB have: tables whose rows are elsewhere, and statements that depend on the session that made them.

use crate::choices::{all, places};
use crate::common::{NEVER, Place, begun, copied, lists, side};
use kurabe_copy::wanted::Wanted;

/// Source and target are databases of one server.
#[test]
fn table_whose_rows_are_elsewhere_is_left_out_and_never_written() {
    for engine in ["mysql", "mariadb"] {
        let Some((server, other)) = places([engine, "sqlite"]) else { continue };
        server.ask(
            "CREATE DATABASE outside; CREATE TABLE outside.u (id int, x enum('a', '?'), KEY (id)) ENGINE=MyISAM; \
             INSERT INTO outside.u VALUES (1, 'a'), (2, 'a'); CREATE TABLE own (id int PRIMARY KEY) ENGINE=MyISAM; INSERT INTO own VALUES (3); \
             CREATE TABLE far (id int, x enum('a', '?'), KEY (id)) ENGINE=MERGE UNION=(outside.u) INSERT_METHOD=LAST; \
             CREATE TABLE near (id int PRIMARY KEY) ENGINE=MERGE UNION=(own) INSERT_METHOD=LAST; \
             CREATE TABLE broken (id int) ENGINE=MERGE UNION=(far); CREATE DATABASE target",
        );
        let mut left = vec!["broken", "far", "near"];
        let from = server.url();
        let (start, _) = from.rsplit_once('/').unwrap();
        let to = format!("{start}/target");
        let (_, password) = start.split_once('@').unwrap().0.rsplit_once(':').unwrap();
        if engine == "mariadb" {
            let remote = start.split_once(':').unwrap().1;
            server.ask(&format!(
                "INSTALL SONAME 'ha_federatedx'; CREATE TABLE served (id int) ENGINE=FEDERATED CONNECTION='mysql:{remote}/outside/u'"
            ));
            left.push("served");
        }
        let (plan, done) = copied(&from, &to, &all(), &NEVER, &mut |_| {}).unwrap();
        assert!(
            left.iter().all(|name| lists(&plan, "view", &format!("{name} rows elsewhere"))),
            "{:#?}",
            plan.issues
        );
        let listed = plan.issues.iter().filter(|issue| !matches!(issue.kind.name(), "unlocked" | "comment"));
        assert_eq!((done.len(), listed.count()), (1, left.len()), "{:#?}", plan.issues);
        assert_eq!(side(&from).without_transactions().unwrap(), ["own"]);
        assert_eq!(server.ask("SELECT COUNT(*) FROM outside.u; SELECT * FROM target.own"), "2\n3");
        let text = plan.left_text(server.engine());
        assert!(!text.contains(password), "{text}");
        let (ran, _, error) = server.feed(&format!("USE target;\n{text}"));
        assert!(ran, "{error}\n{text}");
        assert_eq!(
            server.ask(
                "INSERT INTO own VALUES (4); SELECT * FROM target.near; SELECT COUNT(*) FROM target.far"
            ),
            "3\n2"
        );
        let (plan, _) = copied(&from, &other.url(), &all(), &NEVER, &mut |_| {}).unwrap();
        assert_eq!((plan.tables.len(), lists(&plan, "view", "far")), (1, true));
    }
}

#[test]
fn triggers_keep_the_order_of_their_execution() {
    for engine in ["mysql", "mariadb", "sqlite"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        let mut own = "SELECT name FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid";
        if engine == "sqlite" {
            from.ask("CREATE TABLE t (id int PRIMARY KEY, x text); CREATE TRIGGER b AFTER INSERT ON t BEGIN SELECT 1; END; CREATE TRIGGER a AFTER INSERT ON t BEGIN SELECT 1; END");
        } else {
            from.ask(
                "CREATE TABLE t (id int PRIMARY KEY, x text); CREATE TRIGGER d BEFORE INSERT ON t FOR EACH ROW SET NEW.x = 'd'; \
                 CREATE TRIGGER a BEFORE INSERT ON t FOR EACH ROW SET NEW.x = 'a'; \
                 CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW PRECEDES d SET NEW.x = 'b'; \
                 CREATE TRIGGER c BEFORE INSERT ON t FOR EACH ROW FOLLOWS b SET NEW.x = 'c'",
            );
            own = "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'kurabe' ORDER BY action_order";
        }
        let (plan, _) = copied(&from.url(), &to.url(), &all(), &NEVER, &mut |_| {}).unwrap();
        let text = plan.left_text(to.engine());
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{error}\n{text}");
        assert_eq!(to.ask(own), from.ask(own), "{text}");
    }
}

#[test]
fn names_of_foreign_keys_are_none_of_the_indexes_that_their_servers_make() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places(["sqlite", engine]) else { continue };
        from.ask(
            "CREATE TABLE b (id integer PRIMARY KEY); CREATE TABLE a (id integer PRIMARY KEY, z int UNIQUE, x int REFERENCES b (id), \
             y int, w int REFERENCES b (id), CONSTRAINT ky FOREIGN KEY (y) REFERENCES b (id)); CREATE INDEX ky ON a (z)",
        );
        copied(&from.url(), &to.url(), &all(), &NEVER, &mut |_| {}).unwrap();
        let keys = "SELECT COUNT(*) FROM information_schema.referential_constraints WHERE constraint_schema = 'kurabe'";
        assert_eq!(to.ask(keys), "3", "{engine}");
        // One whose index has its name keeps it.
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask("CREATE TABLE b (id int PRIMARY KEY); CREATE TABLE a (id int PRIMARY KEY, x int, CONSTRAINT k FOREIGN KEY (x) REFERENCES b (id))");
        let rename = vec![("b".to_owned(), "c".to_owned())];
        copied(&from.url(), &to.url(), &Wanted { rename, ..all() }, &NEVER, &mut |_| {}).unwrap();
        let name = "SELECT constraint_name FROM information_schema.referential_constraints WHERE constraint_schema = 'kurabe'";
        assert_eq!(to.ask(name), "k", "{engine}");
    }
}

#[test]
fn file_makes_statements_in_sessions_like_those_that_made_them() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask(
            "SET time_zone = '+00:00'; ALTER DATABASE kurabe COLLATE latin1_bin; CREATE TABLE t (id int PRIMARY KEY, x varchar(9)); \
             CREATE TABLE gone (at timestamp DEFAULT '2020-01-01 12:00:00'); \
             SET NAMES utf8mb4 COLLATE utf8mb4_bin; CREATE FUNCTION f() RETURNS int DETERMINISTIC RETURN 'a' = 'A'; \
             CREATE VIEW v AS SELECT 'a' = 'A' AS same, 'é𝄞' AS clef; CREATE FUNCTION \u{e9}() RETURNS varchar(9) CHARACTER SET utf8mb4 RETURN 'é𝄞'; \
             CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.x = IF('a' = 'A', 'same', 'é'); \
             SET character_set_client = latin1, collation_connection = latin1_german1_ci; CREATE PROCEDURE p(x varchar(9)) SELECT x = 'A'; \
             CREATE PROCEDURE old() SELECT 'Ã©'; \
             SET time_zone = '+05:00'; CREATE EVENT e ON SCHEDULE AT '2035-06-01 12:00:00' DO SET @a = 1",
        );
        let wanted = Wanted { leave_out: vec!["gone".to_owned()], ..all() };
        let (plan, _) = copied(&from.url(), &to.url(), &wanted, &NEVER, &mut |_| {}).unwrap();
        let text = plan.left_text(to.engine());
        to.ask("SET GLOBAL time_zone = '+03:00'");
        let (ran, _, error) = to.feed_in("gbk", &text);
        assert!(ran, "{error}\n{text}");
        for sql in [
            "SELECT f(), v.*, \u{e9}() FROM v",
            "CALL p('a')",
            "CALL old()",
            "INSERT INTO t VALUES (1, ''); SELECT x FROM t",
            "SET time_zone = '+00:00'; SHOW CREATE TABLE gone",
            "SELECT event_name, time_zone, execute_at, character_set_client, collation_connection, database_collation \
             FROM information_schema.events WHERE event_schema = 'kurabe'",
            "SELECT routine_name, routine_definition, collation_connection, database_collation FROM information_schema.routines \
             WHERE routine_schema = 'kurabe' ORDER BY 1",
            "SELECT collation_connection FROM information_schema.views WHERE table_schema = 'kurabe'",
        ] {
            assert_eq!(to.ask(sql), from.ask(sql), "{sql}\n{text}");
        }
        assert!(text.contains("character_set_client = 'latin1'"), "{text}");
        to.ask("SET GLOBAL time_zone = 'SYSTEM'");
        from.ask(
            "INSERT INTO mysql.time_zone VALUES (9000, 'N'); INSERT INTO mysql.time_zone_name VALUES ('Mars/Base', 9000); \
             INSERT INTO mysql.time_zone_transition_type VALUES (9000, 0, 3600, 0, 'MB'); SET time_zone = 'Mars/Base'; \
             DROP EVENT e; CREATE EVENT far ON SCHEDULE AT '2035-06-01 12:00:00' DO SET @a = 1",
        );
        let text = begun(&from, &to, &wanted).unwrap().1.left_text(to.engine());
        assert!(text.contains("-- the target has no Mars/Base: create it first"), "{text}");
        from.ask("DELETE FROM mysql.time_zone_name; DELETE FROM mysql.time_zone_transition_type; DELETE FROM mysql.time_zone");
    }
}

#[test]
fn table_that_is_left_out_has_its_indexes_keys_and_triggers_in_the_file() {
    for engine in ["mysql", "mariadb", "sqlite"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        let (end, number, each) = if engine == "sqlite" {
            (" BEGIN SELECT 1; END", "integer PRIMARY KEY AUTOINCREMENT", "")
        } else {
            (" SET @a = 1", "int PRIMARY KEY AUTO_INCREMENT", " FOR EACH ROW")
        };
        from.ask(&format!(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE gone (id int PRIMARY KEY); CREATE TABLE p (id int PRIMARY KEY, u int UNIQUE); \
             CREATE TABLE c (id {number}, p int, n int CHECK (n > 0), x int UNIQUE, CONSTRAINT cp FOREIGN KEY (p) REFERENCES p (id)); \
             CREATE INDEX c_n ON c (n DESC); CREATE TRIGGER tr AFTER INSERT ON c{each}{end}; INSERT INTO p VALUES (1, 1); \
             INSERT INTO c VALUES (6, 1, 1, 1); CREATE VIEW v AS SELECT id FROM c"
        ));
        if engine != "sqlite" {
            from.ask(
                "CREATE TRIGGER a AFTER INSERT ON c FOR EACH ROW SET @a = 2; CREATE TABLE d (id int PRIMARY KEY, \
                 CONSTRAINT dg FOREIGN KEY (id) REFERENCES gone (id)) COMMENT 'words'",
            );
        }
        let leave_out = ["c", "p", "d"].iter().take(if engine == "sqlite" { 2 } else { 3 });
        let wanted = Wanted {
            leave_out: leave_out.map(|name| (*name).to_owned()).collect(),
            exclude: vec!["gone".to_owned()],
            ..all()
        };
        let (plan, _) = copied(&from.url(), &to.url(), &wanted, &NEVER, &mut |_| {}).unwrap();
        assert!(
            ["c.c_n", "c.tr"].iter().all(|one| plan.left.iter().any(|left| left.object == *one)),
            "{:?}",
            plan.left
        );
        let text = plan.left_text(to.engine());
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{error}\n{text}");
        let shown = if engine == "sqlite" {
            "SELECT name, sql FROM sqlite_schema WHERE tbl_name IN ('c', 'p') ORDER BY 1; SELECT * FROM sqlite_sequence"
        } else {
            assert!(text.contains("-- ALTER TABLE `d` ADD CONSTRAINT `dg`"), "{text}");
            "SHOW CREATE TABLE c; SHOW CREATE TABLE p; SELECT trigger_name, action_order FROM information_schema.triggers ORDER BY 2"
        };
        assert_eq!(to.ask(shown), from.ask(shown), "{text}");
        // For another engine all of it is comments.
        let other = Place::new("postgres").unwrap();
        let (_, plan) = begun(&from, &other, &wanted).unwrap();
        let text = plan.left_text(other.engine());
        assert!(
            text.lines().all(|line| line.is_empty() || line.starts_with("--") || line.starts_with("SET ")),
            "{text}"
        );
        assert!(["tr", "c_n"].iter().all(|name| text.contains(&format!("left out: c.{name}\n"))), "{text}");
    }
}
