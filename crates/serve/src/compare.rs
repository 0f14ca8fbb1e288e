//! `/compare?run=A&run=B`: two or more runs. The oldest is compared with each other one.

use crate::answer::Response;
use crate::call::Call;
use crate::shared::Shared;
use crate::verdicts::analyse;
use crate::{page, runs};
use kurabe_core::run::Run;
use kurabe_core::sort;
use kurabe_core::{Error, Result};
use kurabe_report::compare::{MAX_RUNS, compare, fragment};
use kurabe_report::{Language, Message};
use maud::{Markup, html};

/// The most runs on one page.
const MAX: usize = 20;

pub(crate) fn page(call: &Call) -> Result<Response> {
    let language = call.language();
    let mut names: Vec<String> =
        call.query().into_iter().filter(|(name, _)| name == "run").map(|(_, run)| run).collect();
    sort::by(&mut names, Ord::cmp);
    names.dedup();
    Ok(page::layout(language, Message::Comparison.text(language), &of_runs(&call.shared, &names, language)?))
}

fn of_runs(shared: &Shared, names: &[String], language: Language) -> Result<Markup> {
    if !(2..=MAX).contains(&names.len()) {
        let message = format!("a comparison is of 2 to {MAX} runs, and {} were chosen", names.len());
        return Err(Error::usage(message).hint("go back, and choose runs in the list"));
    }
    let read = |name: &String| Ok(kurabe_record::read(&runs::find(shared, name)?)?.run);
    let mut all = names.iter().map(read).collect::<Result<Vec<Run>>>()?;
    sort::by_key(&mut all, |run| run.header.began);
    let experiment = |run: &Run| run.header.spec.experiment.clone();
    if let Some(other) = all.iter().find(|run| experiment(run) != experiment(&all[0])) {
        let (first, other) = (&all[0].header, &other.header);
        let message = format!(
            "{} is a run of {}, and {} of {}: they have no results in common",
            first.run, first.spec.experiment, other.run, other.spec.experiment
        );
        return Err(Error::usage(message).hint("choose runs of one experiment"));
    }
    let first = analyse(&all[0]);
    let compared = all[1..].iter().map(|second| {
        let earlier = shared.store.before([&all[0].header, &second.header], MAX_RUNS)?;
        let earlier: Vec<_> = earlier.iter().map(analyse).collect();
        Ok(compare(&first, &analyse(second), &earlier).in_language(language))
    });
    let compared = compared.collect::<Result<Vec<_>>>()?;
    let link = |name: &str| html! { a href={ "/runs/" (page::in_url(name)) } { (name) } };
    Ok(html! {
        @for compared in &compared {
            h2 { (link(&compared.first)) " → " (link(&compared.second)) }
            (fragment(compared))
        }
    })
}
