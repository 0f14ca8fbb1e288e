//! What only MySQL and MariaDB have: tables whose rows are elsewhere, and statements that depend on the session that made them.

use crate::choices::{all, places};
use crate::common::{NEVER, copied, lists, side};
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
