//! [`kurabe_copy::script`]: what is written between quotes, after a comment's sign, and as a statement of a file.

use kurabe_copy::engines::{Engine, of_scheme};
use kurabe_copy::script::{
    self, Entry, check, comment, executed, literal, mask, push_bytes, quoted, unquoted, without_bytes,
};

fn engine(scheme: &str) -> &'static Engine {
    of_scheme(scheme).unwrap()
}

/// The text of a statement, which says by its kind whether it is a comment.
fn statement(engine: &Engine, sql: &str) -> String {
    let entry = script::statement(engine, sql);
    assert_eq!(matches!(entry, Entry::Comment(_)), entry.text().starts_with("--"), "{entry:?}");
    entry.text().to_owned()
}

#[test]
fn quotes_of_names_and_texts_are_doubled_by_the_rules_of_their_reader() {
    let [sqlite, postgres, mysql] = ["sqlite", "postgres", "mysql"].map(engine);
    assert_eq!(quoted(sqlite, "a\"b`"), "\"a\"\"b`\"");
    assert_eq!(quoted(mysql, "a\"b`"), "`a\"b```");
    assert_eq!(literal(sqlite, "it's \\").unwrap(), "'it''s \\'");
    assert_eq!(literal(postgres, "it's").unwrap(), "'it''s'");
    assert_eq!(literal(postgres, "it's \\").unwrap(), "E'it''s \\\\'");
    assert_eq!(literal(mysql, "it's \\").unwrap(), "'it''s \\\\'");
    assert_eq!(literal(mysql, "a\0b").unwrap(), "'a\\0b'");
    let other = with_byte("a", "b");
    for (engine, text) in
        [(sqlite, "a\0b"), (postgres, "a\0b"), (sqlite, &other), (postgres, &other), (mysql, &other)]
    {
        let error = literal(engine, text).unwrap_err();
        assert!(error.to_string().contains("'a\u{fffd}b' is not UTF-8, or has a zero character"), "{error}");
    }
    assert!(check("a\u{fffd}\n").is_ok() && check("\0").is_err());
}

#[test]
fn name_in_quotes_of_any_engine_is_read_without_them() {
    for (word, name) in [
        ("\"a\"\"b`\"", "a\"b`"),
        ("`a``b`", "a`b"),
        ("'it''s'", "it's"),
        ("[a]", "a"),
        ("a", "a"),
        ("\"a'", "\"a'"),
        ("[a", "[a"),
        ("", ""),
    ] {
        assert_eq!(unquoted(word), name);
    }
}

/// A text with a byte that is not UTF-8.
fn with_byte(before: &str, after: &str) -> String {
    let mut text = before.to_owned();
    push_bytes(&mut text, &[0xe9]);
    text + after
}

/// The server reads the escapes of the statement, and the statement those of the literal in it.
#[test]
fn bytes_that_are_not_utf8_are_executed_as_escapes_of_a_literal() {
    assert_eq!(executed("SELECT '\\'"), "SELECT '\\'");
    let sql = with_byte("SELECT '\\", "''é'");
    assert_eq!(executed(&sql), "DO E'BEGIN EXECUTE E''SELECT ''''\\\\\\\\\\xe9''''''''é''''''; END'");
    assert_eq!(without_bytes(&sql, "?"), "SELECT '\\?''é'");
    assert_eq!(without_bytes(&with_byte("", ""), ""), "");
}

#[test]
fn each_line_of_a_comment_is_one() {
    assert_eq!(comment("a\nb\rc\r\nd"), "-- a\n-- b\n-- c\n-- d");
    assert_eq!(comment("a\tb\u{b}c\0"), "-- a\tb\u{fffd}c\u{fffd}");
    assert_eq!(comment(&with_byte("a", "b")), "-- a\u{fffd}b");
    assert_eq!(comment(""), "-- ");
}

/// A statement is one of the file if its quotes and comments end, and a comment of the file otherwise.
#[test]
fn statements_that_do_not_end_are_comments() {
    let [sqlite, postgres, mysql] = ["sqlite", "postgres", "mysql"].map(engine);
    for engine in [sqlite, postgres, mysql] {
        assert_eq!(statement(engine, "SELECT 1 ; \n;"), "SELECT 1;");
        assert_eq!(statement(engine, "SELECT 'it''s'"), "SELECT 'it''s';");
        assert_eq!(statement(engine, "SELECT 1 -- tail"), "SELECT 1;");
        assert_eq!(statement(engine, "SELECT 'a"), "-- SELECT 'a");
        let bracket = statement(engine, "SELECT a[1");
        assert_eq!(bracket, if engine == sqlite { "-- SELECT a[1" } else { "SELECT a[1;" });
        assert_eq!(statement(engine, "SELECT \"a"), "-- SELECT \"a");
        assert_eq!(statement(engine, "SELECT 'a\0'"), "-- SELECT 'a\u{fffd}'");
        assert_eq!(statement(engine, " ;"), "-- ");
    }
    // A backslash escapes on MySQL, and where PostgreSQL is told so.
    assert_eq!(statement(mysql, "SELECT '\\'"), "-- SELECT '\\'");
    assert_eq!(statement(mysql, "SELECT '\\'a'"), "SELECT '\\'a';");
    assert_eq!(statement(mysql, "SELECT `\\`"), "SELECT `\\`;");
    assert_eq!(statement(postgres, "SELECT '\\'"), "SELECT '\\';");
    assert_eq!(statement(postgres, "SELECT E'\\'"), "-- SELECT E'\\'");
    assert_eq!(statement(postgres, "SELECT e'\\''"), "SELECT e'\\'';");
    assert_eq!(statement(postgres, "SELECT \"e\\\""), "SELECT \"e\\\";");
    // The bodies of PostgreSQL's functions.
    assert_eq!(statement(postgres, "SELECT $a$ ' $b$ $a$"), "SELECT $a$ ' $b$ $a$;");
    assert_eq!(statement(postgres, "SELECT $$ ' $"), "-- SELECT $$ ' $");
    assert_eq!(statement(postgres, "SELECT $1, a$b$ + '$'"), "SELECT $1, a$b$ + '$';");
    assert_eq!(statement(sqlite, "SELECT $a$ '"), "-- SELECT $a$ '");
    // Names in brackets.
    assert_eq!(statement(sqlite, "SELECT [']"), "SELECT ['];");
    assert_eq!(statement(sqlite, "SELECT [a"), "-- SELECT [a");
    assert_eq!(statement(postgres, "SELECT a[1], '['"), "SELECT a[1], '[';");
    assert_eq!(statement(postgres, "SELECT ['"), "-- SELECT ['");
    // A client's sign for the end of a statement is one that the statement does not have.
    // The client of MariaDB takes the rest for a comment, until a sign in quotes of this statement or of a later one ends it.
    for nested in
        ["SELECT 1 /* /*! */ + 2", "SELECT 1 /* /*! */ + '*/;\nsystem ls\n'", "SELECT 1 /* ' /* */ + 3"]
    {
        assert!(statement(mysql, nested).starts_with("-- SELECT"), "{nested}");
    }
    assert!(statement(mysql, "SELECT /*!50000 1 /* a */ + 1 */").starts_with("-- "));
    assert_eq!(statement(mysql, "SELECT 1 /* a */ + 2"), "SELECT 1 /* a */ + 2;");
    assert_eq!(statement(mysql, "BEGIN SELECT 1; END"), "DELIMITER //\nBEGIN SELECT 1; END\n//\nDELIMITER ;");
    assert_eq!(
        statement(mysql, "BEGIN SELECT '//'; END"),
        "DELIMITER ///\nBEGIN SELECT '//'; END\n///\nDELIMITER ;"
    );
    assert_eq!(statement(mysql, "SELECT ';'"), "SELECT ';';");
    assert_eq!(statement(postgres, "BEGIN SELECT 1; END"), "BEGIN SELECT 1; END;");
}

/// Its commands would be executed on the computer of who executes the file.
#[test]
fn statement_in_which_a_client_may_find_a_command_is_a_comment() {
    let [sqlite, postgres, mysql] = ["sqlite", "postgres", "mysql"].map(engine);
    for sql in [
        "SELECT 1 /*M!999999 \\! ls */, 2",
        "SELECT /*+ \\! ls */ 1",
        "SELECT 1 /*! , '\\\\' */, 2",
        "SELECT /*+ ' */ 1, '\\! ls '",
    ] {
        assert_eq!(statement(mysql, sql), format!("-- {sql}"));
        assert_eq!(statement(postgres, sql), format!("{sql};"));
    }
    for sql in ["SELECT 1 /* \\! ls */, 2", "SELECT /*+ a */ '!'", "SELECT '/*! \\\\ '"] {
        assert_eq!(statement(mysql, sql), format!("{sql};"));
    }
    // What one client takes for the inside of quotes is outside of them for another.
    let sql = "SELECT /*+ ' */ 1; SELECT 2 -- '";
    assert_eq!(statement(mysql, sql), format!("DELIMITER //\n{sql}\n//\nDELIMITER ;"));
    for line in ["/", " Go\t", "go -- x", "/ /* x */"] {
        let sql = format!("SELECT 6\n{line}\n2");
        assert!(statement(sqlite, &sql).starts_with("-- SELECT 6\n-- "), "{line}");
        assert_eq!(statement(postgres, &sql), format!("{sql};"));
    }
    for sql in ["SELECT 6 /\n2", "SELECT '\ngo\n'", "SELECT 6\n//2"] {
        assert_eq!(statement(sqlite, sql), format!("{sql};"));
    }
}

/// What is outside of quotes for a client of MySQL may be a command.
#[test]
fn statement_whose_quotes_end_elsewhere_for_a_client_is_a_comment() {
    let mysql = engine("mysql");
    let of_mode = |mode: &str| Engine { syntax: mysql.syntax.under("sql_mode", mode), ..*mysql };
    for (mode, sql, is_made) in [
        ("", "SELECT \\N", true),
        ("", "SELECT \\N'a'", true),
        ("", "SELECT \\n", false),
        ("", "SELECT \\", false),
        ("", "SELECT 1 --\u{1}'\n, '\\! ls'", false),
        ("", "SELECT 1 --\u{1f}\n, 2", false),
        ("", "SELECT 1 --\t'\n, 2", true),
        ("", "SELECT 1 -- '\n, 2", true),
        ("", "SELECT 1 #\u{1}'\n, 2", true),
        ("", "SELECT 1 /*\u{1}'*/, 2", true),
        ("", "SELECT \"a\\\"b\", `\\`", true),
        ("ANSI_QUOTES", "SELECT \"a\\\" + \" \\! ls \"", false),
        ("ANSI_QUOTES", "SELECT \"a\"", true),
        ("MSSQL", "SELECT [a b_1]", true),
        ("MSSQL", "SELECT ['], ' \\! ls '", false),
        ("MSSQL", "SELECT [a;b]", false),
    ] {
        let entry = script::statement(&of_mode(mode), sql);
        assert_eq!(matches!(entry, Entry::Statement(_)), is_made, "{mode}: {entry:?}");
    }
    assert_eq!(statement(engine("postgres"), "SELECT 1 \\g"), "-- SELECT 1 \\g");
    assert_eq!(statement(engine("postgres"), "SELECT 1 --\u{1}\n, 2"), "SELECT 1 --\u{1}\n, 2;");
    assert_eq!(statement(engine("sqlite"), "SELECT \\"), "SELECT \\;");
}

/// What would be a variable, and the words by which its functions begin and end.
#[test]
fn psql_reads_slices_and_names_as_its_server_does() {
    let [sqlite, postgres] = ["sqlite", "postgres"].map(engine);
    for (sql, expected) in [
        ("SELECT a[1:\"DBNAME\"], a[1:b], a[:2]", "SELECT a[1: \"DBNAME\"], a[1: b], a[: 2];"),
        ("SELECT a[1:'2'], a[1:E'2'], a[b::int:c]", "SELECT a[1: '2'], a[1: E'2'], a[b::int: c];"),
        ("SELECT a[:], a[1:(b)], a[1:-b], a[1: b]", "SELECT a[:], a[1:(b)], a[1:-b], a[1: b];"),
        ("SELECT a::int, f(x := 1), ':b', \":b\"", "SELECT a::int, f(x := 1), ':b', \":b\";"),
        ("SELECT $$:b begin$$ /* :b begin */, 1", "SELECT $$:b begin$$ /* :b begin */, 1;"),
        ("CREATE FUNCTION public.begin() BEGIN ATOMIC", "CREATE FUNCTION public.\"begin\"() BEGIN ATOMIC;"),
        ("SELECT 'begin', \"begin\", begin_, t.begin", "SELECT 'begin', \"begin\", begin_, t.\"begin\";"),
    ] {
        assert_eq!(statement(postgres, sql), expected);
    }
    assert_eq!(statement(sqlite, "SELECT :a, begin"), "SELECT :a, begin;");
}

/// A reason is a part of the comment, and a comment stays one.
#[test]
fn entry_that_is_no_statement_says_why() {
    let entry = Entry::Statement("SELECT 1\n;".to_owned());
    assert_eq!(entry.commented("it's\nso"), Entry::Comment("-- it's\n-- so\n-- SELECT 1\n-- ;".to_owned()));
    assert_eq!(entry.map(Entry::Last), Entry::Last("SELECT 1\n;".to_owned()));
    assert_eq!(Entry::comment("a").map(Entry::Last), Entry::Comment("-- a".to_owned()));
}

#[test]
fn words_in_quotes_and_comments_are_no_words_of_a_statement() {
    let [sqlite, postgres, mysql] = ["sqlite", "postgres", "mysql"].map(engine);
    for (engine, sql, expected) in [
        (sqlite, "a 'b''c' d", "a '____' d"),
        (sqlite, "a [b] `c` \"d\"", "a [_] `_` \"_\""),
        (sqlite, "a '' b", "a '' b"),
        (sqlite, "é 'é' x", "é '__' x"),
        (sqlite, "a -- b\nc", "a     \nc"),
        (sqlite, "a - -b - c", "a - -b - c"),
        (sqlite, "a # b", "a # b"),
        (sqlite, "a /* b\n /* */ c", "a     \n       c"),
        (sqlite, "a /* b", "a     "),
        (sqlite, "a / b * c", "a / b * c"),
        (postgres, "a /* b /* */ c */ d", "a                 d"),
        (postgres, "a $x$ b $x$ c", "a $_______$ c"),
        (postgres, "a $1 b $2", "a $1 b $2"),
        (postgres, "é$x$ b $1", "é$x$ b $1"),
        (postgres, "À$x$ b", "À$x$ b"),
        (mysql, "a # b\nc", "a    \nc"),
        (mysql, "a -- b", "a     "),
        (mysql, "a --b", "a --b"),
        (mysql, "a --", "a   "),
        (mysql, "a /*! b */ /*M! c */ /* d */", "a /*! b */ /*M! c */        "),
        (mysql, "a '\\'b' c", "a '___' c"),
        (mysql, "a $$ ' $$ '", "a $$ '____'"),
    ] {
        let (masked, is_whole) = mask(engine, sql);
        assert_eq!((masked.as_str(), is_whole), (expected, true), "{}: {sql}", engine.name);
    }
    for (engine, sql) in
        [(sqlite, "a 'b"), (postgres, "$a$ b"), (sqlite, "[a"), (mysql, "'a\\"), (mysql, "\"a''")]
    {
        assert!(!mask(engine, sql).1, "{}: {sql}", engine.name);
    }
}
