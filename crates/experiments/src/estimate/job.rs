//! The job: explain each query, and compare the estimates with the counted rows.

use super::data::{State, Table};
use super::info::{ESTIMATED, EXPLAIN, MEDIAN, P95, PLANNING, WORST};
use crate::prelude::*;
use kurabe_core::driver::RowEstimate;
use kurabe_core::job::{Ended, Job, JobContext};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What is estimated.
pub(super) enum Source {
    /// A generated table, and the kind of data on which conditions are.
    Generated(Table, String),
    /// A query of the user, and the query that counts its rows.
    Own(Box<[Operation; 2]>),
}

pub(super) struct Estimating(Source);

/// The queries of each kind of data on a dataset, with their rows.
#[derive(Default)]
struct Counted {
    /// Of the last draw of the rows.
    by_data: HashMap<String, Vec<Query>>,
    /// The number of draws before it.
    draw: u64,
    /// The rows of the generated table.
    rows: u64,
}

/// A query, and the rows that the server counts for it.
struct Query {
    select: Operation,
    rows: u64,
}

impl Estimating {
    pub(super) fn generated(table: Table, data: &str) -> Self {
        Self(Source::Generated(table, data.to_owned()))
    }

    pub(super) fn own(select: Operation, count: Operation) -> Self {
        Self(Source::Own(Box::new([select, count])))
    }

    /// The kind of data on which conditions are; empty for a table of the user.
    fn data(&self) -> &str {
        match &self.0 {
            Source::Generated(_, data) => data,
            Source::Own(_) => "",
        }
    }
}

/// Has the server count the rows of each condition, and compares that with the generated rows.
fn count_generated(
    table: &Table,
    data: &str,
    rows: &[super::data::Row],
    session: &mut dyn Session,
) -> Result<Vec<Query>> {
    let count = |condition: super::data::Condition| {
        let (found, expected) = (count_rows(session, &table.count(&condition))?, condition.count(rows));
        if found != expected {
            let clause = condition.where_clause();
            return Err(Error::mismatch(format!(
                "the server counts {found} rows{clause}, expected {expected}"
            )));
        }
        Ok(Query { select: table.select(&condition), rows: found })
    };
    table.conditions(data, rows).into_iter().map(count).collect()
}

fn count_rows(session: &mut dyn Session, count: &Operation) -> Result<u64> {
    let prepared = session.prepare(count)?;
    let mut reply = Reply::new();
    session.execute(&prepared, &[], &mut reply)?;
    session.release(prepared)?;
    let rows = reply.field_int(0, 0).and_then(|rows| u64::try_from(rows).ok());
    rows.ok_or_else(|| Error::mismatch("the server's count is not a number"))
}

/// The factor between an estimate and the truth, in either direction; at least one row counts on both sides.
///
/// Estimates are rounded to whole rows: some servers multiply a share by rows, and 710.99997 rows are 711.
///
/// Moerkotte, Neumann and Steidl, "Preventing Bad Plans by Bounding the Impact of Cardinality Estimation Errors",
/// PVLDB 2(1), 2009, section 2.
fn q_error(estimated: f64, counted: f64) -> f64 {
    let (estimated, counted) = (estimated.round().max(1.0), counted.max(1.0));
    (estimated / counted).max(counted / estimated)
}

/// The quantile by the nearest rank; `None` without values.
fn quantile(values: &mut [f64], share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied()
}

impl Job for Estimating {
    fn load(&self, namespace: &mut dyn Namespace, session: &mut dyn Session) -> Result<DatasetState> {
        if let Source::Generated(table, _) = &self.0 {
            table.load(namespace, session)?;
        }
        Ok(DatasetState::new(Counted::default()))
    }

    fn before(&self, Before { state, namespace, session, .. }: Before<'_>) -> Result<()> {
        let counted = state.get_mut::<Counted>()?;
        match &self.0 {
            Source::Generated(table, data) => {
                // Estimates for the same rows and conditions again would be no other sample.
                if counted.by_data.contains_key(data) {
                    counted.by_data.clear();
                    counted.draw += 1;
                    table.draw(counted.draw).load(namespace, session)?;
                }
                let table = table.draw(counted.draw);
                if table.state != State::Stale {
                    table.analyse(namespace)?;
                }
                let rows = table.rows();
                counted.rows = rows.len() as u64;
                counted.by_data.insert(data.clone(), count_generated(&table, data, &rows, session)?);
            }
            // Counted by the job: only its session reads a user's table.
            Source::Own(_) => {}
        }
        Ok(())
    }

    fn run(&self, _operation: &str, state: &DatasetState, context: &mut JobContext<'_>) -> Result<()> {
        let session = context.session("planner")?;
        let own = match &self.0 {
            Source::Own(queries) => {
                let [select, count] = &**queries;
                vec![Query { select: select.clone(), rows: count_rows(session, count)? }]
            }
            Source::Generated(..) => Vec::new(),
        };
        let counted = state.get::<Counted>()?.by_data.get(self.data());
        let queries = counted.map_or(&own[..], Vec::as_slice);
        // The first plan of a session reads the catalogue.
        if let Some(first) = queries.first() {
            session.estimate(&first.select, &[])?;
        }
        let (mut errors, mut times, mut plannings) = (Vec::new(), Vec::new(), Vec::new());
        for Query { select, rows } in queries {
            let began = Instant::now();
            let RowEstimate { rows: estimated, planning } =
                context.session("planner")?.estimate(select, &[])?;
            times.push(began.elapsed().as_nanos() as f64);
            plannings.extend(planning.as_ref().map(Duration::as_nanos).map(|ns| ns as f64));
            errors.push(q_error(estimated, *rows as f64));
            context.point(ESTIMATED.name, *rows as f64, estimated);
            context.work(1, 0)?;
        }
        for (metric, values, share) in [
            (MEDIAN, &mut errors.clone(), 0.5),
            (P95, &mut errors.clone(), 0.95),
            (WORST, &mut errors, 1.0),
            (EXPLAIN, &mut times, 0.5),
            (PLANNING, &mut plannings, 0.5),
        ] {
            if let Some(value) = quantile(values, share) {
                context.sample(metric.name, metric.unit, value);
            }
        }
        Ok(())
    }

    /// The counted rows were compared before the trial. The table must still have all of its rows.
    fn verify(&self, Ended { state, session, .. }: Ended<'_>) -> Result<Checked> {
        let Source::Generated(table, _) = &self.0 else { return Ok(Checked::default()) };
        table.check_count(session, state.get::<Counted>()?.rows)?;
        Ok(Verification { answers: 1, ..Verification::default() }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_error_is_a_factor_in_either_direction() {
        for (estimated, counted, factor) in [
            (10.0, 10.0, 1.0),
            (20.0, 10.0, 2.0),
            (10.0, 20.0, 2.0),
            (0.0, 0.0, 1.0),
            (0.2, 5.0, 5.0),
            (710.999_97, 711.0, 1.0),
        ] {
            assert!((q_error(estimated, counted) - factor).abs() < 1e-12, "{estimated} {counted}");
        }
    }

    #[test]
    fn quantiles_are_values_of_the_sample() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut values, 0.5), Some(50.0));
        assert_eq!(quantile(&mut values, 0.95), Some(95.0));
        assert_eq!(quantile(&mut values, 1.0), Some(100.0));
        assert_eq!(quantile(&mut [3.0], 0.5), Some(3.0));
        assert_eq!(quantile(&mut [], 0.5), None);
    }
}
