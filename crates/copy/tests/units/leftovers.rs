//! The file of `--leftovers` of a plan.

use kurabe_copy::engines::of_scheme;
use kurabe_copy::issue::{Issue, IssueKind};
use kurabe_copy::plan::{Left, Plan};

fn issue(kind: IssueKind, object: &str, text: &str) -> Issue {
    Issue { text: text.to_owned(), ..Issue::new(kind, object.to_owned(), String::new()) }
}

#[test]
fn file_has_what_was_left_out_then_all_else_after_what_it_needs() {
    let sqlite = of_scheme("sqlite").unwrap();
    let plan = Plan {
        left: vec![Left { object: "t.ix\nx".to_owned(), sql: "CREATE INDEX ix ON t (a);".to_owned() }],
        issues: vec![
            issue(IssueKind::Grant, "g", "GRANT;"),
            issue(IssueKind::Comment, "c", "COMMENT;"),
            issue(IssueKind::Trigger, "tr", "TRIGGER;"),
            issue(IssueKind::Check, "ck", "CHECK a;"),
            issue(IssueKind::View, "a", "CREATE VIEW a AS SELECT * FROM \"b\"\"\";"),
            issue(IssueKind::View, "b\"", "CREATE VIEW b AS SELECT * FROM \"c c\";"),
            issue(IssueKind::View, "c c", "CREATE VIEW c AS SELECT f();"),
            issue(IssueKind::Collation, "no text", ""),
            issue(IssueKind::Routine, "f", "CREATE FUNCTION f;"),
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
        "CREATE FUNCTION f;",
        "-- view: c c",
        "CREATE VIEW c AS SELECT f();",
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
        "GRANT;",
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
