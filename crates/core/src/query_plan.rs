//! How a database executes a statement, as its `EXPLAIN` says.

use serde::{Deserialize, Serialize};

/// The plan of a statement, in the words of its engine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryPlan {
    /// What the statement is called: the name of its file, or its place in it.
    pub statement: String,
    /// The statement.
    pub text: String,
    /// The lines of the plan. A step begins with `-> `, indented below the step that uses it, and its figures are in
    /// parentheses behind two spaces.
    pub lines: Vec<String>,
}

/// What a step begins with.
pub const STEP: &str = "-> ";

impl QueryPlan {
    /// The steps without their figures, the outermost first.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        let steps = self.lines.iter().filter_map(|line| line.trim_start().strip_prefix(STEP));
        steps.map(|step| step.split("  (").next().unwrap_or(step).trim())
    }

    /// Whether it is executed in the same way as another one, whatever values are in both.
    pub fn is_like(&self, other: &Self) -> bool {
        let shape = |plan: &Self| plan.steps().map(without_numbers).collect::<Vec<_>>();
        shape(self) == shape(other)
    }

    /// The pages that the statement read, from memory and from files, if its engine counts them.
    pub fn pages(&self) -> Option<u64> {
        let line = self.lines.iter().find_map(|line| line.trim_start().strip_prefix("Buffers: "))?;
        let shared = line.strip_prefix("shared ")?.split(',').next()?;
        let read = |part: &str| {
            part.strip_prefix("hit=").or_else(|| part.strip_prefix("read="))?.parse::<u64>().ok()
        };
        Some(shared.split_whitespace().filter_map(read).sum())
    }
}

/// A step with a mark for each run of digits: two plans for different values are the same plan.
fn without_numbers(step: &str) -> String {
    let mut out = String::with_capacity(step.len());
    for c in step.chars() {
        match c {
            c if c.is_ascii_digit() && out.ends_with('#') => {}
            c if c.is_ascii_digit() => out.push('#'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(lines: &[&str]) -> QueryPlan {
        QueryPlan { lines: lines.iter().map(|line| (*line).to_owned()).collect(), ..QueryPlan::default() }
    }

    #[test]
    fn steps_are_compared_without_figures_and_values() {
        let index = plan(&[
            "-> Aggregate  (cost=8.44..8.45 rows=1 width=8)",
            "  Buffers: shared hit=3 read=2, local hit=9",
            "  -> Index Scan using a on t  (cost=0.29..8.31 rows=1 width=4)",
            "        Index Cond: (id = 5)",
        ]);
        let other = plan(&["-> Aggregate  (cost=1..2)", "-> Index Scan using a on t  (cost=3..4)"]);
        let scan = plan(&["-> Aggregate  (cost=8.44..8.45 rows=1 width=8)", "-> Seq Scan on t  (cost=0)"]);
        assert_eq!(index.steps().collect::<Vec<_>>(), ["Aggregate", "Index Scan using a on t"]);
        assert!(index.is_like(&other) && !index.is_like(&scan));
        assert_eq!((index.pages(), scan.pages()), (Some(5), None));
        let of =
            |customer: &str| plan(&[&format!("-> Index lookup on t using k (c={customer})  (cost=0.3)")]);
        assert!(of("51").is_like(&of("7")));
    }
}
