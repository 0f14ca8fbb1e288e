//! The file of `--leftovers` of a plan.

use kurabe_copy::catalog::{Catalog, Native, Table, Text};
use kurabe_copy::engines::{TargetFacts, of_scheme};
use kurabe_copy::issue::{Issue, IssueKind};
use kurabe_copy::leftovers::{list, texts_of};
use kurabe_copy::plan::{Left, Plan};
use kurabe_copy::script::Entry;
use kurabe_copy::types::Class;
use kurabe_copy::wanted::Wanted;

use super::verify::{column, table};

fn issue(kind: IssueKind, object: &str, sql: &str) -> Issue {
    entry(kind, object, Entry::Statement(sql.to_owned()))
}

fn entry(kind: IssueKind, object: &str, text: Entry) -> Issue {
    Issue { text: Some(text), ..Issue::new(kind, object.to_owned(), String::new()) }
}

fn written_of(issue: &Issue) -> String {
    issue.text.as_ref().unwrap().text().to_owned()
}

#[test]
fn file_has_what_was_left_out_then_all_else_after_what_it_needs() {
    let sqlite = of_scheme("sqlite").unwrap();
    let plan = Plan {
        left: vec![Left {
            object: "t.ix\nx".to_owned(),
            sql: Entry::Statement("CREATE INDEX ix ON t (a);".to_owned()),
        }],
        issues: vec![
            entry(IssueKind::Grant, "g", Entry::Last("ALTER TABLE t OWNER TO g;".to_owned())),
            entry(IssueKind::Grant, "j", Entry::Comment("-- GRANT SELECT ON t TO j;".to_owned())),
            issue(IssueKind::Grant, "h", "GRANT SELECT ON t TO h;"),
            issue(IssueKind::Grant, "i", "GRANT SELECT ON \"c c\" TO i;"),
            issue(IssueKind::Comment, "c", "COMMENT;"),
            issue(IssueKind::Trigger, "tr", "TRIGGER;"),
            issue(IssueKind::Check, "ck", "CHECK a;"),
            issue(IssueKind::View, "a", "CREATE VIEW a AS SELECT * FROM \"b\"\"\";"),
            issue(IssueKind::View, "b\"", "CREATE VIEW b AS SELECT * FROM \"c c\";"),
            issue(IssueKind::View, "c c", "CREATE VIEW c AS SELECT f(), ck;"),
            Issue::new(IssueKind::Collation, "no text".to_owned(), String::new()),
            issue(IssueKind::Routine, "f", "CREATE FUNCTION f AS SELECT a;"),
        ],
        ..Plan::default()
    };
    let text = plan.left_text(sqlite);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let expected = [
        "-- What 'kurabe copy' did not make, for SQLite.",
        "-- left out: t.ix",
        "-- x",
        "CREATE INDEX ix ON t (a);",
        "-- routine: f",
        "CREATE FUNCTION f AS SELECT a;",
        "-- grant: h",
        "GRANT SELECT ON t TO h;",
        "-- view: c c",
        "CREATE VIEW c AS SELECT f(), ck;",
        "-- grant: i",
        "GRANT SELECT ON \"c c\" TO i;",
        "-- view: b\"",
        "CREATE VIEW b AS SELECT * FROM \"c c\";",
        "-- view: a",
        "CREATE VIEW a AS SELECT * FROM \"b\"\"\";",
        "-- check: ck",
        "CHECK a;",
        "-- trigger: tr",
        "TRIGGER;",
        "-- comment: c",
        "COMMENT;",
        "-- grant: g",
        "ALTER TABLE t OWNER TO g;",
        "-- grant: j",
        "-- GRANT SELECT ON t TO j;",
    ];
    assert_eq!(lines, expected, "{text}");
    // Views that name one another come in the order of the plan.
    let views = |names: [(&str, &str); 2]| Plan {
        issues: names.map(|(name, text)| issue(IssueKind::View, name, text)).to_vec(),
        ..Plan::default()
    };
    let text = views([("v1", "v1 of v2"), ("v2", "v2 of v1")]).left_text(sqlite);
    assert!(text.find("v1 of").unwrap() < text.find("v2 of").unwrap(), "{text}");
}

/// The source's own statement for a server of its kind, one of the target's where it has such, and a comment otherwise.
#[test]
fn comments_are_written_for_their_reader() {
    let written = |scheme: &str, text: Text, name: &str, same: bool| {
        let mut catalog = Catalog::default();
        let tables = [Table { name: "t".to_owned(), ..Table::default() }];
        catalog.tables = tables.to_vec();
        catalog.leave_text(IssueKind::Comment, Some("t"), name, text);
        let mut plan =
            Plan { tables: vec![table(vec![column("a", Class::Int64, false)])], ..Plan::default() };
        let facts = TargetFacts { same_server: same, ..TargetFacts::default() };
        list(&mut plan, of_scheme(scheme).unwrap(), &facts, &catalog, &tables, &Wanted::default());
        written_of(&plan.issues[0])
    };
    let remark = |what: &str, own: &str| Text::Remark {
        what: what.to_owned(),
        own: own.to_owned(),
        text: "it's".to_owned(),
    };
    let own = || remark("TABLE", "COMMENT ON TABLE t IS 'own'");
    assert_eq!(written("postgres", own(), "t", true), "COMMENT ON TABLE t IS 'own';");
    assert_eq!(written("postgres", own(), "t", false), "COMMENT ON TABLE \"t\" IS 'it''s';");
    assert_eq!(written("mysql", remark("TABLE", ""), "t", true), "ALTER TABLE `t` COMMENT 'it''s';");
    assert_eq!(
        written("postgres", remark("COLUMN", ""), "a", false),
        "COMMENT ON COLUMN \"t\".\"a\" IS 'it''s';"
    );
    for (what, name) in [("INDEX", "a"), ("COLUMN", "other")] {
        assert_eq!(written("postgres", remark(what, ""), name, false), "-- it's");
    }
    assert_eq!(written("sqlite", remark("TABLE", ""), "t", false), "-- it's");
    // What is not UTF-8.
    assert_eq!(
        written("postgres", remark("TABLE", "COMMENT ON TABLE t IS '\0'"), "t", true),
        "-- COMMENT ON TABLE t IS '\u{fffd}'"
    );
    let statement = || Text::Statement("CREATE VIEW v".to_owned());
    assert_eq!(written("postgres", statement(), "v", true), "CREATE VIEW v;");
    assert_eq!(written("postgres", statement(), "v", false), "-- CREATE VIEW v");
    assert_eq!(written("postgres", Text::Words("words".to_owned()), "v", true), "-- words");
}

/// The names are compared, and not searched in the statement.
#[test]
fn statement_is_a_comment_where_the_target_lacks_a_role_that_it_names() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let written = |text: Text, named: &[&str], same: bool, unread: Option<&str>| {
        let mut catalog = Catalog::default();
        catalog.leave_text(IssueKind::Grant, None, "g", text).roles = names(named);
        let roles_unread = unread.map(str::to_owned);
        let facts = TargetFacts {
            same_server: same,
            roles: names(&["`a`", "`b`"]),
            roles_unread,
            ..Default::default()
        };
        let mut plan = Plan::default();
        list(&mut plan, of_scheme("mysql").unwrap(), &facts, &catalog, &[], &Wanted::default());
        written_of(&plan.issues[0])
    };
    let grant = || Text::Statement("GRANT x TO `a`, `c\nd`, `A`".to_owned());
    assert_eq!(written(grant(), &["`a`", "`b`"], true, None), "GRANT x TO `a`, `c\nd`, `A`;");
    assert_eq!(
        written(grant(), &["`a`", "`c\nd`", "`A`"], true, None),
        "-- the target has no `c\n-- d`, `A`: create it first\n-- GRANT x TO `a`, `c\n-- d`, `A`;"
    );
    assert_eq!(
        written(grant(), &["`A`"], true, Some("denied")),
        "-- create `A` first, unless it exists: denied\n-- GRANT x TO `a`, `c\n-- d`, `A`;"
    );
    assert_eq!(written(grant(), &["`a`"], true, Some("denied")), "GRANT x TO `a`, `c\nd`, `A`;");
    assert_eq!(written(grant(), &["`A`"], false, None), "-- GRANT x TO `a`, `c\n-- d`, `A`");
    assert_eq!(written(Text::Words("words".to_owned()), &["`A`"], true, None), "-- words");
}

/// A grant, a trigger or another view would be refused.
#[test]
fn statement_is_a_comment_where_what_it_names_is_one() {
    let mut catalog = Catalog::default();
    let roles = |name: &str| vec![format!("`{name}`")];
    for (kind, name, sql) in [
        (IssueKind::View, "reads w", "CREATE VIEW `reads w` AS SELECT 1 FROM w"),
        (IssueKind::View, "w", "CREATE VIEW w AS SELECT `f (x)`(1), 'v' FROM t"),
        (IssueKind::View, "v", "CREATE VIEW v AS SELECT 'w', `W`, f FROM t -- w"),
        (IssueKind::Grant, "to a", "GRANT SELECT ON w TO a"),
        (IssueKind::Grant, "to b", "GRANT SELECT ON v TO a"),
        (IssueKind::Grant, "to c", "GRANT EXECUTE ON FUNCTION `f (x)` TO a"),
    ] {
        catalog.leave_text(kind, None, name, Text::Statement(sql.to_owned()));
    }
    let f = Text::Statement("CREATE FUNCTION `f (x)`(a int)".to_owned());
    catalog.leave_text(IssueKind::Routine, None, "f (x)", f).roles = roles("lost");
    let facts = TargetFacts { same_server: true, roles: roles("a"), ..TargetFacts::default() };
    let left_out = |names: &[&str]| {
        let leave_out = names.iter().map(|name| (*name).to_owned()).collect();
        let (mut plan, wanted) = (Plan::default(), Wanted { leave_out, ..Wanted::default() });
        list(&mut plan, of_scheme("mysql").unwrap(), &facts, &catalog, &[], &wanted);
        plan
    };
    let plan = left_out(&[]);
    let comments: Vec<&str> = plan
        .issues
        .iter()
        .filter(|issue| matches!(issue.text, Some(Entry::Comment(_))))
        .map(|issue| issue.object.as_str())
        .collect();
    assert_eq!(comments, ["reads w", "w", "to a", "to c", "f (x)"]);
    assert_eq!(
        written_of(&plan.issues[0]),
        "-- w is not made by this file: make it first\n-- CREATE VIEW `reads w` AS SELECT 1 FROM w;"
    );
    // What the user leaves out stands in the file, too.
    let plan = left_out(&["f (x)", "reads w"]);
    assert!(plan.left.iter().all(|left| matches!(left.sql, Entry::Comment(_))), "{:?}", plan.left);
    assert!(written_of(&plan.issues[0]).starts_with("-- f (x) is not made"), "{:?}", plan.issues);
}

#[test]
fn object_is_listed_with_its_table_and_a_mode_is_set_for_its_statement() {
    let listed = |same: bool| {
        let mut catalog = Catalog::default();
        let tables = [Table { name: "t".to_owned(), ..Table::default() }];
        catalog.tables = tables.to_vec();
        catalog.leave(IssueKind::Comment, Some("t"), "t", "words");
        catalog.leave(IssueKind::Check, Some("t"), "c", "words").internal = true;
        let mode = Text::Under(vec![("sql_mode", "ANSI".to_owned())], "SELECT 1".to_owned());
        catalog.leave_text(IssueKind::Routine, None, "f", mode);
        let facts = TargetFacts { same_server: same, ..TargetFacts::default() };
        let mut plan = Plan::default();
        list(&mut plan, of_scheme("mysql").unwrap(), &facts, &catalog, &tables, &Wanted::default());
        plan.issues.into_iter().map(|issue| (issue.object.clone(), written_of(&issue))).collect::<Vec<_>>()
    };
    let pairs = |list: &[(&str, &str)]| {
        list.iter().map(|(object, text)| ((*object).to_owned(), (*text).to_owned())).collect::<Vec<_>>()
    };
    let in_mode = "SET @@SESSION.sql_mode = 'ANSI';\nSELECT 1;\nSET NAMES utf8mb4;\nSET SESSION sql_mode = '', time_zone = '+00:00';";
    assert_eq!(listed(true), pairs(&[("t", "-- words"), ("t.c", "-- words"), ("f", in_mode)]));
    // What other engines lose nothing by is not listed for them.
    assert_eq!(listed(false), pairs(&[("t", "-- words"), ("f", "-- SELECT 1")]));
}

#[test]
fn statement_of_a_mode_is_read_by_its_rules() {
    let written = |mode: &str| {
        let mut catalog = Catalog::default();
        let text = Text::Under(vec![("sql_mode", mode.to_owned())], "SELECT '\\'".to_owned());
        catalog.leave_text(IssueKind::Routine, None, "f", text);
        let (mut plan, facts) =
            (Plan::default(), TargetFacts { same_server: true, ..TargetFacts::default() });
        list(&mut plan, of_scheme("mysql").unwrap(), &facts, &catalog, &[], &Wanted::default());
        plan.issues[0].text.clone().unwrap()
    };
    assert_eq!(written(""), Entry::Comment("-- SELECT '\\'".to_owned()));
    let sql = "SET @@SESSION.sql_mode = 'NO_BACKSLASH_ESCAPES';\nSELECT '\\';\nSET NAMES utf8mb4;\nSET SESSION sql_mode = '', time_zone = '+00:00';";
    assert_eq!(written("NO_BACKSLASH_ESCAPES"), Entry::Statement(sql.to_owned()));
}

/// After such a statement, the user of the file may not make what follows.
#[test]
fn statement_that_takes_rights_away_stays_the_last_one() {
    let written = |text: &str, same: bool| {
        let mut catalog = Catalog::default();
        catalog.leave_text(IssueKind::Grant, None, "g", Text::Last(text.to_owned()));
        let (mut plan, facts) =
            (Plan::default(), TargetFacts { same_server: same, ..TargetFacts::default() });
        list(&mut plan, of_scheme("postgres").unwrap(), &facts, &catalog, &[], &Wanted::default());
        plan.issues[0].text.clone().unwrap()
    };
    let sql = "ALTER TABLE t OWNER TO a";
    assert_eq!(written(sql, true), Entry::Last(format!("{sql};")));
    assert_eq!(written(sql, false), Entry::Comment(format!("-- {sql}")));
    assert_eq!(written("ALTER TABLE \"", true), Entry::Comment("-- ALTER TABLE \"".to_owned()));
}

/// What stands in the file for another engine are comments, but for comments on tables and columns.
#[test]
fn statement_for_another_engine_is_none_of_the_source_that_it_names() {
    let mut catalog = Catalog::default();
    let tables = [Table { name: "t".to_owned(), ..Table::default() }];
    catalog.tables = tables.to_vec();
    let text = Text::Remark { what: "TABLE".to_owned(), own: String::new(), text: "x".to_owned() };
    catalog.leave_text(IssueKind::Comment, Some("t"), "t", text);
    catalog.leave_text(IssueKind::Routine, None, "t", Text::Statement("CREATE FUNCTION t".to_owned()));
    let mut plan = Plan { tables: vec![table(vec![column("a", Class::Int64, false)])], ..Plan::default() };
    let facts = TargetFacts::default();
    list(&mut plan, of_scheme("postgres").unwrap(), &facts, &catalog, &tables, &Wanted::default());
    let texts: Vec<String> = plan.issues.iter().map(written_of).collect();
    assert_eq!(texts, ["COMMENT ON TABLE \"t\" IS 'x';", "-- CREATE FUNCTION t"]);
}

#[test]
fn table_that_is_not_made_is_listed_with_its_text() {
    let listed = |native: Option<&str>, same: bool| {
        let native = native.map(|sql| Native { create: sql.to_owned(), ..Native::default() });
        let empty = Table { name: "empty".to_owned(), native, ..Table::default() };
        texts_of(&empty, of_scheme("postgres").unwrap(), same, &[]).remove(0).sql
    };
    assert_eq!(
        listed(Some("CREATE TABLE empty ()"), true),
        Entry::Statement("CREATE TABLE empty ();".to_owned())
    );
    assert_eq!(
        listed(Some("CREATE TABLE empty ()"), false),
        Entry::Comment("-- CREATE TABLE empty ()".to_owned())
    );
    assert_eq!(listed(None, true), Entry::Comment("-- empty has no text of its own".to_owned()));
}
