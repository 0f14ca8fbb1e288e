//! Snapshots of a server's statistics, and their difference over a trial.

use super::{Counter, CounterScope, EngineCount, MAX, StatementUse};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A snapshot of cumulative counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// The counters.
    pub counts: Vec<EngineCount>,
    /// The statistics of statements.
    pub statements: Vec<StatementUse>,
    /// What is not available.
    pub unavailable: Vec<Unavailable>,
}

impl Reading {
    /// Adds a counter if the server reported it, or otherwise the reason why not.
    pub fn count(
        &mut self,
        what: Counter,
        value: Option<u64>,
        from: &str,
        scope: CounterScope,
        why_not: &str,
    ) {
        match value {
            Some(value) => self.counts.push(EngineCount::new(what, value, from, scope)),
            None => self.add_unavailable(what.word(), why_not),
        }
    }

    /// Adds something that is not available, with the reason.
    pub fn add_unavailable(&mut self, what: &str, why: impl Into<String>) {
        self.unavailable.push(Unavailable { what: what.to_owned(), why: why.into() });
    }

    /// Turns an error with a server's code into an [`Unavailable`] entry and returns `None`; other errors are
    /// returned. `prefix` is put before the server's message.
    ///
    /// # Errors
    /// Errors without a server's code.
    pub fn reported<T>(&mut self, result: Result<T>, what: &str, prefix: &str) -> Result<Option<T>> {
        match result {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.server_code().is_some() => {
                self.add_unavailable(what, format!("{prefix}{error}"));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Statistics that the server did not report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// What: one of Kurabe's terms, or the server's.
    pub what: String,
    /// The reason, as a clause.
    pub why: String,
}

/// A server's statistics for a trial, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineUse {
    /// The increases of its counters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<EngineCount>,
    /// The statements with the longest total time, in descending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUse>,
    /// What the server did not report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
    /// Why its sessions were not sampled, as a clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_sampled: Option<String>,
}

impl EngineUse {
    /// A trial without any statistics, for this reason.
    pub fn silent(why: &str) -> Self {
        let unavailable = vec![Unavailable { what: "all statistics".to_owned(), why: why.to_owned() }];
        Self { unavailable, not_sampled: Some(why.to_owned()), ..Self::default() }
    }

    /// Adds the difference between two snapshots.
    pub fn add(&mut self, then: &Reading, now: Reading) {
        for count in now.counts {
            let same = |old: &&EngineCount| old.what == count.what && old.from == count.from;
            match then.counts.iter().find(same).map(|old| count.value.checked_sub(old.value)) {
                Some(Some(value)) => self.counts.push(EngineCount { value, ..count }),
                Some(None) => self.add_unavailable(count.from, "it was reset during the trial"),
                None => self.add_unavailable(count.from, "it was reported only once"),
            }
        }
        let before = by_text(then.statements.iter().cloned());
        for (_, statement) in by_text(now.statements) {
            let old = before.get(&statement.text);
            let past = |now: u64, then: fn(&StatementUse) -> u64| now.saturating_sub(old.map_or(0, then));
            let used = StatementUse {
                calls: past(statement.calls, |s| s.calls),
                time_ns: past(statement.time_ns, |s| s.time_ns),
                cpu_ns: statement.cpu_ns.map(|cpu| past(cpu, |s| s.cpu_ns.unwrap_or(0))),
                rows_examined: statement
                    .rows_examined
                    .map(|rows| past(rows, |s| s.rows_examined.unwrap_or(0))),
                rows: past(statement.rows, |s| s.rows),
                text: statement.text,
            };
            if used.calls > 0 {
                self.statements.push(used);
            }
        }
        crate::sort::by_key(&mut self.statements, |statement| std::cmp::Reverse(statement.time_ns));
        self.statements.truncate(MAX);
        for missing in then.unavailable.iter().cloned().chain(now.unavailable) {
            if !self.unavailable.contains(&missing) {
                self.unavailable.push(missing);
            }
        }
    }

    fn add_unavailable(&mut self, what: String, why: &str) {
        self.unavailable.push(Unavailable { what, why: why.to_owned() });
    }

    /// The increase of a counter, if it was reported.
    pub fn of(&self, what: Counter) -> Option<&EngineCount> {
        self.counts.iter().find(|count| count.what == what)
    }

    /// Removes texts that reveal the engine.
    pub(crate) fn without_names(&mut self) {
        for count in &mut self.counts {
            count.from.clear();
        }
        self.statements.clear();
        self.unavailable.clear();
        if let Some(why) = &mut self.not_sampled {
            "withheld".clone_into(why);
        }
    }
}

/// The sums of statements with equal texts: texts that differ only in a number, or at their ends, are shortened to the
/// same one.
fn by_text(statements: impl IntoIterator<Item = StatementUse>) -> BTreeMap<String, StatementUse> {
    let mut all: BTreeMap<String, StatementUse> = BTreeMap::new();
    for one in statements {
        match all.get_mut(&one.text) {
            Some(known) => known.add(&one),
            None => {
                all.insert(one.text.clone(), one);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats_probe::CounterScope;

    fn count(what: Counter, value: u64) -> EngineCount {
        EngineCount::new(what, value, what.word(), CounterScope::Server)
    }

    #[test]
    fn counter_difference_is_its_increase_and_decreased_counter_is_unavailable() {
        let then = Reading {
            counts: vec![count(Counter::LogBytes, 100), count(Counter::Evictions, 9)],
            ..Reading::default()
        };
        let now = Reading {
            counts: vec![
                count(Counter::LogBytes, 175),
                count(Counter::Evictions, 3),
                count(Counter::LockWaits, 1),
            ],
            ..Reading::default()
        };
        let mut used = EngineUse::default();
        used.add(&then, now);
        assert_eq!(used.counts, vec![count(Counter::LogBytes, 75)]);
        let missing: Vec<&str> = used.unavailable.iter().map(|one| one.what.as_str()).collect();
        assert_eq!(missing, ["evictions", "lock waits"]);
    }

    #[test]
    fn statements_that_are_shortened_to_one_text_are_one_statement() {
        let statement = |calls| StatementUse {
            text: "FETCH ? FROM c1".to_owned(),
            calls,
            time_ns: 10 * calls,
            cpu_ns: Some(3 * calls),
            rows_examined: None,
            rows: 2 * calls,
        };
        let then = Reading { statements: vec![statement(5), statement(90)], ..Reading::default() };
        let now = Reading { statements: vec![statement(90), statement(6)], ..Reading::default() };
        let mut used = EngineUse::default();
        used.add(&then, now.clone());
        assert_eq!(used.statements, vec![statement(1)]);
        let mut unchanged = EngineUse::default();
        unchanged.add(&now, now.clone());
        assert_eq!(unchanged.statements, vec![]);
    }

    #[test]
    fn statements_count_since_first_reading_sorted_by_time() {
        let statement = |text: &str, calls, time_ns| StatementUse {
            text: text.to_owned(),
            calls,
            time_ns,
            cpu_ns: None,
            rows_examined: Some(calls),
            rows: calls,
        };
        let then = Reading { statements: vec![statement("old", 5, 50)], ..Reading::default() };
        let now = Reading {
            statements: vec![statement("old", 7, 80), statement("new", 1, 90), statement("none", 0, 0)],
            ..Reading::default()
        };
        let mut used = EngineUse::default();
        used.add(&then, now);
        assert_eq!(used.statements, vec![statement("new", 1, 90), statement("old", 2, 30)]);
    }
}
