//! [`kurabe_copy::defaults`].

use kurabe_copy::catalog::DefaultValue;
use kurabe_copy::classes::kind_of;
use kurabe_copy::defaults::clause;
use kurabe_copy::engines::of_scheme;
use kurabe_copy::types::Mapped;

/// The clause on PostgreSQL and MySQL of a default of a type of MySQL.
#[test]
fn literal_is_carried_over_if_the_targets_type_holds_it() {
    let source = of_scheme("mysql").unwrap();
    let carried = |scheme: &str, declared: &str, to: &str, text: &str| {
        let target = of_scheme(scheme).unwrap();
        let mapped = Mapped::of(target, to.to_owned(), None);
        let value = DefaultValue::Literal(text.to_owned());
        clause(false, target, &value, &kind_of(source, declared), &mapped).ok()
    };
    for (scheme, declared, to, text, expected) in [
        ("postgres", "int", "integer", "007", Some(" DEFAULT 7")),
        ("postgres", "int", "integer", "1.5", None),
        ("postgres", "tinyint(1)", "boolean", "1", Some(" DEFAULT TRUE")),
        ("postgres", "tinyint(1)", "boolean", "2", None),
        ("postgres", "bigint", "smallint", "32768", None),
        ("postgres", "decimal(5,2)", "numeric(5,2)", "123.45", Some(" DEFAULT 123.45")),
        ("postgres", "decimal(9,2)", "numeric(5,2)", "1234.5", None),
        ("postgres", "time", "time(0) without time zone", "-01:00:00", None),
        ("mysql", "time", "time", "-01:00:00", Some(" DEFAULT '-01:00:00'")),
        ("postgres", "time", "time(0) without time zone", "23:59:59", Some(" DEFAULT '23:59:59'")),
        ("postgres", "date", "date", "2024-02-29", Some(" DEFAULT '2024-02-29'")),
        ("postgres", "date", "date", "2023-02-29", None),
        ("postgres", "date", "date", "soon", None),
        ("postgres", "date", "date", "0000-00-00", None),
        ("mysql", "date", "date", "0000-00-00", Some(" DEFAULT '0000-00-00'")),
        ("mysql", "datetime", "datetime", "infinity", None),
        ("mysql", "datetime", "datetime", "2024-01-01 00:00:00", Some(" DEFAULT '2024-01-01 00:00:00'")),
        ("postgres", "varchar(3)", "character varying(3)", "abcd", None),
        ("postgres", "float", "real", "1e300", None),
        ("postgres", "json", "json", "{", None),
    ] {
        let found = carried(scheme, declared, to, text);
        assert_eq!(found.as_deref(), expected, "{scheme} {declared} {to} {text}");
    }
}
