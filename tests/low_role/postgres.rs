//! PostgreSQL: what others create in a schema of the search path (CVE-2018-1058), and before us under our names.

use super::*;
use kurabe_advise::change::{Change, Index, TableName};
use kurabe_advise::shapes::Part;
use kurabe_testbed::{Server, testing};

/// What the low role's functions call. It counts in a sequence, which no rollback undoes, and fails in a transaction that only
/// reads.
const SPRUNG: &str = "CREATE FUNCTION public.sprung(what pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN \
    IF session_user::pg_catalog.text OPERATOR(pg_catalog.<>) 'low' THEN \
    PERFORM pg_catalog.nextval('public.sprung_count'); RAISE WARNING 'sprung: %', what; END IF; RETURN true; END $$";

/// Functions: name, parameters, result.
const FUNCTIONS: &[(&str, &str, &str)] = &[
    ("quote_ident", "name", "text"),
    ("quote_literal", "oid", "text"),
    ("quote_literal", "name", "text"),
    ("lower", "varchar", "text"),
    ("lower", "name", "text"),
    ("length", "varchar", "int"),
    ("length", "name", "int"),
    ("octet_length", "varchar", "int"),
    ("char_length", "varchar", "int"),
    ("left", "name, int", "text"),
    ("format", "text, bigint, bigint", "text"),
    ("pg_relation_size", "oid", "bigint"),
    ("pg_total_relation_size", "oid", "bigint"),
    ("has_sequence_privilege", "oid, text", "boolean"),
    ("has_table_privilege", "name, text", "boolean"),
    ("pg_get_expr", "pg_node_tree, int", "text"),
    ("obj_description", "oid, name", "text"),
    ("unnest", "name[]", "name"),
    ("array_to_string", "name[], text", "text"),
    ("to_json", "varchar", "json"),
    ("pg_typeof", "varchar", "regtype"),
    ("textsend", "varchar", "bytea"),
    ("concat_ws", "text, name", "text"),
    ("round", "double precision, int", "double precision"),
];

/// Operators: name, left and right type, result.
const OPERATORS: &[(&str, &str, &str, &str)] = &[
    ("=", "oid", "int", "boolean"),
    ("=", "oid", "regclass", "boolean"),
    ("=", "oid", "regnamespace", "boolean"),
    ("<>", "oid", "regnamespace", "boolean"),
    ("=", "name", "varchar", "boolean"),
    ("=", "varchar", "varchar", "boolean"),
    ("<", "varchar", "varchar", "boolean"),
    (">", "varchar", "varchar", "boolean"),
    (">=", "varchar", "varchar", "boolean"),
    ("<", "oid", "int", "boolean"),
    ("~", "name", "name", "boolean"),
    ("~~", "name", "name", "boolean"),
    ("||", "text", "regclass", "text"),
    ("||", "text", "name", "text"),
    ("||", "name", "text", "text"),
    ("||", "text", "\"char\"", "text"),
    ("||", "text", "bigint", "text"),
    ("||", "text", "regrole", "text"),
    ("%", "bigint", "int", "bigint"),
];

/// What is neither: aggregates, types and views under the names of the server's.
const OTHERS: &[&str] = &[
    "CREATE FUNCTION public.step(pg_catalog.int8, pg_catalog.name) RETURNS pg_catalog.int8 LANGUAGE plpgsql AS $$ BEGIN \
     PERFORM public.sprung('count'); RETURN $1 + 1; END $$",
    "CREATE AGGREGATE public.count(pg_catalog.name) (SFUNC = public.step, STYPE = pg_catalog.int8, INITCOND = '0')",
    "CREATE FUNCTION public.larger(pg_catalog.varchar, pg_catalog.varchar) RETURNS pg_catalog.varchar LANGUAGE plpgsql AS $$ \
     BEGIN PERFORM public.sprung('max'); RETURN $2; END $$",
    "CREATE AGGREGATE public.max(pg_catalog.varchar) (SFUNC = public.larger, STYPE = pg_catalog.varchar)",
    "CREATE FUNCTION public.joined(pg_catalog.text, pg_catalog.name, pg_catalog.text) RETURNS pg_catalog.text LANGUAGE plpgsql \
     AS $$ BEGIN PERFORM public.sprung('string_agg'); RETURN $2; END $$",
    "CREATE AGGREGATE public.string_agg(pg_catalog.name, pg_catalog.text) (SFUNC = public.joined, STYPE = pg_catalog.text)",
    "CREATE DOMAIN public.text AS pg_catalog.text CHECK (public.sprung('type text'))",
    "CREATE DOMAIN public.bytea AS pg_catalog.bytea CHECK (public.sprung('type bytea'))",
    "CREATE DOMAIN public.timestamptz AS pg_catalog.timestamptz CHECK (public.sprung('type timestamptz'))",
    "CREATE VIEW public.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE public.sprung('pg_class')",
    "CREATE VIEW public.pg_settings AS SELECT * FROM pg_catalog.pg_settings WHERE public.sprung('pg_settings')",
    "CREATE VIEW public.pg_stat_activity AS SELECT * FROM pg_catalog.pg_stat_activity WHERE public.sprung('activity')",
];

/// A role that may create in `public`, with all traps but those of our own names.
fn with_traps(server: &Server) -> (Db, Db) {
    // Whatever our role may do, the other one must not do by it.
    testing::make_superuser(server);
    let url = server.url();
    let mut own = Db::open(url);
    own.run(&format!("CREATE ROLE {LOW} LOGIN PASSWORD '{PASSWORD}'"));
    own.run(&format!("GRANT USAGE, CREATE ON SCHEMA public TO {LOW}"));
    let mut low = Db::open(&as_low(url));
    low.all(&["CREATE SEQUENCE public.sprung_count", SPRUNG]);
    for (name, takes, gives) in FUNCTIONS {
        low.run(&format!(
            "CREATE FUNCTION public.{name}({takes}) RETURNS {gives} LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM public.sprung('{name}({takes})'); RETURN NULL; END $$"
        ));
    }
    for (number, (name, left, right, gives)) in OPERATORS.iter().enumerate() {
        low.run(&format!(
            "CREATE FUNCTION public.operator_{number}({left}, {right}) RETURNS {gives} LANGUAGE plpgsql AS $$ BEGIN \
             PERFORM public.sprung('({left}) {name} ({right})'); RETURN NULL; END $$"
        ));
        low.run(&format!(
            "CREATE OPERATOR public.{name} (FUNCTION = public.operator_{number}, LEFTARG = {left}, RIGHTARG = {right})"
        ));
    }
    low.all(OTHERS);
    (own, low)
}

fn sprung(low: &mut Db) -> String {
    low.value("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM public.sprung_count")
}

#[test]
fn traps_of_these_tests_run_where_a_statement_is_not_guarded() {
    let Some(server) = testing::server("postgres") else { return };
    let (mut own, mut low) = with_traps(&server);
    for (at, statement) in [
        "SELECT lower('A'::varchar)",
        "SELECT 'a'::varchar = 'b'::varchar",
        "SELECT quote_ident(relname) FROM pg_catalog.pg_class LIMIT 1",
        "SELECT 1 FROM pg_catalog.pg_class WHERE relnamespace = 'pg_catalog'::regnamespace LIMIT 1",
        "SELECT 'a'::public.text",
    ]
    .into_iter()
    .enumerate()
    {
        let before: u64 = sprung(&mut low).parse().unwrap();
        own.run(statement);
        assert!(sprung(&mut low).parse::<u64>().unwrap() > before, "{at}: {statement}");
    }
}

#[test]
fn no_command_runs_functions_operators_and_types_of_others() {
    let Some(server) = testing::server("postgres") else { return };
    let (_own, mut low) = with_traps(&server);
    let place = Place::new();
    run_all(&place, server.url(), &mut |command| assert_eq!(sprung(&mut low), "0", "{command}"));
}

#[test]
fn statement_of_advice_runs_no_functions_and_operators_of_others() {
    let Some(server) = testing::server("postgres") else { return };
    let (mut own, mut low) = with_traps(&server);
    // An index takes functions that say so.
    let equal = OPERATORS.iter().position(|one| one.0 == "=" && one.1 == "varchar").unwrap();
    low.run("ALTER FUNCTION public.lower(varchar) IMMUTABLE");
    low.run(&format!("ALTER FUNCTION public.operator_{equal} IMMUTABLE"));
    own.run("CREATE TABLE item (name varchar(20), state varchar(20))");
    own.run("INSERT INTO item VALUES ('A', 'b')");
    let index = |part| {
        let only = Some(("state".to_owned(), "'b'".to_owned()));
        Change::Index(Index {
            name: "i".to_owned(),
            table: TableName { schema: String::new(), name: "item".to_owned() },
            parts: vec![part],
            only,
            ..Index::default()
        })
    };
    let name = || "name".to_owned();
    for part in [Part::Call { function: "lower".to_owned(), column: name() }, Part::Beginning(name())] {
        own.run(&index(part).sql(of_scheme("postgres").unwrap()).unwrap());
        own.run("DROP INDEX i");
    }
    assert_eq!(sprung(&mut low), "0");
}

/// Tables of others, with columns of their own types and what a copy lists.
const SOURCE: &[&str] = &[
    "CREATE TYPE mood AS ENUM ('sad', 'glad')",
    "CREATE FUNCTION mood_text(mood) RETURNS pg_catalog.text LANGUAGE plpgsql AS $$ BEGIN PERFORM sprung('cast to text'); \
     RETURN 'x'; END $$",
    "CREATE CAST (mood AS pg_catalog.text) WITH FUNCTION mood_text(mood)",
    "CREATE FUNCTION mood_json(mood) RETURNS json LANGUAGE plpgsql AS $$ BEGIN PERFORM sprung('cast to json'); \
     RETURN '1'; END $$",
    "CREATE CAST (mood AS json) WITH FUNCTION mood_json(mood)",
    "CREATE TABLE people (name varchar(20) PRIMARY KEY, feels mood, had mood[], n bigint DEFAULT 5, at timestamptz, \
     big numeric, note pg_catalog.text COLLATE \"C\")",
    "COMMENT ON TABLE people IS 'all of them'",
    "CREATE TABLE pets (id serial PRIMARY KEY, of varchar(20) REFERENCES people, born pg_catalog.timestamptz)",
    "CREATE INDEX by_owner ON pets (of)",
    "CREATE VIEW names AS SELECT name, sprung('view') FROM people",
    "INSERT INTO people (name, feels, had) SELECT pg_catalog.concat('p', g), 'glad', '{sad,glad}' FROM generate_series(1, 3000) g",
    "INSERT INTO pets (of) SELECT pg_catalog.concat('p', g) FROM generate_series(1, 3000) g",
];

#[test]
fn copy_runs_nothing_of_the_source_and_nothing_of_the_target() {
    let (Some(server), Some(second)) = (testing::server("postgres"), testing::server("postgres")) else {
        return;
    };
    let (_own, mut low) = with_traps(&server);
    let (_, mut low_of_target) = with_traps(&second);
    low.all(SOURCE);
    let place = Place::new();
    let file = format!("sqlite:{}", place.at("copy.db"));
    let all: Vec<&str> = kurabe_copy::issue::IssueKind::ALL.iter().map(|kind| kind.name()).collect();
    let accepted = all.join(",");
    let tables = ["--tables", "people,pets", "--accept", &accepted];
    let mut look = |command: &str| {
        assert_eq!(sprung(&mut low), "0", "source, {command}");
        assert_eq!(sprung(&mut low_of_target), "0", "target, {command}");
    };
    let copy = |to: &str, more: &[&str]| {
        let answer = place.run(&[&["copy", server.url(), to], &tables[..], more].concat());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer
    };
    copy(&file, &["--dry-run"]);
    look("plan");
    copy(&file, &[]).out_has("the digests of all values are equal");
    look("copy to SQLite");
    // The types are made there as they are here.
    copy(second.url(), &["--jobs", "2"]).out_has("the digests of all values are equal");
    look("copy to PostgreSQL");
    let answer = place.run(&[
        "copy",
        &file,
        second.url(),
        "--rename",
        "people=p2,pets=q2",
        "--leave-out",
        "by_owner",
        "--leftovers",
        &place.at("left.sql"),
        "--accept",
        &accepted,
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    look("copy from SQLite");
}

/// Ownership tables that the low role made: each is refused.
const MARKERS: &[(&str, &[&str])] = &[
    ("a table of another role", &[]),
    (
        "a trigger",
        &[
            "CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON kurabe_marker EXECUTE FUNCTION fires()",
        ],
    ),
    ("a rule", &["CREATE RULE r AS ON INSERT TO kurabe_marker DO ALSO SELECT sprung('rule')"]),
    ("a default", &["ALTER TABLE kurabe_marker ALTER made_at SET DEFAULT sprung('default')::int"]),
    ("a check", &["ALTER TABLE kurabe_marker ADD CHECK (sprung('check'))"]),
    (
        "a domain",
        &[
            "CREATE DOMAIN spring AS bigint CHECK (sprung('domain'))",
            "ALTER TABLE kurabe_marker ALTER made_at TYPE spring",
        ],
    ),
    (
        "row security",
        &[
            "ALTER TABLE kurabe_marker ENABLE ROW LEVEL SECURITY",
            "CREATE POLICY p ON kurabe_marker USING (sprung('policy'))",
        ],
    ),
    ("a child", &["CREATE TABLE child () INHERITS (kurabe_marker)"]),
    ("an index of an expression", &["CREATE INDEX ON kurabe_marker (checked(name))"]),
];

/// The columns of our own.
const MARKER: &str = "CREATE TABLE kurabe_marker (name varchar(60) COLLATE \"C\" NOT NULL PRIMARY KEY, \
    made_by varchar(60) COLLATE \"C\", made_at bigint)";

#[test]
fn ownership_table_of_others_is_refused_and_removes_nothing() {
    let Some(server) = testing::server("postgres") else { return };
    let (mut own, mut low) = with_traps(&server);
    low.run("CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM sprung('trigger'); RETURN NEW; END $$");
    low.run("CREATE FUNCTION checked(varchar) RETURNS pg_catalog.text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN PERFORM sprung('index'); RETURN $1; END $$");
    // What somebody keeps there under a name like ours.
    own.all(&["CREATE TABLE kurabe_wages (n int)", "INSERT INTO kurabe_wages VALUES (7)"]);
    let place = Place::new();
    let run = || place.run(&[&["run", "session", server.url()][..], &SESSION].concat());
    let check = |own: &mut Db, low: &mut Db, trap: &str| {
        assert_marker_refused(&run(), trap);
        assert_eq!(sprung(low), "0", "{trap}");
        assert_eq!(own.value("SELECT sum(n) FROM kurabe_wages"), "7", "{trap}");
    };
    let entry = "INSERT INTO kurabe_marker VALUES ('kurabe_wages', 'kurabe 1', 5)";
    for (trap, statements) in MARKERS {
        low.run(MARKER);
        low.run(entry);
        low.all(statements);
        check(&mut own, &mut low, trap);
        // The same of a table of our own role, which the low role was allowed to change.
        own.run("GRANT low TO CURRENT_USER");
        own.run("ALTER TABLE kurabe_marker OWNER TO CURRENT_USER");
        if !statements.is_empty() {
            check(&mut own, &mut low, &format!("{trap}, of our role"));
        }
        own.all(&["DROP TABLE kurabe_marker CASCADE", "DROP DOMAIN IF EXISTS spring"]);
    }
    for view in [
        "CREATE VIEW kurabe_marker AS SELECT 'kurabe_wages'::varchar(60) AS name, ''::varchar(60) AS made_by, \
         sprung('view')::int::bigint AS made_at",
        "CREATE MATERIALIZED VIEW kurabe_marker AS SELECT ''::varchar(60) AS name, ''::varchar(60) AS made_by, 1::bigint AS made_at",
        "CREATE TABLE kurabe_marker (name varchar(60), made_by varchar(60), made_at bigint) PARTITION BY LIST (name)",
        "CREATE SEQUENCE kurabe_marker",
    ] {
        low.run(view);
        check(&mut own, &mut low, view);
        let kind = view.split(" kurabe_marker").next().unwrap().trim_start_matches("CREATE ");
        low.run(&format!("DROP {kind} kurabe_marker"));
    }
}

#[test]
fn entry_of_a_table_of_another_role_removes_nothing() {
    let Some(server) = testing::server("postgres") else { return };
    let (mut own, mut low) = with_traps(&server);
    low.all(&["CREATE TABLE kurabe_wages (n int)", "INSERT INTO kurabe_wages VALUES (7)"]);
    // An ownership table of our role, with an entry that somebody wrote.
    own.all(&[MARKER, "INSERT INTO kurabe_marker VALUES ('kurabe_wages', 'kurabe 1', 5)"]);
    let place = Place::new();
    let answer = place.run(&[&["run", "session", server.url()][..], &SESSION].concat());
    assert_eq!(answer.code, Some(3), "{answer:?}");
    for part in ["table kurabe_wages", "belongs to role low", "left alone"] {
        assert!(answer.err.contains(part), "{part}: {answer:?}");
    }
    assert_eq!(low.value("SELECT sum(n) FROM kurabe_wages"), "7");
    own.run("DELETE FROM kurabe_marker");
    let answer = place.run(&[&["run", "session", server.url()][..], &SESSION].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(sprung(&mut low), "0");
}

#[test]
fn privileges_that_others_get_by_default_are_taken_from_the_ownership_table() {
    let Some(server) = testing::server("postgres") else { return };
    let (mut own, mut low) = with_traps(&server);
    own.run("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON TABLES TO low");
    let place = Place::new();
    let args = [&["run", "session", server.url()][..], &SESSION].concat();
    let (child, _) = place.spawn_to_trial(&args, 1);
    let may = "SELECT has_table_privilege('low', 'public.kurabe_marker', 'INSERT,TRIGGER')::int";
    assert_eq!(own.value(may), "0");
    place.go_on(1);
    Answer::at_end_of(child).success();
    assert_eq!(sprung(&mut low), "0");
}

#[test]
fn search_path_with_another_schema_before_the_catalogue_is_refused() {
    let Some(server) = testing::server("postgres") else { return };
    let (_own, mut low) = with_traps(&server);
    let place = Place::new();
    let url = crate::support::with(server.url(), "search_path=public,pg_catalog");
    let answer = place.run(&[&["run", "session", &url][..], &SESSION].concat()).exit_code(3);
    assert!(answer.err.contains("has schema public before pg_catalog"), "{answer:?}");
    assert_eq!(sprung(&mut low), "0");
}
