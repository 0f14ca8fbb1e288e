//! `/compare?run=A&run=B`: two or more runs. The oldest is compared with each other one.

use crate::failure::{Answer, blocking};
use crate::{Shared, page, runs};
use axum::extract::{RawQuery, State};
use kurabe_core::run::Run;
use kurabe_core::{Error, Result};
use kurabe_report::compare::{compare, fragment};
use maud::{Markup, html};
use std::sync::Arc;

/// The most runs on one page.
const MAX: usize = 20;

pub(crate) async fn page(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Answer {
    let query = runs::pairs(query.unwrap_or_default().as_bytes());
    let mut names: Vec<String> =
        query.into_iter().filter(|(name, _)| name == "run").map(|(_, run)| run).collect();
    names.sort();
    names.dedup();
    let body = blocking(move || of_runs(&shared, &names)).await?;
    Ok(page::layout("Comparison", &body))
}

fn of_runs(shared: &Shared, names: &[String]) -> Result<Markup> {
    if !(2..=MAX).contains(&names.len()) {
        let message = format!("a comparison is of 2 to {MAX} runs, and {} were chosen", names.len());
        return Err(Error::usage(message).hint("go back, and choose runs in the list"));
    }
    let read = |name: &String| Ok(kurabe_record::read(&runs::find(shared, name)?)?.run);
    let mut all = names.iter().map(read).collect::<Result<Vec<Run>>>()?;
    all.sort_by_key(|run| run.header.began);
    let experiment = |run: &Run| run.header.spec.experiment.clone();
    if let Some(other) = all.iter().find(|run| experiment(run) != experiment(&all[0])) {
        let (first, other) = (&all[0].header, &other.header);
        let message = format!(
            "{} is a run of {}, and {} of {}: they have no results in common",
            first.run, first.spec.experiment, other.run, other.spec.experiment
        );
        return Err(Error::usage(message).hint("choose runs of one experiment"));
    }
    let summaries: Vec<_> = all.iter().map(runs::analyse).collect();
    let link = |name: &str| html! { a href={ "/runs/" (runs::in_url(name)) } { (name) } };
    Ok(html! {
        @for second in &summaries[1..] {
            h2 { (link(&summaries[0].run)) " → " (link(&second.run)) }
            (fragment(&compare(&summaries[0], second)))
        }
    })
}
