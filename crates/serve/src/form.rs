//! `/new`: a run from a form that is made from the registry of experiments, with the command line that it equals.

use crate::access::FIELD;
use crate::failure::{Answer, blocking};
use crate::targets::Targets;
use crate::{Shared, jobs, page, runs};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use kurabe_core::axis::AxisInfo;
use kurabe_core::experiment::{Experiment, ExperimentInfo};
use kurabe_core::{Error, Result};
use kurabe_experiments::registry::{self, EXPERIMENTS};
use maud::{Markup, html};
use std::path;
use std::sync::Arc;

/// Options that every experiment has: name, placeholder, help.
const OPTIONS: [(&str, &str, &str); 5] = [
    ("budget", "20s per target", "Approximate duration of the whole run"),
    ("rounds", "6, or up to 16", "How often to measure each cell"),
    ("duration", "as the budget allows", "Duration of each trial's measured phase"),
    ("label", "none", "A label of the run, such as main, by which gates find it"),
    (
        "durability",
        "unchanged",
        "Durability class of writes on every target: memory, os-cache, periodic-sync, synced, replicated",
    ),
];

pub(crate) async fn list() -> Response {
    let body = html! {
        dl {
            @for experiment in EXPERIMENTS {
                @let info = experiment.info();
                dt { a href={ "/new/" (info.name) } { (info.name) } }
                dd { (info.question) }
            }
        }
        p class="soft" { "Suites, custom workloads and scripts of pgbench are files: start them with " code { "kurabe run -f FILE" } "." }
    };
    page::layout("New run", &body)
}

pub(crate) async fn page(State(shared): State<Arc<Shared>>, Path(name): Path<String>) -> Answer {
    let info = find(&name)?;
    Ok(page::layout(&format!("New run of {name}"), &form(&shared, info)))
}

/// The experiment, if the form can start it: custom workloads need a file.
fn find(name: &str) -> Result<&'static ExperimentInfo> {
    let known = EXPERIMENTS.iter().any(|experiment| experiment.info().name == name);
    let found = registry::find(name).map(Experiment::info);
    if known {
        found
    } else {
        Err(found.err().unwrap_or_else(|| Error::usage(format!("{name} has no form"))))
    }
}

fn form(shared: &Shared, info: &ExperimentInfo) -> Markup {
    html! {
        p class="question" { (info.question) }
        p { (info.about) }
        @let action = format!("/new/{}", info.name);
        form id="new" method="post" action=(action) {
            (shared.access.field(&action))
            div class="fields" {
                label for="targets" { "targets" }
                div {
                    input type="text" id="targets" name="targets" value="sqlite:" list="known" autocomplete="off";
                    datalist id="known" { @for target in shared.targets.shown() { option value=(target) {} } }
                    small {
                        "Separated by spaces: the targets with which the page was started, " code { "up:ENGINE" } " for a throwaway server, "
                        "or " code { "sqlite:FILE" } " in the folder of runs. A password in a URL is not recorded."
                    }
                }
                @for axis in info.axes { (field(axis.name, &default(axis), &help(axis))) }
                @for (name, placeholder, help) in OPTIONS { (field(name, placeholder, help)) }
            }
            p { "It equals the command" }
            pre id="command" { "kurabe run " (info.name) " sqlite:" }
            button class="go" { "Start" }
            " " button name="show" value="1" { "Show the command only" }
        }
    }
}

fn field(name: &str, placeholder: &str, help: &str) -> Markup {
    html! {
        label for=(name) { (name) }
        div {
            input type="text" id=(name) name=(name) placeholder=(placeholder) autocomplete="off";
            small { (help) }
        }
    }
}

fn default(axis: &AxisInfo) -> String {
    if axis.default.is_empty() { "none".to_owned() } else { axis.default.join(",") }
}

fn help(axis: &AxisInfo) -> String {
    let words: Vec<String> =
        axis.kind.words.iter().map(|(word, meaning)| format!("{word} ({meaning})")).collect();
    if words.is_empty() { axis.help.to_owned() } else { format!("{}: {}", axis.help, words.join(", ")) }
}

/// The arguments of `kurabe` for a filled form. Targets and values of axes are checked; the program checks all others.
fn arguments(
    info: &ExperimentInfo,
    form: &[(String, String)],
    targets: &Targets,
    folder: &path::Path,
) -> Result<Vec<String>> {
    let mut all = vec!["run".to_owned(), info.name.to_owned()];
    for (name, value) in form.iter().map(|(name, value)| (name.as_str(), value.trim())) {
        let axis = info.axes.iter().find(|axis| axis.name == name);
        match (name, axis) {
            (_, _) if value.is_empty() => {}
            ("targets", _) => {
                for target in value.split_whitespace() {
                    all.push(targets.find(target, folder)?);
                }
            }
            (_, Some(axis)) => {
                for text in axis.list(value) {
                    let value = axis.parse(text.trim())?;
                    if !targets.any() && axis.names_file(&value) {
                        return Err(Error::usage(format!("--{name}: a form of this page names no files"))
                            .hint("start the page with --allow-any-target, or the run with kurabe run"));
                    }
                }
                all.push(format!("--{name}={value}"));
            }
            (_, None) if OPTIONS.iter().any(|(known, ..)| *known == name) => {
                all.push(format!("--{name}={value}"));
            }
            ("show" | FIELD, None) => {}
            (_, None) => return Err(Error::usage(format!("the form has no field '{name}'"))),
        }
    }
    Ok(all)
}

pub(crate) async fn start(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
    body: Bytes,
) -> Answer<Response> {
    let form = runs::pairs(&body);
    let mut arguments = arguments(find(&name)?, &form, &shared.targets, shared.store.dir())?;
    if form.iter().any(|(name, _)| name == "show") {
        return Ok(jobs::command_line(&arguments).into_response());
    }
    arguments.push("--log-format=json".to_owned());
    let job = blocking(move || shared.jobs.start(&arguments)).await?;
    Ok(Redirect::to(&format!("/jobs/{job}")).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_experiment(experiment: &str, fields: &[(&str, &str)]) -> Result<Vec<String>> {
        let form: Vec<_> = fields.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let targets = Targets::new(vec!["sqlite:".to_owned(), "up:postgres".to_owned()], false);
        arguments(find(experiment)?, &form, &targets, path::Path::new("/nonexistent"))
    }

    fn of(fields: &[(&str, &str)]) -> Result<Vec<String>> {
        of_experiment("session", fields)
    }

    #[test]
    fn form_names_no_file() {
        assert!(of_experiment("webapp", &[("postal-codes", "auto,100")]).is_ok());
        assert!(of_experiment("webapp", &[("postal-codes", "/etc/passwd")]).is_err());
    }

    #[test]
    fn filled_fields_are_options() {
        let filled = of(&[
            ("targets", "sqlite:  up:postgres"),
            ("payload", "1k,10k"),
            ("clients", ""),
            (FIELD, "0123"),
            ("budget", "5s"),
        ]);
        assert_eq!(
            filled.unwrap(),
            ["run", "session", "sqlite:", "up:postgres", "--payload=1k,10k", "--budget=5s"]
        );
    }

    #[test]
    fn wrong_values_are_refused_before_a_process_starts() {
        for fields in [
            [("payload", "much")],
            [("targets", "--runs-dir=/")],
            [("targets", "sqlite:/x")],
            [("runs-dir", "/")],
        ] {
            assert!(of(&fields).is_err(), "{fields:?}");
        }
        assert!(find("nosuch").is_err());
    }
}
