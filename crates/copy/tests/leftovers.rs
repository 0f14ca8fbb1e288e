//! The file of what is not made: each statement in it runs on the target, and nothing else does. It is executed by the
//! engines' own programs.

use crate::choices::places;
use crate::common::{Place, begun, copy_all};
use crate::random::draw::Draw;
use kurabe_copy::issue::IssueKind;
use kurabe_copy::wanted::{Parts, Wanted};
use kurabe_core::Error;

const ENGINES: [&str; 4] = ["sqlite", "postgres", "mysql", "mariadb"];

/// Copies everything, executes the file, and returns the target and the file. What came from data would have removed `bait`.
fn applied(from: &Place, to: &str, before: &str) -> Option<(Place, String)> {
    let to = Place::new(to)?;
    to.ask(&format!("CREATE TABLE bait (id int); INSERT INTO bait VALUES (7); {before}"));
    let (plan, _) = copy_all(from, &to).unwrap();
    let text = plan.left_text(to.engine());
    let (ran, _, error) = to.feed(&text);
    assert!(ran, "{error}\n{text}");
    assert_eq!(to.ask("SELECT id FROM bait"), "7", "{text}");
    Some((to, text))
}

/// A text that ends what it stands in, by the rules of some engine.
fn nasty(draw: &mut Draw, is_name: bool) -> String {
    let ends =
        ["'", "\"", "`", "\\'", "\\", "''", "*/", "$$", "]", "\n", "\r", "\r\n", "--", "/*", ";", "E'", "#"];
    let begin: String = (0..=draw.below(3)).map(|_| draw.of(&ends)).collect();
    let rest = draw.of(&[
        "; DROP TABLE bait; --", "\nDROP TABLE bait;\n--", ";DROP TABLE bait;/*", " -- x", "\n.quit\n",
        "\n\\q\n",
    ]);
    let text = format!("n{}{begin}{rest}", draw.below(100));
    // The longest of a name.
    if is_name { text.chars().take(30).collect::<String>().trim_end().to_owned() + "z" } else { text }
}

/// A database of an engine in which all names and texts are such.
fn database(engine: &str, draw: &mut Draw) -> String {
    let (quote, escape) = match engine {
        "mysql" | "mariadb" => ('`', true),
        _ => ('"', false),
    };
    let mut known = std::collections::HashSet::new();
    let mut name = |draw: &mut Draw| {
        let text = loop {
            let text = nasty(draw, true);
            if known.insert(text.to_lowercase()) {
                break text;
            }
        };
        format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
    };
    let literal = |draw: &mut Draw| {
        let text = nasty(draw, false).replace('\'', "''");
        format!("'{}'", if escape { text.replace('\\', "\\\\") } else { text })
    };
    let [table, id, col, ix, view, base] = [(); 6].map(|()| name(draw));
    let [tr, chk] = [(); 2].map(|()| name(draw));
    let [one, two, three] = [(); 3].map(|()| literal(draw));
    let columns = format!(
        "{id} int PRIMARY KEY, {col} varchar(200) DEFAULT {one}, CONSTRAINT {chk} CHECK ({col} <> {two})"
    );
    let views = format!(
        "CREATE VIEW {base} AS SELECT {id}, {three} AS {col} FROM {table}; CREATE VIEW {view} AS SELECT * FROM {base} WHERE {col} <> {one};"
    );
    match engine {
        "sqlite" => format!(
            "CREATE TABLE {table} ({columns}); CREATE INDEX {ix} ON {table} ({col}) WHERE {col} > {two}; {views} \
             CREATE TRIGGER {tr} AFTER INSERT ON {table} BEGIN UPDATE {table} SET {col} = {three} WHERE {id} = -1; END; \
             CREATE VIEW tail AS SELECT 1 AS a -- it's\n; CREATE VIEW open AS SELECT 2 AS a /* tail"
        ),
        "postgres" => {
            let of = name(draw);
            let within = three.trim_matches('\'').replace("*/", "").replace("/*", "");
            format!(
                "CREATE TABLE {table} ({columns}); CREATE INDEX {ix} ON {table} (lower({col})) WHERE {col} > {two}; {views} \
                 COMMENT ON TABLE {table} IS {one}; COMMENT ON COLUMN {table}.{col} IS {two}; COMMENT ON VIEW {view} IS {three}; \
                 COMMENT ON INDEX {ix} IS {one}; CREATE FUNCTION {of}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN /* {within} */ RETURN new; END'; \
                 CREATE TRIGGER {tr} BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION {of}(); \
                 CREATE POLICY {ix} ON {table} USING ({col} <> {three}); CREATE RULE {ix} AS ON DELETE TO {table} WHERE old.{col} = {one} DO INSTEAD NOTHING; \
                 CREATE TYPE {of} AS ENUM ({two}); CREATE TABLE ex (id int, CONSTRAINT {chk} EXCLUDE USING gist (int4range(id, id + 1) WITH &&)); \
                 CREATE TABLE part (id int) PARTITION BY RANGE (id); CREATE TABLE {tr} PARTITION OF part FOR VALUES FROM (1) TO (9); \
                 GRANT SELECT ({col}) ON {table} TO PUBLIC"
            )
        }
        _ => {
            // A zero character, which other engines cannot have.
            let zero = format!("'a\\0{}", &three[1..]);
            format!(
                "CREATE TABLE {table} ({id} int PRIMARY KEY, {col} varchar(200) DEFAULT {one} COMMENT {two}, CONSTRAINT {chk} CHECK ({col} <> {two}), \
                   KEY {ix} ({col}(3)) COMMENT {three}) COMMENT {one}; {views} CREATE TABLE zero (id int PRIMARY KEY COMMENT {zero}); \
                 \nDELIMITER //\nCREATE TRIGGER {tr} BEFORE INSERT ON {table} FOR EACH ROW BEGIN SET @a = {three}; SET @b = 1; END //\n\
                 CREATE PROCEDURE {tr}() BEGIN SELECT {one}; SELECT 2; END //\n\
                 CREATE EVENT {tr} ON SCHEDULE EVERY 1 DAY DISABLE DO SET @a = {two} //\n\
                 SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES' //\n\
                 CREATE FUNCTION {ix}() RETURNS text DETERMINISTIC BEGIN DECLARE \"x\" text DEFAULT '\\'; RETURN \"x\"; END //\n\
                 DELIMITER ;\n"
            )
        }
    }
}

/// How many databases of each pair of engines: more with `KURABE_COPY_SEED` and a loop.
const DRAWS: u64 = 2;

#[test]
fn nothing_of_a_catalogue_ends_what_it_stands_in() {
    let seed = std::env::var("KURABE_COPY_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(11_u64);
    for (from, number) in ENGINES.iter().flat_map(|from| (0..DRAWS).map(move |number| (*from, number))) {
        let mut draw = Draw(seed + number);
        let Some(source) = Place::new(from) else { continue };
        let sql = database(from, &mut draw);
        let (made, _, error) = source.feed(&sql);
        assert!(made, "{from}: {error}\n{sql}");
        for to in ENGINES {
            applied(&source, to, "");
        }
    }
}

/// The clients of MySQL and SQLite take the first of these two characters away.
#[test]
fn names_with_both_characters_of_an_end_of_line_are_in_comments_only() {
    for engine in ["mysql", "mariadb", "sqlite", "postgres"] {
        let Some(from) = Place::new(engine) else { continue };
        let quote = from.engine().quote;
        let name = |name: &str| format!("{quote}{name}\r\nz{quote}");
        let mut side = crate::common::side(&from.url());
        for sql in [
            format!("CREATE TABLE {} (id int PRIMARY KEY)", name("t")),
            format!("CREATE VIEW {} AS SELECT id FROM {}", name("v"), name("t")),
            "CREATE VIEW w AS SELECT 1 AS a".to_owned(),
        ] {
            side.run_text(&sql).unwrap();
        }
        if engine.starts_with('m') {
            side.run_text("CREATE TABLE u (id int PRIMARY KEY) COMMENT 'a\r\nb'").unwrap();
        }
        let mut wanted = crate::choices::all();
        let kind = if engine == "postgres" { "integer" } else { "int" };
        wanted.casts.add(&format!("{kind}=bigint")).unwrap();
        let Some(to) = Place::new(engine) else { continue };
        let text = crate::common::copy_as(&from, &to, &wanted).unwrap().0.left_text(to.engine());
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{engine}: {error}\n{text}");
        let is_made = |line: &str| line.starts_with("CREATE") && line.replace('`', "").contains("VIEW w AS");
        assert!(text.lines().any(is_made), "{engine}: {text}");
        if engine.starts_with('m') {
            let comment = "SELECT HEX(table_comment) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'u'";
            assert_eq!(to.ask(comment), "610D0A62", "{engine}: {text}");
        }
    }
}

/// One engine's clients execute commands in what is a comment for the other's server: they would run on the computer of who executes
/// the file.
#[test]
fn client_of_the_file_executes_no_command_of_a_text() {
    let folder = tempfile::tempdir().unwrap();
    let bait = folder.path().join("bait");
    let shell = format!("\\! touch {}", bait.display());
    for engine in ["mysql", "mariadb"] {
        let Some(from) = Place::new(engine) else { continue };
        let mut side = crate::common::side(&from.url());
        side.run_text("CREATE TABLE t (id int PRIMARY KEY)").unwrap();
        for (name, body) in [
            ("a", format!("SELECT 1 /*M!999999 {shell}\n */, 2")),
            ("b", format!("SELECT /*+ {shell}\n */ 1")),
            ("c", format!("BEGIN SELECT 1 /*M!999999 ' */; SELECT '{shell}\n'; END")),
            ("d", "BEGIN SELECT 1; SELECT 2 AS\ndelimiter ;\nDROP TABLE bait; END".to_owned()),
        ] {
            side.run_text(&format!("CREATE PROCEDURE {name}() {body}")).unwrap();
        }
        // For the server, one quote more or less begins than for its client.
        for (mode, body) in [
            ("", format!("SELECT 1; --\u{1}'\nSELECT '{shell}\n'")),
            ("ANSI_QUOTES", format!("SELECT 1 AS \"a\\\"; SELECT 2 AS \"x{shell}\nz\"")),
            ("MSSQL", format!("SELECT 1 AS [a'z]; SELECT '{shell}\n'")),
        ] {
            if mode != "MSSQL" || engine == "mariadb" {
                side.run_text(&format!("SET SESSION sql_mode = '{mode}'")).unwrap();
                side.run_text(&format!("CREATE PROCEDURE b_{mode}() BEGIN {body}; END")).unwrap();
            }
        }
        let Some((to, text)) = applied(&from, engine, "") else { continue };
        assert!(!bait.exists(), "{engine}: {text}");
        let made =
            to.ask("SELECT routine_name FROM information_schema.routines WHERE routine_schema = 'kurabe'");
        assert!(made.ends_with('d') && !made.contains('b'), "{engine}: {made}\n{text}");
    }
}

/// In these encodings, a backslash or a backquote may be the second byte of a character.
#[test]
fn client_of_another_encoding_finds_the_quotes_of_the_file_where_its_server_does() {
    for (engine, encodings) in [
        ("mysql", &["gbk", "big5", "sjis", "cp932"][..]),
        ("mariadb", &["gbk", "big5", "sjis", "cp932"]),
        ("postgres", &["GBK", "BIG5", "SJIS", "GB18030", "UHC", "JOHAB", "SHIFT_JIS_2004"]),
    ] {
        let Some(from) = Place::new(engine) else { continue };
        // What a client takes for statements and commands if the quote before it does not end where it does.
        let data = "; DROP TABLE bait; --";
        from.ask(&if engine == "postgres" {
            format!("CREATE TABLE t (id int PRIMARY KEY); CREATE VIEW \"中\" AS SELECT id, '中\\' AS a, '{data}' AS b FROM t; COMMENT ON VIEW \"中\" IS '中\\''{data}'")
        } else {
            format!("CREATE TABLE t (id int PRIMARY KEY); CREATE VIEW `中` AS SELECT id AS `中`, '中\\\\' AS a, '{data}' AS b FROM t")
        });
        let Some((_, text)) = applied(&from, engine, "") else { continue };
        for encoding in encodings {
            let to = Place::new(engine).unwrap();
            to.ask("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE bait (id int)");
            let (ran, _, error) = to.feed_in(encoding, &text);
            assert!(ran, "{engine} {encoding}: {error}\n{text}");
            let quote = to.engine().quote;
            let asked = format!("SELECT count(*) FROM bait UNION ALL SELECT count(b) FROM {quote}中{quote}");
            assert_eq!(to.ask(&asked), "0\n0", "{engine} {encoding}");
        }
    }
}

/// Its variables, those of the user too, and the words by which it finds the end of a function.
#[test]
fn psql_makes_what_has_the_names_of_its_variables_and_words() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, a int[], \"DBNAME\" int, low int, begin int); \
         CREATE POLICY p ON t USING (a[1:\"DBNAME\"] <> a[low:low] OR a[:2] = '{7}' OR ':low' = '7'); \
         CREATE FUNCTION begin() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'; \
         CREATE FUNCTION f(b int[], low int) RETURNS int[] LANGUAGE sql BEGIN ATOMIC SELECT CASE WHEN begin.begin > 0 THEN 1 END \
           FROM t begin; SELECT b[1:low]; END; CREATE VIEW v AS SELECT begin FROM t",
    );
    let (plan, _) = copy_all(&from, &to).unwrap();
    let text = plan.left_text(to.engine());
    let (ran, _, error) = to.feed(&format!("\\set low 7\n\\set 2 7\n{text}"));
    assert!(ran, "{error}\n{text}");
    let made = "SELECT pg_get_expr(polqual, polrelid) FROM pg_policy; SELECT pg_get_functiondef(oid) FROM pg_proc \
                WHERE pronamespace = 'public'::regnamespace ORDER BY proname; SELECT pg_get_viewdef('v'::regclass)";
    let there = from.ask(made);
    for slice in ["a[1:\"DBNAME\"]", "a[low:low]", "a[:2]", "(b)[1:low]"] {
        assert!(there.contains(slice), "{slice}: {there}");
    }
    assert_eq!(to.ask(made), there, "{text}");
}

#[test]
fn file_makes_a_statement_of_a_mode_of_sql_on_its_own_engine_only() {
    let Some((from, to)) = places(["mysql", "mysql"]) else { return };
    let (made, _, error) = from.feed(
        "CREATE TABLE t (id int PRIMARY KEY);\nDELIMITER //\nSET sql_mode = 'NO_BACKSLASH_ESCAPES' //\n\
         CREATE FUNCTION f() RETURNS text DETERMINISTIC BEGIN DECLARE x text DEFAULT '\\'; RETURN x; END //\nDELIMITER ;\n",
    );
    assert!(made, "{error}");
    let (plan, _) = copy_all(&from, &to).unwrap();
    let text = plan.left_text(to.engine());
    let (ran, _, error) = to.feed(&text);
    assert!(ran, "{error}\n{text}");
    assert_eq!(to.ask("SELECT f()"), "\\");
    let other = Place::sqlite();
    let (plan, _) = copy_all(&from, &other).unwrap();
    let text = plan.left_text(other.engine());
    assert!(text.contains("FUNCTION"), "{text}");
    assert!(text.lines().all(|line| line.is_empty() || line.starts_with("--")), "{text}");
}

#[test]
fn comments_of_one_engine_are_those_of_another() {
    let Some((from, _)) = places(["mysql", "sqlite"]) else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY, c int DEFAULT 3 COMMENT 'a \\\\ b') COMMENT 'it''s; DROP TABLE bait; --\\n'");
    for (to, sql) in [
        ("postgres", "SELECT obj_description('t'::regclass), col_description('t'::regclass, 2)"),
        (
            "mariadb",
            "SELECT table_comment, column_comment FROM information_schema.tables t JOIN information_schema.columns c \
                     USING (table_schema, table_name) WHERE table_name = 't' AND column_name = 'c'",
        ),
    ] {
        let Some((to, _)) = applied(&from, to, "") else { continue };
        assert_eq!(to.ask(sql).replace('\t', "|"), "it's; DROP TABLE bait; --\n|a \\ b");
    }
}

#[test]
fn statements_for_a_server_of_the_same_kind_make_what_was_there() {
    let Some((from, _)) = places(["mysql", "sqlite"]) else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY, e varchar(50), CONSTRAINT em CHECK (e REGEXP '^[a-z''\\\\\\\\]+$')); INSERT INTO t VALUES (1, 'abc')");
    let mut wanted = crate::choices::all();
    wanted.casts.add("t.e=varchar(60)").unwrap();
    let Some(to) = Place::new("mysql") else { return };
    let (plan, _) = crate::common::copy_as(&from, &to, &wanted).unwrap();
    let text = plan.left_text(to.engine());
    let (ran, _, error) = to.feed(&text);
    assert!(ran, "{error}\n{text}");
    let check = |place: &Place| {
        let text = place.ask("SHOW CREATE TABLE t");
        text.lines().find(|line| line.contains("CHECK")).unwrap().trim().to_owned()
    };
    assert_eq!(check(&to), check(&from));
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY, n int, CONSTRAINT ex EXCLUDE USING gist (int4range(id, id + 1) WITH &&)); \
         CREATE TABLE p (id int) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (9)",
    );
    let mut wanted = crate::choices::all();
    wanted.casts.add("t.n=bigint").unwrap();
    let (plan, _) = crate::common::copy_as(&from, &to, &wanted).unwrap();
    let text = plan.left_text(to.engine());
    assert!(text.contains("-- CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (9)"), "{text}");
    let (ran, _, error) = to.feed(&text);
    assert!(ran, "{error}\n{text}");
    let sql = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'ex'";
    assert_eq!(to.ask(sql), from.ask(sql));
}

#[test]
fn table_that_is_left_out_is_a_comment_for_another_engine() {
    let Some((from, to)) = places(["sqlite", "postgres"]) else { return };
    from.ask("CREATE TABLE t (id INTEGER PRIMARY KEY); CREATE TABLE u (id INTEGER PRIMARY KEY)");
    let mut wanted = crate::choices::all();
    wanted.leave_out = vec!["u".to_owned()];
    let (plan, _) = crate::common::copy_as(&from, &to, &wanted).unwrap();
    let text = plan.left_text(to.engine());
    assert!(text.contains("\n-- CREATE TABLE u"), "{text}");
}

#[test]
fn sequence_that_is_left_out_gets_no_position() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask("CREATE TABLE t (id int PRIMARY KEY); CREATE SEQUENCE s START 5; CREATE SEQUENCE r START 7");
    let mut wanted = crate::choices::all();
    wanted.leave_out = vec!["s".to_owned()];
    crate::common::copy_as(&from, &to, &wanted).unwrap();
    assert_eq!(to.ask("SELECT sequencename, start_value FROM pg_sequences"), "r|7");
}

/// Between files of SQLite, what is listed, left out or carried depends on what is asked for.
#[test]
fn what_belongs_to_tables_that_are_not_asked_for_is_not_listed() {
    let from = Place::sqlite();
    from.ask(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT); CREATE TABLE u (id INTEGER PRIMARY KEY); CREATE INDEX ix ON t (a); \
         CREATE VIEW v AS SELECT id FROM t; CREATE TRIGGER of_v INSTEAD OF INSERT ON v BEGIN SELECT 1; END; \
         CREATE TRIGGER of_t AFTER INSERT ON t BEGIN SELECT 2; END; CREATE TRIGGER of_u AFTER INSERT ON u BEGIN SELECT 3; END",
    );
    let planned = |change: &dyn Fn(&mut Wanted)| {
        let mut wanted = crate::choices::all();
        change(&mut wanted);
        let to = Place::sqlite();
        let (_, plan) = begun(&from, &to, &wanted)?;
        // A file that was opened for writing is in WAL mode.
        let issues = plan.issues.iter().filter(|issue| issue.kind != IssueKind::Comment);
        let issues = issues.map(|issue| format!("{} {}", issue.kind.name(), issue.object));
        let left = plan.left.iter().map(|left| format!("left {}", left.object));
        let names = issues.chain(left).collect::<Vec<_>>().join(", ");
        Ok::<_, Error>((names, plan.left_text(to.engine())))
    };
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (names, text) = planned(&|_| {}).unwrap();
    // The triggers of tables are carried.
    assert_eq!(names, "trigger v.of_v, view v");
    assert!(text.contains("\nCREATE VIEW v AS SELECT id FROM t;\n"), "{text}");
    assert!(text.contains("\nCREATE TRIGGER of_v INSTEAD OF INSERT ON v BEGIN SELECT 1; END;\n"), "{text}");
    let (names, _) = planned(&|wanted| wanted.tables = words(&["t"])).unwrap();
    assert_eq!(names, "");
    let (names, _) = planned(&|wanted| wanted.exclude = words(&["u"])).unwrap();
    assert_eq!(names, "");
    let (names, text) =
        planned(&|wanted| wanted.rename = vec![("t".to_owned(), "other".to_owned())]).unwrap();
    assert_eq!(names, "trigger v.of_v, trigger t.of_t, view v");
    // The texts have the names of the source.
    assert!(text.contains("-- CREATE VIEW v") && text.contains("-- CREATE TRIGGER of_t"), "{text}");
    for (left_out, expected, sql) in [
        ("v", "trigger v.of_v, left v", "CREATE VIEW v AS SELECT id FROM t;"),
        ("v.of_v", "view v, left v.of_v", "CREATE TRIGGER of_v INSTEAD OF INSERT ON v BEGIN SELECT 1; END;"),
        ("ix", "trigger v.of_v, view v, left t.ix", "CREATE INDEX ix ON t (a);"),
        (
            "t.of_t",
            "trigger v.of_v, view v, left t.of_t",
            "CREATE TRIGGER of_t AFTER INSERT ON t BEGIN SELECT 2; END;",
        ),
        ("u", "trigger v.of_v, view v, left u, left u.of_u", "CREATE TABLE u (id INTEGER PRIMARY KEY);"),
    ] {
        let (names, text) = planned(&|wanted| wanted.leave_out = words(&[left_out])).unwrap();
        assert_eq!(names, expected, "{left_out}");
        assert!(text.contains(&format!("\n{sql}\n")), "{left_out}: {text}");
    }
    let error = planned(&|wanted| wanted.leave_out = words(&["nothing"])).unwrap_err().to_string();
    assert!(error.contains("nothing that would be made is named 'nothing'"), "{error}");
    let (names, _) = planned(&|wanted| wanted.parts = Parts::Schema).unwrap();
    assert_eq!(names, "trigger v.of_v, view v");
}

/// A partition is not made, nor is a foreign table.
#[test]
fn what_belongs_to_a_table_that_is_not_made_is_no_statement() {
    let Some((from, to)) = places(["postgres", "postgres"]) else { return };
    from.ask(
        "CREATE TABLE pay (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day); \
         CREATE TABLE pay_1 PARTITION OF pay FOR VALUES FROM ('2024-01-01') TO ('2024-07-01'); \
         CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'; \
         CREATE TRIGGER of_part BEFORE INSERT ON pay_1 FOR EACH ROW EXECUTE FUNCTION f(); \
         CREATE TRIGGER of_all BEFORE UPDATE ON pay FOR EACH ROW EXECUTE FUNCTION f(); ALTER TABLE pay_1 DISABLE TRIGGER of_part; \
         ALTER TABLE pay_1 ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON pay_1 USING (true); \
         CREATE RULE quiet AS ON DELETE TO pay_1 DO INSTEAD NOTHING; INSERT INTO pay VALUES (1, '2024-02-01')",
    );
    let (plan, _) = crate::common::copy_all(&from, &to).unwrap();
    let text = plan.left_text(to.engine());
    for line in [
        "\n-- CREATE TRIGGER of_part", "\n-- CREATE POLICY own", "\n-- CREATE RULE quiet",
        "\nCREATE TRIGGER of_all",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let (done, _, error) = to.feed(&text);
    assert!(done, "{error}");
}

/// Also whether they may be given on, and who owns what.
#[test]
fn privileges_are_statements_that_give_what_was_given() {
    for (engine, roles, given, shown) in [
        (
            "postgres",
            "CREATE ROLE a; CREATE ROLE b",
            "GRANT SELECT ON t TO a WITH GRANT OPTION; GRANT UPDATE, DELETE ON t TO a; GRANT INSERT (n) ON t TO b WITH GRANT OPTION; \
             GRANT EXECUTE ON FUNCTION f() TO b WITH GRANT OPTION; GRANT CREATE ON SCHEMA public TO b; \
             REVOKE USAGE ON SCHEMA public FROM PUBLIC; ALTER TABLE u OWNER TO b; ALTER FUNCTION g() OWNER TO a",
            "SELECT relname, relowner::regrole, relacl, (SELECT attacl FROM pg_attribute WHERE attrelid = c.oid AND attname = 'n') \
             FROM pg_class c WHERE relname IN ('t', 'u') ORDER BY 1; SELECT proname, proowner::regrole, proacl FROM pg_proc \
             WHERE pronamespace = 'public'::regnamespace ORDER BY 1; SELECT nspacl FROM pg_namespace WHERE nspname = 'public'",
        ),
        (
            "mysql mariadb",
            "CREATE USER a@localhost; CREATE USER b@localhost; CREATE USER 'é'@localhost",
            "GRANT SELECT, INSERT (n) ON t TO a@localhost WITH GRANT OPTION; GRANT UPDATE ON t TO b@localhost; \
             GRANT EXECUTE ON FUNCTION f TO a@localhost WITH GRANT OPTION; GRANT EXECUTE ON FUNCTION f TO 'é'@localhost; GRANT ALTER ROUTINE ON FUNCTION f TO b@localhost; \
             GRANT USAGE ON FUNCTION g TO b@localhost WITH GRANT OPTION; GRANT EVENT ON kurabe.* TO b@localhost WITH GRANT OPTION",
            "SHOW GRANTS FOR a@localhost; SHOW GRANTS FOR b@localhost; SHOW GRANTS FOR 'é'@localhost",
        ),
    ] {
        for engine in engine.split(' ') {
            let Some((from, to)) = places([engine, engine]) else { continue };
            let routine =
                if engine == "postgres" { "LANGUAGE sql AS 'SELECT 1'" } else { "DETERMINISTIC RETURN 1" };
            from.ask(&format!(
                "{roles}; CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE u (id int PRIMARY KEY); \
                 CREATE FUNCTION f() RETURNS int {routine}; CREATE FUNCTION g() RETURNS int {routine}; {given}"
            ));
            to.ask(roles);
            let (plan, _) = copy_all(&from, &to).unwrap();
            let text = plan.left_text(to.engine());
            let (ran, _, error) = to.feed(&text);
            assert!(ran, "{error}\n{text}");
            assert_eq!(to.ask(shown), from.ask(shown), "{text}");
        }
    }
}

#[test]
fn privileges_on_what_is_gone_are_comments() {
    for engine in ["mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask(
            "CREATE USER a@localhost; CREATE TABLE gone (id int); CREATE PROCEDURE p() SELECT 1; GRANT EXECUTE ON PROCEDURE p TO a@localhost; \
             GRANT SELECT ON gone TO a@localhost; DROP DATABASE kurabe; CREATE DATABASE kurabe; USE kurabe; CREATE TABLE t (id int)",
        );
        to.ask("CREATE USER a@localhost");
        let (plan, _) = copy_all(&from, &to).unwrap();
        let text = plan.left_text(to.engine());
        for line in ["-- GRANT Execute ON PROCEDURE `p`", "-- GRANT SELECT ON `gone`"] {
            assert!(text.contains(line), "{engine}: {text}");
        }
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{error}\n{text}");
    }
}

/// Names of roles that the target lacks. The first ends what it stands in, by the rules of some engine.
const LACKED: [&str; 2] = ["no'\"`\\\nDROP TABLE bait; --", "nobody"];

/// A role or account in an engine's quotes.
fn quoted_role(engine: &str, name: &str) -> String {
    match engine {
        "postgres" => format!("\"{}\"", name.replace('"', "\"\"")),
        _ => format!("`{}`@`localhost`", name.replace('`', "``")),
    }
}

/// The statements that name others run, and give what they gave on the source.
#[test]
fn statements_that_name_a_role_which_the_target_lacks_are_comments() {
    let postgres = "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE TABLE u (id int PRIMARY KEY); CREATE TABLE w (id int PRIMARY KEY); \
        CREATE VIEW v AS SELECT id FROM t; CREATE SEQUENCE s; CREATE TYPE mood AS ENUM ('a'); CREATE ROLE \"PUBLIC\"; \
        CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION g() RETURNS int LANGUAGE sql SET role = «0» AS 'SELECT 1'; \
        CREATE FUNCTION h() RETURNS int LANGUAGE sql SET role = here SET work_mem = '1MB' AS 'SELECT 1'; \
        GRANT SELECT ON t TO here, PUBLIC, «0», «1», \"PUBLIC\"; GRANT UPDATE (n) ON t TO «0», here WITH GRANT OPTION; \
        GRANT SELECT ON v TO here, «1»; GRANT USAGE ON SEQUENCE s TO «1», here; GRANT USAGE ON TYPE mood TO «0»; \
        GRANT EXECUTE ON FUNCTION f() TO «0», here; GRANT CREATE ON SCHEMA public TO «1»; REVOKE USAGE ON SCHEMA public FROM PUBLIC; \
        ALTER TABLE u OWNER TO «0»; ALTER TABLE w OWNER TO here; CREATE POLICY mixed ON t TO here, «1»; CREATE POLICY own ON t TO here; \
        CREATE POLICY free ON t USING (n > 0); CREATE FUNCTION rich() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; \
        CREATE FUNCTION poor() RETURNS int LANGUAGE sql AS 'SELECT 1'; ALTER FUNCTION rich() OWNER TO «1»; ALTER FUNCTION poor() OWNER TO «1»; \
        CREATE VIEW bare AS SELECT id FROM t; CREATE VIEW kept AS SELECT id FROM t; CREATE VIEW upon AS SELECT * FROM bare; \
        CREATE VIEW calls AS SELECT rich() AS a; ALTER VIEW bare OWNER TO «1»; GRANT SELECT ON upon TO here; COMMENT ON VIEW bare IS 'x'";
    let mysql = "CREATE TABLE t (id int PRIMARY KEY, n int); CREATE FUNCTION f() RETURNS int DETERMINISTIC RETURN 1; CREATE ROLE lost; \
        GRANT SELECT, INSERT (n) ON t TO «0», here@localhost WITH GRANT OPTION; GRANT UPDATE ON t TO «1»; GRANT UPDATE ON t TO here@localhost; \
        GRANT EXECUTE ON FUNCTION f TO «0»; GRANT EXECUTE ON FUNCTION f TO here@localhost; GRANT EVENT ON kurabe.* TO «1»; \
        GRANT EVENT ON kurabe.* TO here@localhost; GRANT DELETE ON t TO hat; GRANT DELETE ON t TO lost; \
        CREATE DEFINER = «0» TRIGGER theirs BEFORE INSERT ON t FOR EACH ROW SET @a = 1; CREATE DEFINER = here@localhost TRIGGER mine \
        BEFORE UPDATE ON t FOR EACH ROW SET @a = 2; CREATE DEFINER = «1» EVENT soon ON SCHEDULE EVERY 1 DAY DISABLE DO SET @a = 3; \
        CREATE DEFINER = «0» FUNCTION rich() RETURNS int DETERMINISTIC RETURN 1; CREATE FUNCTION poor() RETURNS int DETERMINISTIC RETURN 1; \
        GRANT SELECT ON t TO «1»; CREATE DEFINER = «1» VIEW bare AS SELECT id FROM t; CREATE VIEW kept AS SELECT id FROM t; CREATE VIEW upon AS SELECT * FROM bare; \
        GRANT EXECUTE ON FUNCTION rich TO «0»; CREATE VIEW calls AS SELECT rich() AS a; GRANT SELECT ON upon TO here@localhost; GRANT EXECUTE ON FUNCTION rich TO here@localhost";
    for (engine, objects, roles, comments, shown) in [
        // Four of t, one each of v, s, f, the type and the schema, two owners, a policy, a view and a function.
        (
            "postgres",
            postgres,
            "CREATE ROLE here",
            14,
            "SELECT (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(relacl) a WHERE a::text LIKE 'here=%' OR a::text LIKE '=%'), \
             relname FROM pg_class WHERE relname IN ('t', 'v', 's') ORDER BY 2; SELECT a FROM pg_attribute, unnest(attacl) a \
             WHERE attrelid = 't'::regclass AND a::text LIKE 'here=%'; SELECT a FROM pg_proc, unnest(proacl) a WHERE proname = 'f' AND a::text LIKE 'here=%'; \
             SELECT proconfig FROM pg_proc WHERE proname IN ('g', 'h') ORDER BY proname; SELECT relowner::regrole FROM pg_class WHERE relname = 'w'; \
             SELECT polname, polroles::regrole[] FROM pg_policy WHERE polname <> 'mixed' ORDER BY 1",
        ),
        (
            "mysql mariadb",
            mysql,
            "CREATE USER here@localhost; CREATE ROLE hat",
            10,
            "SHOW GRANTS FOR here@localhost; SHOW GRANTS FOR hat; SELECT grantee, privilege_type FROM information_schema.table_privileges \
             WHERE grantee LIKE '%PUBLIC%'",
        ),
    ] {
        for engine in engine.split(' ') {
            let Some(from) = Place::new(engine) else { continue };
            let [first, second] = LACKED.map(|name| quoted_role(engine, name));
            let kind = if engine == "postgres" { "ROLE" } else { "USER" };
            let objects = objects.replace("«0»", &first).replace("«1»", &second);
            let everyone = if engine == "mariadb" { "; GRANT REFERENCES ON t TO PUBLIC" } else { "" };
            let (made, _, error) = from.feed(&format!(
                "CREATE {kind} {first}; CREATE {kind} {second}; {roles}; {objects}{everyone};"
            ));
            assert!(made, "{engine}: {error}");
            let Some((to, text)) = applied(&from, engine, roles) else { continue };
            assert_eq!(text.matches("-- the target has no ").count(), comments, "{engine}: {text}");
            assert!(!text.contains("has no \"here"), "{text}");
            // Without what names an object that is not made.
            let given = from.ask(shown);
            let given: Vec<&str> =
                given.lines().filter(|line| !line.contains("`upon`") && !line.contains("`rich`")).collect();
            assert_eq!(to.ask(shown), given.join("\n"), "{engine}: {text}");
            // What would do as the user of the file what another may do, and what reads it.
            let [name, owner, views, schema] = if engine == "postgres" {
                ["viewname", "viewowner", "pg_views", "schemaname = 'public'"]
            } else {
                ["table_name", "definer", "information_schema.views", "table_schema = DATABASE()"]
            };
            let of_owners = format!(
                "SELECT {name}, {owner} FROM {views} WHERE {schema} AND {name} <> 'v' ORDER BY 1; SELECT routine_name \
                 FROM information_schema.routines WHERE routine_name IN ('rich', 'poor') ORDER BY 1"
            );
            let is_kept = |line: &&str| line.starts_with("kept") || line.starts_with("poor");
            let kept = from.ask(&of_owners);
            let kept: Vec<&str> = kept.lines().filter(is_kept).collect();
            assert_eq!(to.ask(&of_owners), kept.join("\n"), "{engine}: {text}");
            let whys = match engine {
                "postgres" => {
                    ["relation \"upon\" does not", "function rich() does not", "relation \"bare\" does not"]
                }
                _ => ["upon is not made", "rich", "bare is not made"],
            };
            let is_said = |why: &&str| text.lines().any(|line| line.starts_with("--") && line.contains(why));
            assert!(whys.iter().all(is_said), "{engine}: {text}");
            if engine != "postgres" {
                // MariaDB would have made them, without a password.
                let made = "SELECT COUNT(*) FROM mysql.user WHERE user LIKE 'no%' OR user = 'lost'";
                assert_eq!(to.ask(made), "0", "{engine}: {text}");
                // A trigger without its definer would keep rows out.
                assert_eq!(to.ask("INSERT INTO t VALUES (1, 1); SELECT n FROM t"), "1", "{engine}: {text}");
                let triggers =
                    "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()";
                assert_eq!(to.ask(triggers), "mine", "{engine}: {text}");
            }
            // With all roles, all of it runs.
            let more = if engine == "postgres" { "CREATE ROLE \"PUBLIC\"" } else { "CREATE ROLE lost" };
            let all = format!("{roles}; CREATE {kind} {first}; CREATE {kind} {second}; {more}");
            let Some(to) = Place::new(engine) else { continue };
            let (made, _, error) = to.feed(&format!("{all};"));
            assert!(made, "{engine}: {error}");
            let text = copy_all(&from, &to).unwrap().0.left_text(to.engine());
            assert!(!text.contains("the target has no "), "{engine}: {text}");
            let (ran, _, error) = to.feed(&text);
            assert!(ran, "{engine}: {error}\n{text}");
            assert_eq!(to.ask(&of_owners), from.ask(&of_owners), "{engine}: {text}");
        }
    }
}

/// The user of the copy sees only itself.
#[test]
fn roles_that_the_target_does_not_show_are_not_told_as_missing() {
    for engine in ["postgres", "mysql", "mariadb"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask("CREATE TABLE t (id int PRIMARY KEY)");
        let (roles, low) = if engine == "postgres" {
            let roles = "CREATE ROLE here; CREATE ROLE low LOGIN PASSWORD 'low'";
            to.ask(&format!(
                "{roles}; GRANT ALL ON SCHEMA public TO low; REVOKE SELECT ON pg_catalog.pg_roles FROM PUBLIC"
            ));
            (roles, "low")
        } else {
            let roles = "CREATE USER here@'%'; CREATE USER low@'%' IDENTIFIED BY 'low'";
            to.ask(&format!("{roles}; GRANT ALL ON kurabe.* TO low@'%'"));
            (roles, "low@'%'")
        };
        let here = low.replace("low", "here");
        from.ask(&format!("{roles}; GRANT SELECT ON t TO {low}; GRANT SELECT ON t TO {here}"));
        let copied = crate::common::copied(
            &from.url(),
            &to.url_of("low:low"),
            &crate::choices::all(),
            &crate::common::NEVER,
            &mut |_| {},
        );
        let text = copied.unwrap().0.left_text(to.engine());
        let [here, low] =
            if engine == "postgres" { ["\"here\"", "low"] } else { ["`here`@`%`", "`low`@`%`"] };
        let why = text.lines().find(|line| line.contains(&format!("create {here} first, unless")));
        assert!(why.is_some_and(|line| line.contains("denied")), "{engine}: {text}");
        assert!(!text.contains("low:low"), "{engine}: {text}");
        let own = text.lines().find(|line| line.contains("SELECT") && line.ends_with(&format!("TO {low};")));
        assert!(own.is_some_and(|line| line.starts_with("GRANT")), "{engine}: {text}");
        let (ran, _, error) = to.feed(&text);
        assert!(ran, "{engine}: {error}\n{text}");
        from.try_ask("DROP USER low@'%'; DROP USER here@'%'");
        to.try_ask("DROP USER low@'%'; DROP USER here@'%'");
    }
}

/// Passwords may be in options of any name, and of any object.
#[test]
fn options_of_foreign_data_are_listed_without_secrets() {
    let Some(from) = Place::new("postgres") else { return };
    from.ask(
        "CREATE TABLE t (id int PRIMARY KEY); CREATE FOREIGN DATA WRAPPER w OPTIONS (debug 'hidden', format 'x'); \
         CREATE SERVER \"s\n1\" TYPE 'ty' VERSION '9' FOREIGN DATA WRAPPER w OPTIONS (host 'db.example', port '5433', sslpassword 'hidden', \
           connection 'hidden', dbname 'password=hidden'); \
         CREATE USER MAPPING FOR PUBLIC SERVER \"s\n1\" OPTIONS (\"user\" 'app', password 'hidden', \"odd\"\" \nname\" 'hidden', host 'u:hidden@h'); \
         CREATE FOREIGN TABLE ft (id int OPTIONS (column_name 'ID'), n text OPTIONS (token 'hidden')) SERVER \"s\n1\" \
           OPTIONS (table_name E'it''s\nDROP TABLE bait; --', program 'hidden'); CREATE FOREIGN TABLE bare () SERVER \"s\n1\"",
    );
    for engine in ["postgres", "sqlite"] {
        let Some((to, text)) = applied(&from, engine, "") else { continue };
        let (_, plan) = begun(&from, &to, &crate::choices::all()).unwrap();
        let shown = format!("{text}{:?}", plan.issues);
        assert!(!shown.contains("hidden"), "{engine}: {shown}");
        for line in [
            "-- foreign-data wrapper w OPTIONS (debug (its value is not written), format 'x')",
            "-- 1 TYPE 'ty' VERSION '9' FOREIGN DATA WRAPPER w OPTIONS (host 'db.example', port '5433', sslpassword (its value is not written), \
             connection (its value is not written), dbname (its value is not written))",
            "-- 1 OPTIONS (\"user\" 'app', password (its value is not written), \"odd\"\" ",
            "-- name\" (its value is not written), host (its value is not written))",
            "-- foreign table ft (id integer, n text) SERVER \"s",
            "-- 1\" OPTIONS (table_name 'it''s",
            "-- DROP TABLE bait; --', program (its value is not written), id.column_name 'ID', n.token (its value is not written))",
            "-- foreign table bare SERVER \"s",
        ] {
            assert!(text.contains(&format!("\n{line}\n")), "{engine}: {line}\n{text}");
        }
    }
    // Another user may not read the options of a mapping.
    from.ask("CREATE ROLE low LOGIN PASSWORD 'low'; GRANT SELECT ON t TO low");
    let Some(to) = Place::new("postgres") else { return };
    let mut copy = kurabe_copy::run::Copy::new(
        crate::common::side(&from.url_of("low:low")),
        crate::common::side(&to.url()),
        &crate::common::NEVER,
    );
    let text = copy.plan(&crate::choices::all(), &mut []).unwrap().left_text(to.engine());
    assert!(text.contains("\n-- 1: only its user may read its options\n"), "{text}");
}

/// A view may have the name of a column of the view that it reads.
#[test]
fn view_with_the_name_of_a_column_stands_after_the_view_that_it_reads() {
    for engine in ["mysql", "mariadb", "postgres", "sqlite"] {
        let Some((from, to)) = places([engine, engine]) else { continue };
        from.ask(
            "CREATE TABLE t (id int PRIMARY KEY, a int, d date, d_v int); CREATE VIEW z AS SELECT a FROM t",
        );
        from.ask("CREATE VIEW a AS SELECT z.a FROM z JOIN t ON t.id = z.a; CREATE VIEW b AS SELECT * FROM a");
        let more = match engine {
            "postgres" => {
                "CREATE VIEW e_v AS SELECT EXTRACT(year FROM d) AS d_v FROM t WHERE id IS DISTINCT FROM d_v; \
                           CREATE VIEW d_v AS SELECT e_v.d_v FROM ONLY t, e_v"
            }
            "sqlite" => {
                "CREATE VIEW e_v AS SELECT a AS d_v FROM t; CREATE VIEW d_v AS SELECT e_v.d_v FROM t, e_v"
            }
            _ => {
                "CREATE VIEW e_v AS SELECT a AS d_v FROM t; CREATE VIEW d_v AS SELECT e_v.d_v FROM t STRAIGHT_JOIN e_v"
            }
        };
        from.ask(more);
        if engine == "postgres" {
            from.ask("CREATE FUNCTION z() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION m() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT z() + count(*)::int FROM b; END");
            from.ask("CREATE FUNCTION f(x int DEFAULT z()) RETURNS SETOF a LANGUAGE sql AS 'SELECT * FROM a'; CREATE VIEW c AS SELECT f.a + m() AS a FROM f()");
        }
        let (plan, _) = copy_all(&from, &to).unwrap();
        let (done, _, error) = to.feed(&plan.left_text(to.engine()));
        assert!(done, "{engine}: {error}\n{}", plan.left_text(to.engine()));
        assert_eq!(to.ask("SELECT COUNT(*) FROM b"), "0", "{engine}");
    }
}
