//! [`kurabe_copy::types`].

use kurabe_copy::types::Declared;

#[test]
fn declared_types_are_split_into_words_and_numbers() {
    let parts = |text: &str| {
        let Declared { base, n, s } = Declared::parse(text);
        (base, n, s)
    };
    assert_eq!(parts("DECIMAL(10, 2) unsigned zerofill"), ("decimal unsigned".into(), Some(10), Some(2)));
    assert_eq!(
        parts("timestamp(3) without time zone"),
        ("timestamp without time zone".into(), Some(3), None)
    );
    assert_eq!(parts("enum('a','b)')"), ("enum".into(), None, None));
    assert_eq!(parts(""), (String::new(), None, None));
}
