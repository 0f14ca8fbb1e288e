//! Statements of the file of leftovers that need more than tables: they stand after what they need, or are comments with the reason.

use crate::choices::{Done, all, ids, places};
use crate::common::{Place, copy_all, copy_as, dumped, lists};
use kurabe_copy::casts::UserCasts;
use kurabe_copy::reject::Rejects;
use kurabe_copy::wanted::Wanted;
use std::os::unix::fs::{MetadataExt as _, symlink};

/// Objects of PostgreSQL that views, triggers and policies may need.
const NEEDED: &str = "CREATE TABLE t (id int PRIMARY KEY, n text); INSERT INTO t VALUES (1, 'The a10 foxes'), (7, 'a9'); CREATE FUNCTION same(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 = $2'; \
    CREATE FUNCTION other(int, int) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1 <> $2'; CREATE FUNCTION minus(int) RETURNS int LANGUAGE sql AS 'SELECT -$1'; \
    CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = same, COMMUTATOR = ===, NEGATOR = !==, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES); \
    CREATE OPERATOR !== (LEFTARG = int, RIGHTARG = int, FUNCTION = other, NEGATOR = ===); CREATE OPERATOR ~~~ (RIGHTARG = int, FUNCTION = minus); \
    CREATE FUNCTION order_of(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 - $2'; CREATE OPERATOR FAMILY other_ints USING btree; \
    CREATE OPERATOR CLASS ints FOR TYPE int USING btree FAMILY other_ints AS OPERATOR 3 ===, OPERATOR 1 <, FUNCTION 1 order_of(int, int); \
    CREATE OPERATOR CLASS words FOR TYPE tsquery USING gist AS OPERATOR 7 @>, OPERATOR 8 <@, FUNCTION 1 gtsquery_consistent(internal, tsquery, int2, oid, internal), \
      FUNCTION 2 gtsquery_union(internal, internal), FUNCTION 3 gtsquery_compress(internal), FUNCTION 5 gtsquery_penalty(internal, internal, internal), \
      FUNCTION 6 gtsquery_picksplit(internal, internal), FUNCTION 7 gtsquery_same(bigint, bigint, internal), STORAGE bigint; \
    CREATE TEXT SEARCH DICTIONARY \"a dict\" (TEMPLATE = simple, STOPWORDS = english, ACCEPT = false); CREATE TEXT SEARCH CONFIGURATION cfg (COPY = english); \
    ALTER TEXT SEARCH CONFIGURATION cfg ALTER MAPPING FOR asciiword WITH \"a dict\", english_stem; \
    CREATE COLLATION \"By Number\" (PROVIDER = icu, LOCALE = 'en-u-kn-true', DETERMINISTIC = false); CREATE COLLATION plain (LC_COLLATE = 'C', LC_CTYPE = 'POSIX'); \
    CREATE TYPE pair AS (a int, b int); CREATE FUNCTION to_pair(int) RETURNS pair LANGUAGE sql AS 'SELECT row($1, $1)::pair'; \
    CREATE CAST (int AS pair) WITH FUNCTION to_pair(int) AS ASSIGNMENT; CREATE TYPE mood AS ENUM ('a'); CREATE CAST (text AS mood) WITH INOUT AS IMPLICIT; \
    CREATE DOMAIN word AS text COLLATE \"By Number\"; CREATE FUNCTION stretch(int, int) RETURNS int LANGUAGE sql AS 'SELECT $1 + $2'; \
    CREATE AGGREGATE total(int) (SFUNC = stretch, STYPE = int, INITCOND = '0', COMBINEFUNC = int4pl, PARALLEL = safe); \
    CREATE AGGREGATE many(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = 0); CREATE AGGREGATE part(float8 ORDER BY anyelement) \
      (SFUNC = ordered_set_transition, STYPE = internal, FINALFUNC = percentile_disc_final, FINALFUNC_EXTRA); \
    CREATE VIEW a_of AS SELECT * FROM t WHERE id === 7; CREATE VIEW b_ts AS SELECT to_tsvector('cfg', n) AS v FROM t; \
    CREATE VIEW c_coll AS SELECT n COLLATE \"By Number\" AS n, n COLLATE plain AS m FROM t; CREATE VIEW d_cast AS SELECT id::pair AS p, n::mood AS m FROM t; \
    CREATE VIEW e_sum AS SELECT total(id) AS s, many(*) AS c, part(0.5) WITHIN GROUP (ORDER BY id) AS p FROM t; \
    CREATE VIEW f_of AS SELECT id FROM a_of WHERE ~~~id < 3; CREATE MATERIALIZED VIEW g_kept AS SELECT id FROM f_of; CREATE INDEX ON g_kept (id ints); \
    CREATE FUNCTION words(word) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; \
    CREATE POLICY mine ON t USING (id === 3); CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW WHEN (new.id !== old.id) EXECUTE FUNCTION fill(); \
    CREATE RULE quiet AS ON DELETE TO t WHERE old.id === 9 DO INSTEAD NOTHING";

/// The definitions of those.
const DEFINED: &str = "SELECT oprname, oprcode, oprcom::regoper, oprnegate::regoper, oprrest, oprjoin, oprcanhash, oprcanmerge FROM pg_operator \
      WHERE oprnamespace = 'public'::regnamespace ORDER BY 1; SELECT collname, collprovider, collcollate, collctype, colliculocale, collisdeterministic \
      FROM pg_collation WHERE collnamespace = 'public'::regnamespace ORDER BY 1; SELECT castsource::regtype, casttarget::regtype, castfunc::regproc, castcontext, castmethod \
      FROM pg_cast WHERE oid >= 16384 ORDER BY castsource::regtype::text; SELECT opcname, opcdefault, opcintype::regtype, opckeytype::regtype, opfname FROM pg_opclass JOIN pg_opfamily f ON f.oid = opcfamily WHERE opcnamespace = 'public'::regnamespace \
      ORDER BY 1; SELECT amopstrategy, amopopr::regoperator, opfname FROM pg_amop JOIN pg_opfamily f ON f.oid = amopfamily WHERE f.oid >= 16384 ORDER BY 3, 1; \
    SELECT amprocnum, amproc, opfname FROM pg_amproc JOIN pg_opfamily f ON f.oid = amprocfamily WHERE f.oid >= 16384 ORDER BY 3, 1; \
    SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'g_kept'::regclass; SELECT dictname, tmplname, dictinitoption FROM pg_ts_dict JOIN pg_ts_template t ON t.oid = dicttemplate \
      WHERE dictnamespace = 'public'::regnamespace; SELECT maptokentype, mapseqno, mapdict::regdictionary FROM pg_ts_config_map WHERE mapcfg = 'cfg'::regconfig ORDER BY 1, 2; \
    SELECT aggfnoid, aggkind, aggtransfn, aggfinalfn, aggcombinefn, aggfinalextra, aggfinalmodify, aggtranstype::regtype, agginitval FROM pg_aggregate \
      WHERE aggfnoid::oid >= 16384 ORDER BY aggfnoid::text; SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1; \
    SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'tr'; SELECT pg_get_expr(polqual, polrelid) FROM pg_policy; \
    SELECT pg_get_ruledef(oid) FROM pg_rewrite WHERE rulename = 'quiet'; SELECT * FROM f_of; SELECT * FROM g_kept; SELECT v FROM b_ts ORDER BY 1; \
    SELECT n FROM c_coll ORDER BY 1; SELECT s, c, p FROM e_sum; SELECT proname, proargtypes::regtype[] FROM pg_proc WHERE proname = 'words'";

#[test]
fn statements_stand_after_operators_casts_collations_and_aggregates_that_they_need() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(NEEDED);
    let (plan, _) = copy_all(&from, &to).unwrap();
    let text = plan.left_text(to.engine());
    // Nothing that was tried is there.
    assert_eq!(to.ask("SELECT count(*) FROM pg_operator WHERE oid >= 16384; SELECT count(*) FROM pg_views WHERE schemaname = 'public'"), "0\n0");
    let (ran, _, error) = to.feed(&text);
    assert!(ran, "{error}\n{text}");
    assert!(!text.contains("the target refuses it"), "{text}");
    assert_eq!(to.ask(DEFINED), from.ask(DEFINED), "{text}");
}

/// Which may call functions and name operator classes of the source.
#[test]
fn indexes_and_constraints_that_are_left_out_stand_after_what_they_need() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, x int, p int REFERENCES t (id), UNIQUE (x), CONSTRAINT span EXCLUDE USING gist (int4range(id, id + 1) WITH &&)); \
         CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'; CREATE UNIQUE INDEX fi ON t (f(x)); ALTER TABLE t ADD CONSTRAINT cf CHECK (f(x) > 0); \
         CREATE OPERATOR CLASS opc FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 btint4cmp(int, int); CREATE UNIQUE INDEX opi ON t (x opc); \
         COMMENT ON INDEX opi IS 'c'; COMMENT ON CONSTRAINT cf ON t IS 'c'; COMMENT ON CONSTRAINT t_p_fkey ON t IS 'c'; ALTER TABLE t CLUSTER ON t_x_key; ALTER INDEX fi ALTER COLUMN 1 SET STATISTICS 7; \
         ALTER TABLE t ALTER x SET NOT NULL; ALTER TABLE t REPLICA IDENTITY USING INDEX t_x_key; CREATE VIEW v AS SELECT id, x FROM t GROUP BY id",
    );
    let names = ["t_pkey", "t_x_key", "t_p_fkey", "span", "cf", "fi", "opi"];
    let wanted = Wanted { leave_out: names.map(str::to_owned).to_vec(), ..all() };
    let text = copy_as(&from, &to, &wanted).unwrap().0.left_text(to.engine());
    let (ran, _, error) = to.feed(&text);
    assert!(ran && !text.contains("refuses"), "{error}\n{text}");
    let made = "SELECT pg_get_indexdef(i.indexrelid), indisclustered, indisreplident, obj_description(indexrelid), attstattarget FROM pg_index i \
                  JOIN pg_attribute ON attrelid = indexrelid WHERE indrelid = 't'::regclass ORDER BY 1; \
                SELECT conname, pg_get_constraintdef(oid), obj_description(oid) FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY 1";
    assert_eq!(to.ask(made), from.ask(made), "{text}");
}

/// The server's text of such an index names the table behind ONLY.
#[test]
fn left_out_index_of_a_partitioned_table_is_a_statement_without_a_trial_of_its_function() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'; CREATE TABLE p (a int) PARTITION BY RANGE (a); \
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9); CREATE INDEX fi ON p (f(a)); INSERT INTO p VALUES (1)",
    );
    let wanted = Wanted { leave_out: vec!["fi".to_owned()], ..all() };
    let text = copy_as(&from, &to, &wanted).unwrap().0.left_text(to.engine());
    let (ran, _, error) = to.feed(&text);
    assert!(ran && !text.contains("refuses"), "{error}\n{text}");
    let keys = "SELECT count(*) FROM pg_index WHERE indrelid = 'p'::regclass AND pg_get_expr(indexprs, indrelid) = 'f(a)'";
    assert_eq!((from.ask(keys), to.ask(keys)), ("1".to_owned(), "1".to_owned()), "{text}");
}

#[test]
fn table_that_is_left_out_stands_in_the_file_with_all_that_belongs_to_it() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    let role = "CREATE ROLE of_left; ";
    from.ask(&format!(
        "{role}CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1'; CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; \
         CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE ff (id serial PRIMARY KEY, a int DEFAULT f(1) REFERENCES p, b text, UNIQUE (a), CONSTRAINT c CHECK (f(a) > 0), \
           CONSTRAINT span EXCLUDE USING gist (int4range(id, id + 1) WITH &&)); COMMENT ON TABLE ff IS 'c'; COMMENT ON COLUMN ff.b IS 'd'; COMMENT ON CONSTRAINT c ON ff IS 'e'; \
         CREATE INDEX i ON ff (b); CREATE INDEX g ON ff (f(a)) WHERE a > 1; COMMENT ON INDEX i IS 'f'; CREATE STATISTICS st ON a, b FROM ff; ALTER TABLE ff ALTER b SET STATISTICS 7; \
         ALTER TABLE ff CLUSTER ON i; ALTER TABLE ff ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON ff USING (a > 1); CREATE RULE quiet AS ON DELETE TO ff DO INSTEAD NOTHING; \
         CREATE TRIGGER tr BEFORE INSERT ON ff FOR EACH ROW EXECUTE FUNCTION fill(); GRANT SELECT, UPDATE (b) ON ff TO of_left; GRANT SELECT ON p TO of_left; \
         CREATE TABLE nocol (); COMMENT ON TABLE nocol IS 'g'; GRANT SELECT ON nocol TO of_left; CREATE TRIGGER tr BEFORE INSERT ON nocol FOR EACH ROW EXECUTE FUNCTION fill()"
    ));
    to.ask(role);
    let wanted = Wanted { leave_out: vec!["ff".to_owned()], ..all() };
    let (plan, _) = copy_as(&from, &to, &wanted).unwrap();
    let text = plan.left_text(to.engine());
    let (ran, _, error) = to.feed(&text);
    assert!(ran && !text.contains("refuses"), "{error}\n{text}");
    to.ask("DROP TABLE IF EXISTS kurabe_copy, kurabe_marker");
    assert_eq!(dumped(&to), dumped(&from), "{text}");
    // What the user left out needs no acceptance.
    assert!(!plan.issues.iter().any(|issue| issue.object.starts_with("ff")), "{:?}", plan.issues);
    for place in [&from, &to] {
        place.ask("DROP OWNED BY of_left; DROP ROLE of_left");
    }
}

/// Also what an empty table would not show: a query is not executed.
#[test]
fn statements_that_need_a_partition_or_another_schema_are_comments_with_all_that_needs_them() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE pay (id int, day date) PARTITION BY RANGE (day); CREATE TABLE pay_1 PARTITION OF pay FOR VALUES FROM ('2024-01-01') TO ('2025-01-01'); \
         CREATE SCHEMA other; CREATE TABLE other.x (i int); CREATE FUNCTION other.f() RETURNS int LANGUAGE sql AS 'SELECT 1'; \
         CREATE VIEW part AS SELECT * FROM pay_1; CREATE VIEW a_part AS SELECT id FROM part; CREATE VIEW whole AS SELECT * FROM pay; GRANT SELECT ON a_part TO PUBLIC; \
         CREATE VIEW far AS SELECT i FROM other.x; CREATE VIEW called AS SELECT other.f() AS f; CREATE FUNCTION row_of(pay_1) RETURNS int LANGUAGE sql AS 'SELECT 1'; \
         CREATE FUNCTION body() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM pay_1; END; CREATE VIEW uses AS SELECT body() AS b; \
         CREATE FUNCTION slow() RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''executed''; END'; CREATE MATERIALIZED VIEW lazy AS SELECT slow() AS s WITH NO DATA; \
         CREATE TRIGGER of_part BEFORE INSERT ON pay_1 FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    );
    let (plan, _) = copy_all(&from, &to).unwrap();
    let text = plan.left_text(to.engine());
    let is_comment = |name: &str| text.contains(&format!("\n-- CREATE {name}"));
    for (name, why) in [
        ("VIEW part ", "relation \"pay_1\" does not exist"),
        ("VIEW a_part ", "relation \"part\" does not exist"),
        ("VIEW far ", "relation \"other.x\" does not exist"),
        ("VIEW called ", "schema \"other\" does not exist"),
        ("OR REPLACE FUNCTION row_of", "type pay_1 does not exist"),
        ("OR REPLACE FUNCTION body", "relation \"pay_1\" does not exist"),
        ("VIEW uses ", "function body() does not exist"),
    ] {
        assert!(
            is_comment(name)
                && text.contains(&format!("\n-- the target refuses it: the server answered: {why}")),
            "{name}: {text}"
        );
    }
    assert!(
        text.contains("\n-- GRANT SELECT ON TABLE a_part")
            && !is_comment("VIEW whole")
            && !is_comment("MATERIALIZED"),
        "{text}"
    );
    let (ran, _, error) = to.feed(&text.replace("slow() AS s", "1 AS s").replace("(slow()", "(1"));
    assert!(ran, "{error}\n{text}");
    assert_eq!(to.ask("SELECT viewname FROM pg_views WHERE schemaname = 'public'"), "whole");
    // Where the other schema is, what needs it runs.
    let Some(to) = Place::new("postgres") else { return };
    to.ask("CREATE SCHEMA other; CREATE TABLE other.x (i int); CREATE FUNCTION other.f() RETURNS int LANGUAGE sql AS 'SELECT 1'");
    let text = copy_all(&from, &to).unwrap().0.left_text(to.engine());
    assert!(text.contains("\nCREATE VIEW far ") && text.contains("\nCREATE VIEW called "), "{text}");
}

/// A function that the source's users made would do as the user of the copy what they want: the server computes constant parts of an index
/// and of a constraint as it makes them.
#[test]
fn trial_executes_no_function_of_the_source() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'; CREATE TABLE t (id int PRIMARY KEY, n int, CONSTRAINT c CHECK (n > f(0))); \
         CREATE MATERIALIZED VIEW m AS SELECT id, f(2) AS b FROM t; CREATE UNIQUE INDEX \"an ON index\" ON m ((id + f(3))); \
         CREATE VIEW v AS SELECT f(5) AS f; CREATE POLICY p ON t USING (f(6) > 0); CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW WHEN (f(7) > 0) EXECUTE FUNCTION suppress_redundant_updates_trigger(); \
         CREATE FUNCTION g(a int DEFAULT f(8)) RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT f(9); END; CREATE RULE r AS ON DELETE TO t WHERE f(10) > 0 DO INSTEAD NOTHING; \
         CREATE OR REPLACE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''executed''; END'",
    );
    let mut wanted = all();
    wanted.casts.add("t.n=bigint").unwrap();
    let (plan, _) = copy_as(&from, &to, &wanted).unwrap();
    let text = plan.left_text(to.engine());
    let comments =
        text.lines().filter(|line| line.starts_with("-- ")).filter(|line| !line.contains(": ")).count();
    assert_eq!((comments, text.contains("executed [")), (1, false), "{text}");
    for begin in [
        "CREATE UNIQUE INDEX \"an ON index\"",
        "ALTER TABLE \"t\" ADD CONSTRAINT \"c\"",
        "CREATE MATERIALIZED VIEW m ",
    ] {
        assert!(text.contains(&format!("\n{begin}")), "{begin}: {text}");
    }
    let (ran, _, error) = to.feed(&text.replace("RAISE EXCEPTION 'executed'", "RETURN 1"));
    assert!(ran, "{error}\n{text}");
}

/// The user of the copy may do less than who executes the file.
#[test]
fn statement_that_the_user_of_the_copy_may_not_execute_stays_one() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY); CREATE ROLE here; ALTER TABLE t OWNER TO here; CREATE VIEW v AS SELECT id, count(*) FROM t GROUP BY id");
    to.ask("CREATE ROLE here; CREATE ROLE low LOGIN PASSWORD 'low'; GRANT ALL ON SCHEMA public TO low");
    let copied =
        crate::common::copied(&from.url(), &to.url_of("low:low"), &all(), &crate::common::NEVER, &mut |_| {});
    let text = copied.unwrap().0.left_text(to.engine());
    assert!(text.contains("\nALTER TABLE t OWNER TO here;") && text.contains("\nCREATE VIEW v "), "{text}");
    let (ran, _, error) = to.feed(&text);
    assert!(ran, "{error}\n{text}");
    assert_eq!(to.ask("SELECT relowner::regrole FROM pg_class WHERE relname = 't'"), "here");
    from.ask("DROP OWNED BY here CASCADE; DROP ROLE here");
    to.ask("DROP OWNED BY here, low CASCADE; DROP ROLE here, low");
}

/// Servers of MySQL and MariaDB make no view of what is not there, and have no trial of one.
#[test]
fn views_of_other_databases_and_broken_ones_are_comments_with_all_that_reads_them() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask(
            "CREATE DATABASE `far``db`; CREATE TABLE `far``db`.x (i int); CREATE TABLE t (id int PRIMARY KEY, far int); CREATE TABLE gone (id int); \
             CREATE VIEW a AS SELECT id, '😀' AS `gone` FROM t; CREATE VIEW b AS SELECT id FROM gone; CREATE VIEW c AS SELECT * FROM b; \
             CREATE VIEW d AS SELECT x.i FROM `far``db`.x x; CREATE VIEW e AS SELECT d.i, t.far AS d FROM t JOIN d ON d.i = t.id; CREATE VIEW f AS SELECT id AS b FROM a; \
             DROP TABLE gone; CREATE TABLE `far``db` (id int, i int); CREATE FUNCTION own(a int) RETURNS int DETERMINISTIC RETURN a; \
             CREATE VIEW h AS SELECT `far``db`.id, kurabe.own(`far``db`.i) AS i FROM kurabe.`far``db` JOIN t ON t.id = `far``db`.id; CREATE VIEW g AS SELECT table_name AS d FROM information_schema.tables",
        );
        let (plan, _) = copy_all(&from, &to).unwrap();
        let text = plan.left_text(to.engine());
        for view in ["b", "c", "d", "e"] {
            let line = text.lines().find(|line| line.contains(&format!(" VIEW `{view}` AS")));
            assert!(line.is_some_and(|line| line.starts_with("-- CREATE")), "{engine} {view}: {text}");
        }
        assert!(text.contains("-- the target has no `far``db`.`x`: create it first"), "{engine}: {text}");
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{engine}: {error}\n{text}");
        let views =
            "SELECT table_name FROM information_schema.views WHERE table_schema = DATABASE() ORDER BY 1";
        assert_eq!(to.ask(views), "a\nf\ng\nh", "{engine}: {text}");
        assert_eq!(to.ask("INSERT INTO t VALUES (1, 1); SELECT HEX(gone) FROM a"), "F09F9880", "{engine}");
        // Where the other database is, what reads it runs.
        let Some(to) = Place::new(engine) else { continue };
        to.ask("CREATE DATABASE `far``db`; CREATE TABLE `far``db`.x (i int)");
        let text = copy_all(&from, &to).unwrap().0.left_text(to.engine());
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{engine}: {error}\n{text}");
        assert!(to.ask(views).starts_with("a\nd\n"), "{engine}: {text}");
        from.ask("DROP DATABASE `far``db`");
        to.ask("DROP DATABASE `far``db`");
    }
}

/// A table whose words the server does not show would be another one.
#[test]
fn table_that_is_left_out_is_a_comment_where_its_words_are_not_known() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE e (id int PRIMARY KEY, w enum('😀', 'b')) CHARSET utf8mb4; CREATE TABLE k (id int PRIMARY KEY, w enum('é', 'b')) CHARSET utf8mb4");
        let leave_out = ["e", "k"].map(str::to_owned).to_vec();
        let (plan, _) = copy_as(&from, &to, &Wanted { leave_out, ..all() }).unwrap();
        let text = plan.left_text(to.engine());
        assert!(text.contains("\n-- enum('?','b'): the server may not show all of its characters as they are\n-- CREATE TABLE `e`"), "{engine}: {text}");
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{engine}: {error}\n{text}");
        assert_eq!(to.ask("SHOW TABLES"), "k\nt", "{engine}");
        assert_eq!(to.ask("INSERT INTO k VALUES (1, 'é'); SELECT HEX(w) FROM k"), "C3A9", "{engine}");
    }
}

/// MariaDB writes a literal of another character set as bytes, and all of the default.
#[test]
fn default_that_is_known_stays_where_the_check_of_its_column_is_not() {
    let Some((from, to)) = places(["mariadb", "mariadb"]) else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY, a varchar(9) DEFAULT 'x?' CHECK (a <> _latin1 x'E9'), b varchar(9) DEFAULT 'y') CHARSET utf8mb4");
    let (plan, _) = copy_all(&from, &to).unwrap();
    assert!(lists(&plan, "check", "t.a may not show") && !lists(&plan, "default", "t."), "{:?}", plan.issues);
    assert_eq!(to.ask("INSERT INTO t (id) VALUES (1); SELECT a, b FROM t"), "x?\ty");
}

/// A collation of the same name in another schema is not the one that a type names.
#[test]
fn collation_is_known_by_its_schema_and_its_name() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    let made = "CREATE SCHEMA far; CREATE COLLATION far.same (PROVIDER = icu, LOCALE = 'de')";
    from.ask(&format!("{made}; CREATE TABLE t (id int PRIMARY KEY, v text COLLATE far.same, w text COLLATE \"de-x-icu\"); CREATE DOMAIN unused AS text COLLATE far.same"));
    to.ask("CREATE COLLATION same (PROVIDER = icu, LOCALE = 'fr')");
    let (plan, _) = copy_all(&from, &to).unwrap();
    assert!(
        lists(&plan, "collation", "t.v far.same") && lists(&plan, "view", "unused far.same"),
        "{:?}",
        plan.issues
    );
    let (ran, _, error) = to.feed(&plan.left_text(to.engine()));
    assert!(ran, "{error}");
    let of = "SELECT attname, attcollation::regcollation FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 1 ORDER BY 1";
    assert_eq!(to.ask(of), "v|\"default\"\nw|\"de-x-icu\"");
    let Some(to) = Place::new("postgres") else { return };
    to.ask(made);
    let (plan, _) = copy_all(&from, &to).unwrap();
    assert!(plan.issues.is_empty(), "{:?}", plan.issues);
    assert_eq!(to.ask(of), from.ask(of));
}

#[test]
fn serial_column_of_a_table_that_is_renamed_leaves_no_sequence_behind() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE a (id serial PRIMARY KEY, v int); CREATE TABLE b (id serial PRIMARY KEY, v int); CREATE SEQUENCE own; CREATE TABLE c (id int DEFAULT nextval('own')); \
         CREATE TABLE d (id int DEFAULT nextval('b_id_seq')); INSERT INTO a (v) VALUES (1), (2); INSERT INTO b (v) VALUES (1)",
    );
    let rename =
        [("a", "a2"), ("b", "b2"), ("c", "c2")].map(|(from, to)| (from.to_owned(), to.to_owned())).to_vec();
    copy_as(&from, &to, &Wanted { rename, ..all() }).unwrap();
    let made = "SELECT relname FROM pg_class WHERE relkind = 'S' ORDER BY 1";
    // Another table draws from one of them.
    assert_eq!(to.ask(made), "a2_id_seq\nb2_id_seq\nb_id_seq\nown");
    let next = "INSERT INTO a2 (v) VALUES (3) RETURNING id; INSERT INTO b2 (v) VALUES (2) RETURNING id; INSERT INTO d DEFAULT VALUES RETURNING id";
    assert_eq!(to.ask(next), "3\n2\n2");
}

/// Whoever may write in the folder may put something beside the file of refused rows.
#[test]
fn file_of_refused_rows_follows_and_loses_nothing_that_others_put_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, theirs) = (folder.path().join("refused"), folder.path().join("theirs"));
    std::fs::write(&theirs, "theirs").unwrap();
    for planted in ["link", "folder", "file"] {
        let beside = folder.path().join("refused.new");
        match planted {
            "link" => symlink(&theirs, &beside).unwrap(),
            "folder" => std::fs::create_dir(&beside).unwrap(),
            _ => std::fs::write(&beside, "kept").unwrap(),
        }
        let Some((from, to)) = places(["sqlite", "postgres"]) else { return };
        from.ask(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES (1, '1'), (2, 'word')",
        );
        let mut casts = UserCasts::default();
        casts.add("t.v=integer").unwrap();
        let done = Done { rejected: Some(Rejects::open(&path).unwrap()), ..Done::by(1) };
        done.copy(&from, &to, &Wanted { casts, ..all() }).unwrap();
        assert_eq!(ids(&path).last(), Some(&2), "{planted}");
        let found = std::fs::symlink_metadata(&beside).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{planted}");
        match planted {
            "link" => std::fs::remove_file(&beside).unwrap(),
            "folder" => std::fs::remove_dir(&beside).unwrap(),
            _ => assert_eq!((found.is_file(), std::fs::read(&beside).unwrap()), (true, b"kept".to_vec())),
        }
    }
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    // No file of its own is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}
