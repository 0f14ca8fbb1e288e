//! The question of a run: what is compared, and within what.

use crate::error::{Error, Result};
use crate::units;
use serde::{Deserialize, Serialize};

/// The word for the targets in [`Question::compare`] and [`Question::within`].
pub const TARGETS: &str = "targets";

/// What a run compares. The intervals of exactly these comparisons hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Compared: [`TARGETS`] with each other; the values of an axis with its first one.
    pub compare: Vec<String>,
    /// Axes at each combination of whose values the comparisons are made. All other axes have their first value.
    pub within: Vec<String>,
}

/// An axis with several values, as far as the question of its run depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Varying<'a> {
    pub name: &'a str,
    /// Whether the user named its values.
    pub named: bool,
    /// Whether charts show it horizontally.
    pub chart: bool,
    /// Whether a metric of the experiment is a difference along it.
    pub own: bool,
}

impl Question {
    /// The question of these targets and axes: several targets are compared with each other, at every value of the axes
    /// that the user named. With one target, the values of these axes are compared, or of all if the user named none, or those along
    /// a chart if there are no others. What an experiment asks itself is compared in any case.
    pub fn by_default(targets: usize, axes: &[Varying<'_>]) -> Self {
        let several = targets > 1;
        let names = |holds: &dyn Fn(&Varying<'_>) -> bool| {
            axes.iter().filter(|axis| holds(axis)).map(|axis| axis.name.to_owned()).collect::<Vec<_>>()
        };
        let asked = |axis: &Varying<'_>| axis.named && !axis.chart;
        let any = axes.iter().any(asked);
        let of_others = |axis: &Varying<'_>| !axis.chart && (axis.own || !several && (asked(axis) || !any));
        let along_chart = !several && !axes.iter().any(of_others);
        let compared = |axis: &Varying<'_>| of_others(axis) || along_chart && axis.chart;
        let compare = several.then(|| TARGETS.to_owned()).into_iter().chain(names(&compared)).collect();
        Self { compare, within: names(&|axis| !compared(axis) && (axis.named || axis.chart)) }
    }

    /// The same targets and axes, with other comparisons: axes by name, or [`TARGETS`].
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) if there is no such axis, or nothing to compare in it.
    pub fn comparing(self, compare: &[&str], targets: usize, axes: &[Varying<'_>]) -> Result<Self> {
        let mut all: Vec<&str> = axes.iter().map(|axis| axis.name).collect();
        all.extend((targets > 1).then_some(TARGETS));
        for name in compare {
            if !all.contains(name) {
                return Err(Error::usage(format!("--compare {name}: it has not several values in this run"))
                    .hint(units::suggestion(name, &all, "compare one of")));
            }
        }
        let is_in = |axis: &&Varying<'_>| !compare.contains(&axis.name) && (axis.named || axis.chart);
        let within = axes.iter().filter(is_in).map(|axis| axis.name.to_owned()).collect();
        Ok(Self { compare: compare.iter().map(|name| (*name).to_owned()).collect(), within })
    }

    /// What is compared, as a clause: `targets with each other, at each value of payload and clients`.
    pub fn words(&self) -> String {
        let names = |names: &[String]| names.join(" and ");
        let axes: Vec<String> = self.compare.iter().filter(|name| *name != TARGETS).cloned().collect();
        let targets = self.compares_targets().then(|| "targets with each other".to_owned());
        let axes = (!axes.is_empty()).then(|| format!("each value of {} with the first", names(&axes)));
        let all: Vec<String> = targets.into_iter().chain(axes).collect();
        let within = if self.within.is_empty() {
            String::new()
        } else {
            format!(", at each value of {}", names(&self.within))
        };
        if all.is_empty() { "nothing".to_owned() } else { names(&all) + &within }
    }

    /// Whether targets are compared with each other.
    pub fn compares_targets(&self) -> bool {
        self.compare.iter().any(|name| name == TARGETS)
    }

    /// Whether the values of this axis are compared.
    pub fn compares(&self, axis: &str) -> bool {
        self.compare.iter().any(|name| name == axis)
    }

    /// Whether comparisons are made at each value of this axis.
    pub fn is_within(&self, axis: &str) -> bool {
        self.within.iter().any(|name| name == axis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(name: &str, named: bool, chart: bool) -> Varying<'_> {
        Varying { name, named, chart, own: false }
    }

    fn question(compare: &[&str], within: &[&str]) -> Question {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Question { compare: owned(compare), within: owned(within) }
    }

    #[test]
    fn targets_are_compared_at_every_value_of_the_named_axes() {
        let axes = [axis("payload", false, true), axis("layout", false, false), axis("clients", true, false)];
        assert_eq!(Question::by_default(3, &axes), question(&["targets"], &["payload", "clients"]));
        assert_eq!(Question::by_default(1, &axes), question(&["clients"], &["payload"]));
        let unnamed = [axis("payload", false, true), axis("layout", false, false)];
        assert_eq!(Question::by_default(1, &unnamed), question(&["layout"], &["payload"]));
        assert_eq!(Question::by_default(1, &unnamed[..1]), question(&["payload"], &[]));
        let own = Varying { own: true, ..axis("connection", false, false) };
        assert_eq!(Question::by_default(2, &[own]), question(&["targets", "connection"], &[]));
    }

    #[test]
    fn other_comparisons_are_of_what_varies() {
        let axes = [axis("payload", false, true), axis("clients", true, false)];
        let of = |compare: &[&str], targets| {
            Question::by_default(targets, &axes).comparing(compare, targets, &axes)
        };
        assert_eq!(of(&["clients"], 2).unwrap(), question(&["clients"], &["payload"]));
        assert_eq!(of(&["payload", "targets"], 2).unwrap(), question(&["payload", "targets"], &["clients"]));
        let error = of(&["client"], 2).unwrap_err().to_string();
        assert!(error.contains("'clients'"), "{error}");
        assert!(of(&["targets"], 1).is_err());
    }
}
