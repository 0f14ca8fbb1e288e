//! Custom workloads: experiments that are read from files, in Kurabe's own language or in pgbench's.
//!
//! `read` and `script` both produce `declared::Declared`; `workload` and `transaction` run it.

mod check;
mod datum;
mod declared;
mod drawn;
mod draws;
mod evaluate;
mod expression;
mod functions;
mod known;
mod lines;
mod random;
mod read;
pub(crate) mod reads;
mod relations;
mod request;
pub(crate) mod rows;
mod script;
mod section;
mod shared;
mod slot;
mod sql;
mod steps;
mod targets;
mod transaction;
mod types;
mod variables;
mod workload;

use crate::axes::{CLIENTS, CONNECTION};
use crate::prelude::*;
use declared::Described;
use known::Known;
use kurabe_core::custom::{CustomWorkload, Language};
use std::sync::{Mutex, PoisonError};

pub(crate) use random::zipf;
pub use read::{KEYS, value_files};
pub use script::{BUILTIN, counts_scale};
pub(crate) use section::position;

/// The measured operation: one whole transaction with all its steps.
const TRANSACTION: &str = "transaction";
/// Default number of requests: more than most trials reach.
const REQUESTS: u64 = 1_000_000;

const STATEMENT: AxisInfo = AxisInfo {
    kind: AxisKind::choice(&[
        ("once", "once for each connection"),
        ("per-request", "for every request"),
        ("literal", "never: values are put into the text as they are, as with pgbench -M simple"),
    ]),
    ..crate::axes::STATEMENT
};
static AXES: [AxisInfo; 3] = [
    CLIENTS,
    STATEMENT,
    AxisInfo {
        kind: AxisKind::choice(&[
            ("kept", "each client keeps its own"),
            ("per-request", "opened and closed for every transaction"),
        ]),
        ..CONNECTION
    },
];

/// The axes of every custom workload.
pub fn axes() -> &'static [AxisInfo] {
    &AXES
}

/// The experiments read so far. They are few and live as long as the program, as built-in ones do.
static MADE: Mutex<Vec<(CustomWorkload, &'static Experiment)>> = Mutex::new(Vec::new());

/// The experiment that a workload's files describe, or that replays a capture.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) with the file, the place in it and the cause.
pub fn experiment(source: &CustomWorkload) -> Result<&'static Experiment> {
    let made = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = made().iter().find(|(known, _)| known == source).map(|(_, experiment)| *experiment);
    if let Some(known) = known {
        return Ok(known);
    }
    let new = match source.language {
        Language::Capture => crate::replay::experiment(source)?,
        Language::Query => crate::query::experiment(source)?,
        Language::Toml | Language::Pgbench => of(source)?,
    };
    let new: &'static Experiment = Box::leak(Box::new(new));
    made().push((source.clone(), new));
    Ok(new)
}

/// The experiment that a workload's files describe.
fn of(source: &CustomWorkload) -> Result<Experiment> {
    let Described { name, question, about, declared } = describe(source)?;
    let all: u64 = declared.programs.iter().map(|program| program.weight).sum();
    let part = |program: &declared::Program| format!("{} ({} of {all})", program.name, program.weight);
    let parts = declared.programs.iter().map(part).collect::<Vec<_>>().join(", ");
    let writes = declared.programs.iter().flat_map(|program| &program.steps).any(|step| match step {
        declared::Step::Execute(execute) => execute.request.writes(),
        _ => false,
    });
    let operations =
        vec![OperationInfo { name: TRANSACTION, about: parts.leak(), requests: REQUESTS, writes }];
    let info = ExperimentInfo {
        name: name.leak(),
        question: question.leak(),
        about: about.leak(),
        axes: &AXES,
        operations: operations.leak(),
        metrics: types::metrics(&declared.programs).leak(),
        ..ExperimentInfo::BASE
    };
    let declared = Arc::new(declared);
    let plan = move |cell: &Cell, dataset: &Dataset| workload::CustomCell::plan(&declared, cell, dataset);
    Ok(Experiment::new(Box::leak(Box::new(info)), Box::leak(Box::new(plan))))
}

/// Parses a workload's files and checks what does not depend on random values.
fn describe(source: &CustomWorkload) -> Result<Described> {
    let described = match source.language {
        Language::Toml => read::read(source)?,
        Language::Pgbench => script::read(source)?,
        Language::Capture | Language::Query => return Err(Error::usage("this is no workload of statements")),
    };
    let Described { name, declared, .. } = &described;
    if declared.programs.is_empty() {
        return Err(Error::usage(format!("{name}: the workload has no transaction")));
    }
    let known = Known::of(declared, &declared.variables.initial);
    for made in declared.relations.iter().filter_map(|relation| relation.made.as_ref()) {
        known.rows(&made.rows).map_err(|error| error.context(&made.place))?;
    }
    known.check(declared)?;
    Ok(described)
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use kurabe_core::custom::CustomFile;
    use std::collections::BTreeMap;

    /// Words of both languages; a byte above 127 of the input stands for one.
    const WORDS: &[&str] = &[
        "[transaction.a]\n", "steps = [\n", "]\n", "{ ", " }", ", ", " = ", "'", "\"", "sql = ",
        "\"SELECT :id\"", "[transaction.a.draw]\n", "id = ", "uniform = [1, 10]\n", "[variables]\n",
        "[collection.rows]\n", "rows = ", "key = ", "fields = ", "[table.t]\n", "weight = ",
        "9223372036854775807", "-1", "get = ", "keep = ", "if = ", "retry = ", "file = ",
        "\\set id random(1, 10)\n", "\\if :id\n", "\\elif\n", "\\else\n", "\\endif\n", "\\gset\n",
        "\\sleep 1 us\n", "\\startpipeline\n", "SELECT 1;\n", "BEGIN;\n", "END;\n", "$$", "/*", "--", ":id",
        "1 / 0",
    ];

    /// The input is text, in which words may stand.
    fn text(input: &[u8]) -> String {
        let spelled = |byte: &u8| match usize::from(*byte).checked_sub(128) {
            Some(number) => WORDS[number % WORDS.len()].to_owned(),
            None => char::from(*byte).to_string(),
        };
        input.iter().map(spelled).collect()
    }

    #[test]
    fn any_text_is_a_workload_or_an_error() {
        bolero::check!(name = "workloads").for_each(|input: &[u8]| {
            let text = text(input);
            let _ = value_files(&text);
            for language in [Language::Toml, Language::Pgbench] {
                let files = vec![CustomFile { name: "a".to_owned(), text: text.clone(), weight: 1 }];
                let define = [("id".to_owned(), "1".to_owned())].into();
                for define in [BTreeMap::new(), define] {
                    let files = files.clone();
                    let _ = describe(&CustomWorkload {
                        language,
                        files,
                        define,
                        scale: None,
                        max_tries: Some(2),
                        init: true,
                        write: true,
                    });
                }
            }
        });
    }
}
