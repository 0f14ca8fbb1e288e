//! [`kurabe_copy::casts`].

use kurabe_copy::casts::{Casts, UserCasts, shown};
use kurabe_copy::catalog::{Collation, Column, DefaultValue, Table};
use kurabe_copy::classes::{classes, kind_of};
use kurabe_copy::engines::{ALL, of_scheme};
use kurabe_copy::issue::IssueKind;
use kurabe_copy::types::{Class, Mapped};

fn column(declared: &str) -> Column {
    Column {
        name: "c".to_owned(),
        declared: declared.to_owned(),
        nullable: true,
        default: DefaultValue::Null,
        identity: false,
        collation: Collation::Bytes,
        generated: None,
        next: None,
        has_binary: false,
    }
}

fn becomes(from: &str, to: &str, user: &UserCasts, declared: &str, limit: Option<u32>) -> Mapped {
    let (from, to) = (of_scheme(from).unwrap(), of_scheme(to).unwrap());
    let casts = Casts::new(from, to, user).unwrap();
    casts.becomes("t", &column(declared), &kind_of(from, declared), limit).unwrap()
}

#[test]
fn every_type_of_every_engine_has_a_line_in_every_table() {
    let user = UserCasts::default();
    for (from, to) in ALL.iter().flat_map(|from| ALL.iter().map(move |to| (*from, *to))) {
        let casts = Casts::new(from, to, &user).unwrap();
        if from.name == to.name && from.name != "MySQL" {
            continue;
        }
        let shown = shown(&[from.name, to.name]);
        let file: toml::Table = toml::from_str(&shown).unwrap();
        let all = || file["types"].as_table().unwrap().iter();
        for (name, _) in classes(from).filter(|(name, _)| !name.contains("character set u")) {
            let own = all().any(|(known, _)| known == name || known == "known");
            assert!(own || name.contains("set ascii"), "{} to {}: {name}", from.name, to.name);
            for declared in [name.to_owned(), format!("{name}(65535)")] {
                let kind = kind_of(from, &declared);
                let mapped = casts.becomes("t", &column(&declared), &kind, None).unwrap();
                let is_known = mapped.stored.class != Class::Native;
                assert!(is_known, "{} to {}: {declared}, {mapped:?}", from.name, to.name);
            }
        }
        for (name, _) in all().filter(|(name, _)| !matches!(name.as_str(), "known" | "*")) {
            assert!(classes(from).any(|(known, _)| known == name), "{} has no {name}", from.name);
        }
    }
}

#[test]
fn users_word_for_a_column_precedes_that_for_its_type_and_the_table() {
    let mut user = UserCasts::default();
    let sql = |user: &UserCasts, declared: &str| becomes("mysql", "postgres", user, declared, None).sql;
    assert_eq!(sql(&user, "tinyint(1)"), "smallint");
    user.add("tinyint(1)=boolean").unwrap();
    assert_eq!((sql(&user, "tinyint(1)"), sql(&user, "TINYINT(4)")), ("boolean".into(), "smallint".into()));
    user.add_file("[types]\ntinyint = \"integer\"\n[columns]\n\"shop.t.d\" = \"text\"").unwrap();
    assert_eq!((sql(&user, "tinyint(1)"), sql(&user, "tinyint")), ("boolean".into(), "integer".into()));
    user.add("shop.t.c=numeric(12,2)").unwrap();
    assert_eq!(sql(&user, "tinyint(1)"), "numeric(12,2)");
    for wrong in ["boolean", "=boolean", "int="] {
        assert!(user.add(wrong).is_err(), "{wrong}");
    }
    assert!(user.add_file("[types]\nint = 5").is_err());
    let table = Table { name: "t".to_owned(), columns: vec![column("tinyint(1)")], ..Table::default() };
    let error = user.check(&[table]).unwrap_err().to_string();
    assert!(error.contains("shop.t.d is no column"), "{error}");
}

#[test]
fn numbers_decide_between_lines_and_an_index_limits_text() {
    let user = UserCasts::default();
    for (from, to, declared, limit, sql, issue) in [
        ("mysql", "postgres", "bigint(20) unsigned", None, "numeric(20)", Some(IssueKind::Unsigned64)),
        ("mysql", "sqlite", "enum('a','b)')", None, "TEXT", Some(IssueKind::Enum)),
        ("postgres", "mysql", "numeric(66,2)", None, "decimal(65,30)", Some(IssueKind::Decimal)),
        ("postgres", "mysql", "numeric(40,31)", None, "decimal(65,30)", Some(IssueKind::Decimal)),
        ("postgres", "mysql", "text", Some(760), "varchar(760)", None),
        ("postgres", "mysql", "bytea", Some(380), "varbinary(380)", None),
        ("postgres", "mysql", "inet", Some(760), "varchar(760)", Some(IssueKind::Type)),
        ("sqlite", "postgres", "MONEY WORDS", None, "text", None),
        ("sqlite", "postgres", "unsigned big int", None, "bigint", None),
        ("mariadb", "mysql", "set('a')", None, "set('a')", None),
        ("mariadb", "mysql", "json(text)", None, "json", None),
        ("mariadb", "mysql", "inet6", None, "longtext", Some(IssueKind::Type)),
    ] {
        let mapped = becomes(from, to, &user, declared, limit);
        assert_eq!((mapped.sql.as_str(), mapped.issue), (sql, issue), "{from} to {to}: {declared}");
    }
}
