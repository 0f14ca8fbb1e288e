//! `/new`: a run from a form that is made from the registry of experiments, with the command line that it equals.

use crate::access::FIELD;
use crate::answer::{Response, redirect, text};
use crate::call::Call;
use crate::jobs::Arguments;
use crate::page;
use crate::shared::Shared;
use kurabe_core::axis::AxisInfo;
use kurabe_core::durability::DurabilityClass;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::{Error, Result};
use kurabe_experiments::registry::{self, EXPERIMENTS};
use kurabe_record::Trusted;
use kurabe_report::{Language, Message};
use maud::{Markup, html};

/// Options that every experiment has: name, placeholder, help.
const OPTIONS: [(&str, Message, Message); 4] = [
    ("budget", Message::BudgetDefault, Message::BudgetHelp),
    ("rounds", Message::RoundsDefault, Message::RoundsHelp),
    ("duration", Message::DurationDefault, Message::DurationHelp),
    ("label", Message::LabelDefault, Message::LabelHelp),
];
/// The option with the durability class of writes on every target.
const DURABILITY: &str = "durability";

/// What a form is filled with: names and values, several for a field with choices.
type Filled = [(String, String)];

pub(crate) fn list(language: Language) -> Response {
    let body = html! {
        dl {
            @for experiment in EXPERIMENTS {
                @let info = experiment.info;
                dt { a href={ "/new/" (info.name) } { (info.name) } }
                dd { (info.question) }
            }
        }
        p class="soft" { (page::with_code(language, Message::FormFiles, "kurabe run -f FILE")) }
    };
    page::layout(language, Message::NewRun.text(language), &body)
}

pub(crate) fn page(call: &Call) -> Result<Response> {
    let language = call.language();
    let form = form(&call.shared, find(&call.name)?, &call.query(), language);
    let title = Message::NewRunOf.with(language, &[("experiment", &call.name)]);
    Ok(page::layout(language, &title, &form))
}

/// The experiment, if the form can start it: custom workloads need a file.
fn find(name: &str) -> Result<&'static ExperimentInfo> {
    let known = EXPERIMENTS.iter().any(|experiment| experiment.info.name == name);
    let found = registry::find(name).map(|experiment| experiment.info);
    if known {
        found
    } else {
        Err(found.err().unwrap_or_else(|| Error::usage(format!("{name} has no form"))))
    }
}

fn form(shared: &Shared, info: &ExperimentInfo, filled: &Filled, language: Language) -> Markup {
    let say = |message: Message| message.text(language);
    let or_default = |axis: &AxisInfo| {
        Message::DefaultIs.with(language, &[("help", axis.help), ("value", &default(axis))])
    };
    let unchanged = say(Message::Unchanged);
    let classes = DurabilityClass::ALL.map(|class| (class.name(), class.promise()));
    let durability: Vec<(&str, &str)> = std::iter::once(("", "")).chain(classes).collect();
    html! {
        p class="question" { (info.question) }
        p { (info.about) }
        @let action = format!("/new/{}", info.name);
        form id="new" method="post" action=(action) {
            (shared.access.field(&action))
            div class="fields" {
                label for="targets" { (say(Message::TargetList)) }
                div {
                    input type="text" id="targets" name="targets" list="known"
                        value=(value_in(filled, "targets").unwrap_or("sqlite:")) autocomplete="off";
                    datalist id="known" { @for target in shared.trusted.shown() { option value=(target) {} } }
                    small { (page::with_code(language, Message::TargetsHelp, "up:ENGINE")) }
                }
                @for axis in info.axes {
                    @if axis.kind.numbers.is_none() && axis.kind.text.is_none() {
                        (choices(axis.name, axis.kind.words, [&or_default(axis), unchanged], "checkbox", filled))
                    } @else {
                        (field(axis.name, &default(axis), &help(axis), filled))
                    }
                }
                @for (name, placeholder, help) in OPTIONS { (field(name, say(placeholder), say(help), filled)) }
                (choices(DURABILITY, &durability, [say(Message::DurabilityHelp), unchanged], "radio", filled))
            }
            p { (say(Message::EqualsCommand)) }
            pre id="command" { "kurabe run " (info.name) " sqlite:" }
            p class="meta" id="estimate" role="status" {}
            button class="go" { (say(Message::Start)) }
            " " button name="show" value="1" { (say(Message::ShowCommand)) }
        }
    }
}

/// The first value that a field is filled with.
fn value_in<'a>(filled: &'a Filled, name: &str) -> Option<&'a str> {
    filled.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
}

/// A field with a choice for each word, of which several may be chosen (`checkbox`) or one (`radio`).
fn choices(
    name: &str,
    words: &[(&str, &str)],
    [help, unchanged]: [&str; 2],
    kind: &str,
    filled: &Filled,
) -> Markup {
    let is_chosen = |word: &str| {
        let mut given = filled.iter().filter(|(field, _)| field == name).peekable();
        word.is_empty() && given.peek().is_none()
            || given.any(|(_, value)| value.split(',').any(|one| one.trim() == word))
    };
    html! {
        span class="label" id={ "label-" (name) } { (name) }
        div role="group" aria-labelledby={ "label-" (name) } {
            @for (word, meaning) in words {
                label class="choice" title=(meaning) {
                    input type=(kind) name=(name) value=(word) checked[is_chosen(word)];
                    " " (if word.is_empty() { unchanged } else { word })
                }
            }
            small { (help) }
        }
    }
}

fn field(name: &str, placeholder: &str, help: &str, filled: &Filled) -> Markup {
    html! {
        label for=(name) { (name) }
        div {
            input type="text" id=(name) name=(name) placeholder=(placeholder) autocomplete="off"
                value=[value_in(filled, name)];
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
fn arguments(info: &ExperimentInfo, form: &Filled, trusted: &Trusted) -> Result<Arguments> {
    let mut all = Arguments::new(["run", info.name]);
    // Each choice comes on its own.
    let mut fields: Vec<(&str, String)> = Vec::new();
    for (name, value) in form.iter().map(|(name, value)| (name.as_str(), value.trim())) {
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) if info.axes.iter().any(|axis| axis.name == name) => {
                all.push(',');
                all.push_str(value);
            }
            _ => fields.push((name, value.to_owned())),
        }
    }
    for (name, value) in &fields {
        let (name, value) = (*name, value.as_str());
        let axis = info.axes.iter().find(|axis| axis.name == name);
        match (name, axis) {
            (_, _) if value.is_empty() => {}
            ("targets", _) => {
                for target in value.split_whitespace() {
                    all.push_url(trusted.target(target)?);
                }
            }
            (_, Some(axis)) => {
                for text in axis.list(value) {
                    trusted.check_value(axis, &axis.parse(text.trim())?)?;
                }
                all.push(&format!("--{name}={value}"));
            }
            (_, None) if name == DURABILITY || OPTIONS.iter().any(|(known, ..)| *known == name) => {
                all.push(&format!("--{name}={value}"));
            }
            ("show" | "estimate" | FIELD, None) => {}
            (_, None) => return Err(Error::usage(format!("the form has no field '{name}'"))),
        }
    }
    Ok(all)
}

pub(crate) fn start(call: &Call) -> Result<Response> {
    let (form, shared) = (call.form(), &call.shared);
    let mut arguments = arguments(find(&call.name)?, &form, &shared.trusted)?;
    if form.iter().any(|(name, _)| name == "show") {
        return Ok(text(arguments.command_line()));
    }
    if form.iter().any(|(name, _)| name == "estimate") {
        arguments.push("--dry-run");
        return Ok(text(shared.jobs.plan(&arguments)?));
    }
    arguments.push("--log-format=json");
    let job = shared.jobs.start(&arguments)?;
    Ok(redirect(&format!("/jobs/{job}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_experiment(experiment: &str, fields: &[(&str, &str)]) -> Result<Vec<String>> {
        let form: Vec<_> = fields.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let known = vec!["sqlite:".to_owned(), "up:postgres".to_owned()];
        let trusted = Trusted::new(known, "/nonexistent".into(), false, "");
        arguments(find(experiment)?, &form, &trusted).map(|arguments| arguments.shown().to_vec())
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
            ("layout", "blob"),
            ("layout", "rows"),
            (FIELD, "0123"),
            ("budget", "5s"),
        ]);
        assert_eq!(
            filled.unwrap(),
            [
                "run", "session", "sqlite:", "up:postgres", "--payload=1k,10k", "--layout=blob,rows",
                "--budget=5s"
            ]
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
