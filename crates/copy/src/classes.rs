//! Which type of an engine is of which class: `casts/types.toml`.

use crate::engines::engine::Engine;
use crate::issue::IssueKind;
use crate::types::{Class, Declared, Kind, Mapped, UNLIMITED};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The classes of types, by the name of their engine in lower case.
static CLASSES: LazyLock<BTreeMap<String, BTreeMap<String, Class>>> =
    LazyLock::new(|| toml::from_str(include_str!("../casts/types.toml")).unwrap_or_default());

/// The types of an engine and their classes.
pub fn classes(engine: &Engine) -> impl Iterator<Item = (&'static str, Class)> {
    let of = CLASSES.get(&engine.name.to_lowercase());
    of.into_iter().flatten().map(|(name, class)| (name.as_str(), *class))
}

/// The class of a declared type of an engine.
pub fn kind_of(engine: &Engine, text: &str) -> Kind {
    let declared = Declared::parse(text);
    let class = |name: &str| classes(engine).find(|(known, _)| *known == name).map(|(_, class)| class);
    let class = class(&declared.base).or_else(|| class(engine.dialect.type_of_unknown(&declared)?));
    let class = class.unwrap_or(Class::Native);
    let is_negative = declared.s.is_some_and(i32::is_negative);
    let s = declared.s.unwrap_or(0).unsigned_abs();
    let (n, s) = match (class, declared.n) {
        // PostgreSQL rounds to tens, or has more digits after the point than digits. No other engine does.
        (Class::Decimal, Some(n)) if is_negative => (n + s, 0),
        (Class::Decimal, Some(n)) => (n.max(s), s),
        (Class::Decimal, None) => engine.default_decimal,
        (Class::Char | Class::Binary | Class::Bits, n) => (n.unwrap_or(1), s),
        (Class::Time | Class::Timestamp | Class::TimestampTz, n) => (n.unwrap_or(engine.default_fraction), s),
        (_, n) => (n.unwrap_or(UNLIMITED), s),
    };
    Kind { class, n, s, declared: text.to_owned() }
}

impl Mapped {
    /// A column of this type on an engine.
    pub fn of(engine: &Engine, sql: String, issue: Option<IssueKind>) -> Self {
        let mut stored = kind_of(engine, &sql);
        stored.class = (engine.stored_class)(&stored);
        Self { sql, stored, issue }
    }
}
