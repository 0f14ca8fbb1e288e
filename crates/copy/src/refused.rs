//! Why a copy does not begin, or does not end.

use crate::sql::Side;
use crate::state::Whole;
use crate::wanted::Parts;
use kurabe_core::{Error, ErrorKind, Result};

/// The error of an unfinished copy that is not this one.
pub(crate) fn is_another(target: &Side, found: &Whole, whole: &Whole) -> Error {
    let why = match (found.source == whole.source, found.parts) {
        (false, _) => "it is another one",
        (_, parts) if parts == whole.parts => "the tables or their definitions have changed",
        (_, Parts::All) => "it copies tables and rows",
        (_, Parts::Schema) => "it makes tables without rows",
        (_, Parts::Data) => "it copies rows only",
    };
    let what = format!("{}: a copy of {} is unfinished, and {why}", target.name, found.source);
    Error::new(ErrorKind::NotOurs, what)
        .hint("continue it as it was begun, or remove its tables and begin again with --no-resume")
}

/// The error of all that the server refused. `parts`: what was copied before it was; `None`: nothing.
pub(crate) fn refusals(parts: Option<Parts>, refused: &[(String, Error)]) -> Option<Error> {
    let (_, first) = refused.first()?;
    let names = refused.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
    let done = match parts {
        None => "nothing was copied",
        Some(Parts::Schema) => "all tables were made",
        Some(_) => "all rows were copied and verified",
    };
    let what = format!("{done}, but the target refused {names}; the first reason: {first}");
    let again = if parts.is_some() { "the same command tries them again; " } else { "" };
    Some(Error::new(ErrorKind::Server, what).hint(format!("{again}--leave-out {names} leaves them out")))
}

/// Refuses tables that exist, and that the copy did not make.
pub(crate) fn refuse_existing<'a>(
    target: &Side,
    there: &[String],
    wanted: impl Iterator<Item = &'a String>,
) -> Result<()> {
    let existing: Vec<&str> = wanted.filter(|name| there.contains(name)).map(String::as_str).collect();
    if existing.is_empty() {
        return Ok(());
    }
    let [noun, verb, it] =
        if existing.len() == 1 { ["table", "exists", "it"] } else { ["tables", "exist", "them"] };
    let what =
        format!("{}: {noun} {} {verb}, and the copy did not make {it}", target.name, existing.join(", "));
    Err(Error::new(ErrorKind::NotOurs, what).hint(
        "nothing was copied; remove or rename it, use an empty database, or leave it out with --tables",
    ))
}
