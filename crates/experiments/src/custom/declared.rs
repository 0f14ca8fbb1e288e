//! A parsed workload of any language: its collections, its variables and the steps of its transactions.

use super::expression::Expr;
use super::request::{Execute, Request};
use super::rows::Generator;
use super::section::position;
use super::variables::{Constant, Variables};
use crate::prelude::*;
use kurabe_core::driver::Access;

/// The content of a file: a workload with its name and what it is about.
pub(super) struct Described {
    pub(super) name: String,
    pub(super) question: String,
    pub(super) about: String,
    pub(super) declared: Declared,
}

#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) relations: Vec<Relation>,
    pub(super) variables: Variables,
    pub(super) programs: Vec<Program>,
    /// What the statements of its transactions may do.
    pub(super) access: Access,
    /// Whether it is read for values that are put into the text, where variables within quotes are variables too.
    pub(super) in_quotes: bool,
    /// Why its statements cannot be prepared, if they cannot.
    pub(super) unpreparable: Option<Error>,
    /// The same workload, for values that are put into the text.
    pub(super) simple: Option<Arc<Declared>>,
}

impl Declared {
    /// Decides whether the sessions of the transactions only read: they do if some statement of the user must, and no
    /// step may change anything. `hint` says how to allow a statement that is not known to read beside steps that do.
    pub(super) fn decide_access(&mut self, hint: &str) -> Result<()> {
        let steps = self.programs.iter_mut().flat_map(|program| &mut program.steps);
        let mut executes: Vec<&mut Box<Execute>> = Vec::new();
        for step in steps {
            if let Step::Execute(execute) = step {
                executes.push(execute);
            }
        }
        let must_read = |execute: &Execute| matches!(&execute.request, Request::Raw(raw) if raw.must_read);
        if !executes.iter().any(|execute| must_read(execute)) {
            return Ok(());
        }
        let writes = executes.iter().any(|execute| !must_read(execute) && execute.request.writes());
        for execute in executes {
            let Request::Raw(raw) = &mut execute.request else { continue };
            if let Some(why) = raw.may_change.take_if(|_| raw.must_read).filter(|_| writes) {
                let what = "this statement may change data, and the sessions of this workload write to its collections";
                return Err(Error::usage(format!("{what}: {why}")).context(&execute.place).hint(hint));
            }
        }
        if !writes {
            self.access = Access::ReadOnly;
        }
        Ok(())
    }

    /// The number of a collection or table; `what` is what the name must be of.
    pub(super) fn relation(&self, name: &str, what: &str) -> Result<usize> {
        let names: Vec<&str> = self.relations.iter().map(|relation| relation.name.as_str()).collect();
        position(name, &names, what)
    }
}

/// A collection that is made for the run, or an existing table.
#[derive(Debug, Default)]
pub(super) struct Relation {
    /// Its name in the file; for an existing table, its name on the server.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    pub(super) key: Vec<usize>,
    pub(super) indexes: Vec<Vec<usize>>,
    /// How its rows are generated, by field; `None` for an existing table.
    pub(super) made: Option<Made>,
    pub(super) write: bool,
    /// The fields that some transaction changes.
    pub(super) changed: Vec<bool>,
    /// Whether rows are replaced or removed, or changed by a statement with unknown effect. Then no row can be
    /// checked against its generated content.
    pub(super) disturbed: bool,
    pub(super) traffic: Traffic,
}

/// Whether transactions insert or delete rows of a collection. If they do, it is filled again for each trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Traffic {
    #[default]
    None,
    /// The server reports how many.
    Counted,
    /// They do, and the number is unknown.
    Unknown,
}

/// How the rows of a collection are generated.
#[derive(Debug)]
pub(super) struct Made {
    /// The number of rows, as an expression over variables.
    pub(super) rows: Expr,
    pub(super) generators: Vec<Generator>,
    /// The variable that holds the number of rows.
    pub(super) place: String,
}

impl Relation {
    pub(super) fn new(name: String, fields: Vec<Field>, key: Vec<usize>, made: Option<Made>) -> Self {
        let (write, changed) = (made.is_some(), vec![false; fields.len()]);
        Self { name, fields, key, made, write, changed, ..Self::default() }
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.fields.iter().map(|field| field.name).collect()
    }

    /// Records that rows are inserted or deleted, and whether their number is known.
    pub(super) fn note_traffic(&mut self, counted: bool) {
        if !counted {
            self.traffic = Traffic::Unknown;
        } else if self.traffic == Traffic::None {
            self.traffic = Traffic::Counted;
        }
    }

    /// The key of the first row, if keys are consecutive numbers.
    pub(super) fn first_key(&self) -> Option<i64> {
        let [key] = self.key.as_slice() else { return None };
        match self.made.as_ref()?.generators.get(*key)? {
            Generator::Sequence(first) => Some(*first),
            _ => None,
        }
    }

    /// The collection on the target with this number.
    pub(super) fn collection(&self, slot: usize) -> Arc<Collection> {
        let name =
            if self.made.is_some() { format!("kurabe_{slot}_{}", self.name) } else { self.name.clone() };
        let mut collection = Collection::new(name, self.fields.clone(), self.key.clone());
        collection.indexes.clone_from(&self.indexes);
        Arc::new(collection)
    }
}

/// How a variable gets its value.
#[derive(Debug)]
pub(super) enum Source {
    Expression(Expr),
    /// One of these values, with the sums of their weights up to each; without any, all are equally likely.
    List(Vec<Constant>, Vec<u64>),
    /// Unique text of this many characters: one of these lengths, with sums of weights as those of a list.
    Text(Vec<usize>, Vec<u64>),
    /// Text that follows a pattern.
    Template(String),
    /// Consecutive numbers, distributed to all clients.
    Sequence(i64),
}

#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) weight: u64,
    pub(super) steps: Vec<Step>,
    /// The server's error codes after which it is rolled back and retried.
    pub(super) retry: Vec<String>,
    /// After this many successive retries an error is final; `None`: after the time limit of a reply.
    pub(super) retries: Option<u32>,
}

/// A step of a transaction. Jumps only go forward.
#[derive(Debug)]
pub(super) enum Step {
    Set {
        slot: usize,
        source: Source,
        place: String,
    },
    Execute(Box<Execute>),
    /// Waits for a value times this many nanoseconds.
    Sleep {
        time: Expr,
        unit: u64,
        place: String,
    },
    /// Jumps to a step unless the condition is true.
    Unless {
        condition: Expr,
        to: usize,
        place: String,
    },
    Jump(usize),
}

impl Program {
    /// The variables that steps from this one on change; of this step itself, only those that it sets from its
    /// answer.
    pub(super) fn changed_from(&self, step: usize) -> Vec<usize> {
        let mut changed = Vec::new();
        for (number, step_) in self.steps.iter().enumerate().skip(step) {
            match step_ {
                Step::Set { slot, .. } if number > step => changed.push(*slot),
                Step::Execute(execute) => changed.extend(execute.keep.iter().map(|(_, slot)| *slot)),
                _ => {}
            }
        }
        changed
    }
}
