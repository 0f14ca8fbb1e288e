//! Settings of new sessions, global or of an `init_connect`, that change what a statement does: Kurabe's own sessions undo them.

use crate::prelude::*;
use crate::wire::link::{Query, rows};

/// The setting of the most rows that a query returns.
const ROWS: &str = "sql_select_limit";

/// The settings: the name, the usual values as the server reports them, and the value that Kurabe's sessions have.
const SETTINGS: [(&str, &[&str], &str); 3] = [
    // Without it, each statement begins a transaction that nobody ends.
    ("autocommit", &["1", "ON"], "1"),
    // With CHAIN, each COMMIT begins another transaction; RELEASE ends the connection.
    ("completion_type", &["NO_CHAIN", "0"], "0"),
    (ROWS, &["18446744073709551615"], "18446744073709551615"),
];

/// The settings of new sessions that are not the usual ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unusual(Vec<(&'static str, String)>);

impl Unusual {
    pub(super) fn read(link: &mut dyn Query) -> Result<Self> {
        let names = SETTINGS.map(|(name, ..)| format!("@@{name}")).join(", ");
        match rows(link, &format!("SELECT {names}")) {
            Ok(rows) => Ok(Self::of(rows.into_iter().next().unwrap_or_default())),
            // A server of another make lacks one of them.
            Err(error) if error.server_code().is_some() => {
                let row = rows_of_one(link)?;
                Ok(Self::of(row))
            }
            Err(error) => Err(error),
        }
    }

    fn of(values: Vec<String>) -> Self {
        let all = SETTINGS.into_iter().zip(values);
        let unusual = all.filter(|((_, usual, _), value)| !usual.contains(&value.as_str()));
        Self(unusual.map(|((name, ..), value)| (name, value)).collect())
    }

    /// Gives a session the usual values, in one round trip.
    pub(super) fn reset(&self, link: &mut dyn Query) -> Result<()> {
        self.statement().map_or(Ok(()), |set| link.query(&set, &mut Reply::new()))
    }

    /// Whether the server limits the rows of an answer.
    pub(super) fn limits_rows(&self) -> bool {
        self.0.iter().any(|(name, _)| *name == ROWS)
    }

    /// The statement that gives a session the usual values; `None` if it has them.
    pub(super) fn statement(&self) -> Option<String> {
        let is_unusual = |name: &str| self.0.iter().any(|(unusual, _)| *unusual == name);
        let set = SETTINGS.iter().filter(|(name, ..)| is_unusual(name));
        let set: Vec<String> = set.map(|(name, _, value)| format!("{name} = {value}")).collect();
        (!set.is_empty()).then(|| format!("SET {}", set.join(", ")))
    }

    /// What the reader should know of it.
    pub(super) fn note(&self) -> Option<String> {
        let shown: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let (them, values) =
            if shown.len() == 1 { ("it", "its usual value") } else { ("them", "their usual values") };
        (!shown.is_empty()).then(|| {
            format!(
                "New sessions have {} here; those of Kurabe set {them} to {values}, one round trip more for each connection.",
                shown.join(", ")
            )
        })
    }
}

/// The value of the first setting alone.
fn rows_of_one(link: &mut dyn Query) -> Result<Vec<String>> {
    let sql = format!("SELECT @@{}", SETTINGS[0].0);
    Ok(rows(link, &sql)?.into_iter().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_values_are_left_alone_and_others_are_named() {
        let of = |values: &[&str]| Unusual::of(values.iter().map(|value| (*value).to_owned()).collect());
        for usual in [&["1", "NO_CHAIN", "18446744073709551615"][..], &["1", "0"], &["1"], &[]] {
            assert_eq!(of(usual), Unusual::default(), "{usual:?}");
            assert_eq!(of(usual).note(), None);
        }
        let one = of(&["0", "NO_CHAIN", "18446744073709551615"]);
        assert!(one.note().unwrap().contains("autocommit = 0 here; those of Kurabe set it"));
        let note = of(&["1", "CHAIN", "1"]).note().unwrap();
        assert!(
            note.contains("completion_type = CHAIN, sql_select_limit = 1") && note.contains("them"),
            "{note}"
        );
    }
}
