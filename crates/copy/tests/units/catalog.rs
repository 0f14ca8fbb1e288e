//! [`kurabe_copy::catalog`].

use kurabe_copy::catalog::{DefaultValue, read_default};

#[test]
fn defaults_are_values_or_expressions() {
    let literal = |text: &str| DefaultValue::Literal(text.to_owned());
    for (text, expected) in [
        ("NULL", DefaultValue::Null),
        ("NULL::character varying", DefaultValue::Null),
        ("0", literal("0")),
        ("(-1.5)", literal("-1.5")),
        ("'it''s'", literal("it's")),
        ("'new'::character varying(20)", literal("new")),
        ("true", literal("1")),
        ("CURRENT_TIMESTAMP", DefaultValue::Now),
        ("current_timestamp(6)", DefaultValue::Now),
        ("now()", DefaultValue::Now),
    ] {
        assert_eq!(read_default(text, false), expected, "{text}");
    }
    assert_eq!(read_default("'C:\\\\dir\\'s\\n'", true), literal("C:\\dir's\n"));
    assert_eq!(read_default("'C:\\dir'", false), literal("C:\\dir"));
    for text in [
        "uuid()",
        "'a' || 'b'",
        "inf_thing",
        "gen_random_uuid()",
        "'ord-'::text || nextval('s'::regclass)",
        "'2024-01-01'::date + make_interval(days => 1)",
        "now() + '1 day'::interval",
        "current_timestamp - 1",
        "datetime('now', '+1 day')",
        "'a'::text || (1)",
    ] {
        assert_eq!(read_default(text, true), DefaultValue::Expression(text.to_owned()), "{text}");
    }
}
