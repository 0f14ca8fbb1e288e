//! Properties of PostgreSQL: each is carried, or a line of the plan. `pg_dump` and `psql` are the witnesses.

use crate::choices::places;
use crate::common::{Place, assert_lists, copy_all, dumped};

/// Copies everything, executes the file, and returns the target, its file, and both schemas.
fn moved(made: &str, roles: &str) -> Option<(kurabe_copy::plan::Plan, String, [String; 2])> {
    let (from, to) = places(["postgres", "postgres"])?;
    from.ask(&format!("{roles}; {made}"));
    to.ask(roles);
    let (plan, _) = copy_all(&from, &to).unwrap();
    let text = plan.left_text(to.engine());
    let (ran, _, error) = to.feed(&text);
    assert!(ran, "{error}\n{text}");
    to.ask("DROP TABLE IF EXISTS kurabe_copy, kurabe_marker");
    let schemas = [&from, &to].map(dumped);
    let clean = |place: &Place| {
        for role in roles.split("; ").filter_map(|sql| sql.strip_prefix("CREATE ROLE ")) {
            place.ask(&format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"));
        }
    };
    [&from, &to].into_iter().for_each(clean);
    Some((plan, text, schemas))
}

/// A partition is not made: what it has of its own is lost.
#[test]
fn properties_of_a_single_partition_are_lines_of_the_plan() {
    let made = "CREATE TABLE p (id int, d date, note text DEFAULT 'a', PRIMARY KEY (id, d)) PARTITION BY RANGE (d); CREATE INDEX pn ON p (note); \
         ALTER TABLE p ALTER note SET STATISTICS 3; GRANT SELECT ON p TO of_root; GRANT INSERT (note) ON p TO of_root; \
         CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; CREATE TRIGGER tp BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION f(); \
         CREATE TABLE plain PARTITION OF p FOR VALUES FROM ('2020-01-01') TO ('2021-01-01'); CREATE TABLE p2 PARTITION OF p (note DEFAULT 'xx') FOR VALUES FROM ('2021-01-01') TO ('2022-01-01'); \
         ALTER TABLE p2 ALTER note SET NOT NULL; GRANT SELECT (note) ON p2 TO of_part; GRANT SELECT ON p2 TO of_root; CREATE STATISTICS stp ON id, d FROM p2; \
         ALTER TABLE p2 REPLICA IDENTITY FULL; ALTER TABLE p2 SET (fillfactor = 50, toast.autovacuum_enabled = false); ALTER TABLE p2 ALTER note SET STATISTICS 7; ALTER TABLE p2 ALTER note SET STORAGE EXTERNAL; \
         ALTER TABLE p2 CLUSTER ON p2_pkey; ALTER INDEX p2_pkey SET (fillfactor = 44); ALTER TABLE p2 DISABLE TRIGGER tp; ALTER TABLE p2 OWNER TO of_part; \
         CREATE UNLOGGED TABLE pu (note text, d date NOT NULL, id int NOT NULL); ALTER TABLE pu ADD PRIMARY KEY (id, d); CREATE INDEX pun ON pu (note DESC); \
         ALTER TABLE p ATTACH PARTITION pu FOR VALUES FROM ('2040-01-01') TO ('2041-01-01'); CREATE SCHEMA far; CREATE TABLE far.p3 PARTITION OF p (note DEFAULT 'far') \
           FOR VALUES FROM ('2041-01-01') TO ('2042-01-01'); INSERT INTO p VALUES (1, '2021-02-01', 'x')";
    let roles = "CREATE ROLE of_part; CREATE ROLE of_root";
    let Some((plan, text, _)) = moved(made, roles) else { return };
    assert_lists(
        &plan,
        &[
            ("table-option", "p.p2.note default 'xx'"),
            ("table-option", "p.p2.note attnotnull true"),
            ("grant", "p.p2.note attacl of_part"),
            ("grant", "p.p2 relacl of_root=r"),
            ("grant", "p.p2 relowner of_part"),
            ("table-option", "p.p2 CREATE STATISTICS stp"),
            ("table-option", "p.p2 relreplident = f"),
            ("table-option", "p.p2 reloptions fillfactor=50"),
            ("table-option", "p.p2 toast autovacuum_enabled=false"),
            ("table-option", "p.p2.note attstattarget 7"),
            ("table-option", "p.p2.note attstorage = e"),
            ("table-option", "p.p2 clustered p2_pkey"),
            ("table-option", "p.p2_pkey reloptions fillfactor=44"),
            ("table-option", "p.p2.tp tgenabled = D"),
            ("table-option", "p.pu relpersistence = u"),
            ("table-option", "p.pu.note default = none"),
            ("table-option", "p.pun indoption = 3"),
            ("table-option", "p.far.p3.note default 'far'"),
        ],
    );
    assert!(text.contains("\n-- of this partition alone: attnotnull = true"), "{text}");
    // One that is like its root has no line, nor have columns that stand elsewhere.
    let lines = plan.issues.iter().filter(|issue| issue.detail.starts_with("of this partition alone"));
    let lines: Vec<_> = lines.filter(|issue| !issue.object.contains("p2")).collect();
    assert!(lines.iter().all(|issue| !issue.object.contains("plain")) && lines.len() == 4, "{lines:#?}");
}

#[test]
fn what_an_owner_takes_from_themself_and_options_of_keys_are_made_again() {
    let made = "CREATE TABLE t (id int PRIMARY KEY, x int UNIQUE, CONSTRAINT span EXCLUDE USING gist (int4range(id, id + 1) WITH &&)); ALTER INDEX t_pkey SET (fillfactor = 22); \
         ALTER INDEX t_x_key SET (fillfactor = 33, deduplicate_items = off); ALTER INDEX span SET (fillfactor = 44); CREATE TABLE u (id int); CREATE VIEW v AS SELECT id FROM t; CREATE SEQUENCE s; \
         CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE TYPE mood AS ENUM ('a'); CREATE TABLE w (id int); ALTER TABLE w OWNER TO other; \
         REVOKE UPDATE, TRUNCATE ON t FROM kurabe; REVOKE ALL ON u FROM kurabe; REVOKE ALL ON v, s FROM kurabe; REVOKE EXECUTE ON FUNCTION f() FROM kurabe; \
         REVOKE USAGE ON TYPE mood FROM kurabe; GRANT UPDATE (id) ON t TO kurabe; REVOKE DELETE ON w FROM other; GRANT SELECT ON u TO other; GRANT SELECT (id) ON v TO other";
    let Some((plan, text, [from, to])) = moved(made, "CREATE ROLE other") else { return };
    assert_lists(&plan, &[("grant", "t.to kurabe REVOKE UPDATE"), ("grant", "v.to other SELECT (id)")]);
    assert_eq!(to, from, "{text}");
}

#[test]
fn objects_of_another_schema_are_made_there_or_comments() {
    let made = "CREATE FUNCTION my_lt(int, text) RETURNS bool LANGUAGE sql AS 'SELECT true'; CREATE FUNCTION not_lt(int, text) RETURNS bool LANGUAGE sql AS 'SELECT false'; \
         CREATE OPERATOR other.=%= (LEFTARG = int, RIGHTARG = text, FUNCTION = my_lt, NEGATOR = OPERATOR(other.=!=)); CREATE OPERATOR other.=!= (LEFTARG = int, RIGHTARG = text, FUNCTION = not_lt, NEGATOR = OPERATOR(other.=%=)); \
         CREATE TABLE t (id int PRIMARY KEY)";
    let shown = "SELECT oprnamespace::regnamespace, oprname, oprnegate::regoperator FROM pg_operator WHERE oid >= 16384 ORDER BY 2";
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(&format!("CREATE SCHEMA other; {made}"));
    let Some(without) = Place::new("postgres") else { return };
    to.ask("CREATE SCHEMA other");
    for (place, expected) in [(&to, from.ask(shown)), (&without, String::new())] {
        let text = copy_all(&from, place).unwrap().0.left_text(place.engine());
        let (ran, _, error) = place.feed(&text);
        assert!(ran, "{error}\n{text}");
        assert_eq!(place.ask(shown), expected, "{text}");
    }
}

#[test]
fn objects_that_nothing_of_the_schema_needs_are_lines() {
    let made = "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE nocol (); GRANT SELECT ON nocol TO other; REVOKE DELETE ON nocol FROM kurabe; CREATE PUBLICATION empty; \
         CREATE TRANSFORM FOR int LANGUAGE plpgsql (FROM SQL WITH FUNCTION prsd_lextype(internal), TO SQL WITH FUNCTION int4recv(internal)); CREATE CAST (int AS point) WITH INOUT";
    let Some((plan, text, _)) = moved(made, "CREATE ROLE other") else { return };
    assert_lists(
        &plan,
        &[
            ("grant", "nocol.to other GRANT SELECT"),
            ("grant", "nocol.to kurabe REVOKE DELETE"),
            ("view", "empty publication"),
            ("view", "transform integer plpgsql"),
            ("view", "CREATE CAST integer AS point"),
        ],
    );
    assert!(text.contains("\nGRANT SELECT ON nocol TO other;"), "{text}");
}
