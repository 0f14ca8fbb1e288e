//! A parsed workload of any language: its collections, its variables and the steps of its transactions.

use super::expression::Expr;
use super::rows::Generator;
use super::section::{position, variable};
use crate::prelude::*;
use kurabe_core::driver::Access;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};

#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) relations: Vec<Relation>,
    pub(super) variables: Variables,
    pub(super) programs: Vec<Program>,
    /// What the statements of its transactions may do.
    pub(super) access: Access,
    /// Whether variables within quotes are variables too, and the first one that was left there because they are not.
    pub(super) in_quotes: bool,
    pub(super) left_in_quotes: Option<String>,
    /// The same workload with those, for values that are put into the text.
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

#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) names: Vec<String>,
    /// Their values when the client begins.
    pub(super) initial: Vec<Constant>,
}

impl Variables {
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The variable's slot; a new slot if no variable has that name.
    pub(super) fn slot(&mut self, name: &str) -> usize {
        self.find(name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.initial.push(Constant::Null);
            self.names.len() - 1
        })
    }

    pub(super) fn set(&mut self, name: &str, value: Constant) -> usize {
        let slot = self.slot(name);
        self.initial[slot] = value;
        slot
    }
}

pub(super) const CLIENT_ID: &str = "client_id";
pub(super) const CLIENTS: &str = "clients";
pub(super) const DEFAULT_SEED: &str = "default_seed";
pub(super) const RANDOM_SEED: &str = "random_seed";
pub(super) const NOW: &str = "now";
/// Variables that every client has.
pub(super) const EVERY_CLIENTS: [&str; 5] = [CLIENT_ID, CLIENTS, DEFAULT_SEED, RANDOM_SEED, NOW];

/// The variable that holds the number of rows of a collection.
pub(super) fn rows_of(collection: &str) -> String {
    format!("rows_{collection}")
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Null,
    Int(i64),
    Double(f64),
    Text(String),
}

impl Constant {
    /// A value from a command line or a list: an integer if it is one. Any other number stays text, so that it is
    /// sent as it was written.
    pub(super) fn of(text: &str) -> Self {
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Self::Int(number),
            _ => Self::Text(text.to_owned()),
        }
    }
}

/// A value that a request sends, or that an answer must have.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Constant(Constant),
    Variable(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) operand: Operand,
    /// The type of its field; `None` in an SQL statement. For a timestamp, an integer counts seconds since 1970.
    pub(super) kind: Option<FieldType>,
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
    /// After this many successive retries an error is final.
    pub(super) retries: u32,
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

#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The minimum and the maximum.
    Range(u64, u64),
    /// The value of this variable.
    Variable(usize),
}

/// One request with its expected result.
#[derive(Debug, Default)]
pub(super) struct Execute {
    pub(super) request: Request,
    pub(super) parameters: Vec<Parameter>,
    /// The required number of returned rows.
    pub(super) rows: Option<Wanted>,
    /// The required number of changed rows.
    pub(super) affected: Option<Wanted>,
    /// Columns of every returned row, and their expected values.
    pub(super) fields: Vec<(usize, Operand)>,
    /// Columns of the first row, and the variables that store them.
    pub(super) keep: Vec<(usize, usize)>,
    /// The collections into which it inserts or from which it deletes rows.
    pub(super) adds: Option<usize>,
    pub(super) removes: Option<usize>,
    pub(super) place: String,
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

impl Execute {
    /// The variables that the check of its answer reads.
    pub(super) fn checked_by(&self) -> Vec<usize> {
        let variable = |operand: &Operand| match operand {
            Operand::Variable(slot) => Some(*slot),
            Operand::Constant(_) => None,
        };
        let wanted = |wanted: &Wanted| match wanted {
            Wanted::Variable(slot) => Some(*slot),
            Wanted::Range(..) => None,
        };
        let key = matches!(self.request, Request::Get(..)).then(|| self.parameters.first()).flatten();
        let fields = self.fields.iter().map(|(_, operand)| operand);
        let operands = fields.chain(key.map(|key| &key.operand)).filter_map(variable);
        operands.chain([self.rows, self.affected].iter().flatten().filter_map(wanted)).collect()
    }
}

/// A request to a database: the number of its collection, the fields that it compares, and those that it returns or
/// changes.
#[derive(Debug, Default)]
pub(super) enum Request {
    #[default]
    Begin,
    Commit,
    Rollback,
    Get(usize, Vec<usize>),
    Insert(usize),
    Put(usize),
    Update(usize, Vec<usize>),
    Delete(usize),
    FindEqual(usize, Vec<usize>, Vec<usize>),
    Count(usize),
    Raw(Raw),
}

/// A statement in the user's SQL.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) texts: Vec<(Option<String>, Vec<Piece>)>,
    /// Why it may change data, where no server prevents it.
    pub(super) may_change: Option<String>,
    /// Whether it must only read: it names no collection of the run, and nothing allows it to write.
    pub(super) must_read: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
    Table(usize),
}

impl Request {
    /// The request of the step `begin`, `commit` or `rollback`.
    pub(super) fn control(word: &str) -> Self {
        match word {
            "begin" => Self::Begin,
            "commit" => Self::Commit,
            _ => Self::Rollback,
        }
    }

    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Insert(_) | Self::Put(_) | Self::Update(..) | Self::Delete(_) => true,
            Self::Raw(raw) => raw.may_change.is_some(),
            _ => false,
        }
    }

    /// The operation on the collections of a target.
    pub(super) fn operation(&self, relations: &[Arc<Collection>], place: &str) -> Operation {
        let of = |relation: &usize| Arc::clone(&relations[*relation]);
        match self {
            Self::Begin => Operation::Begin,
            Self::Commit => Operation::Commit,
            Self::Rollback => Operation::Rollback,
            Self::Get(relation, fields) => {
                Operation::Get { collection: of(relation), fields: fields.clone() }
            }
            Self::Insert(relation) => Operation::Insert { collection: of(relation) },
            Self::Put(relation) => Operation::Put { collection: of(relation) },
            Self::Update(relation, fields) => {
                Operation::Update { collection: of(relation), fields: fields.clone() }
            }
            Self::Delete(relation) => Operation::Delete { collection: of(relation) },
            Self::FindEqual(relation, by, fields) => {
                Operation::FindEqual { collection: of(relation), by: by.clone(), fields: fields.clone() }
            }
            Self::Count(relation) => Operation::Count { collection: of(relation) },
            Self::Raw(raw) => Operation::Raw { statement: Arc::new(raw.statement(relations, place)) },
        }
    }
}

impl Raw {
    fn statement(&self, relations: &[Arc<Collection>], place: &str) -> RawStatement {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => RawPiece::Text(text.clone()),
            Piece::Variable(_) => RawPiece::Parameter,
            Piece::Table(relation) => RawPiece::Table(relations[*relation].name.clone()),
        };
        let texts: Vec<RawText> = self
            .texts
            .iter()
            .map(|(engine, pieces)| RawText {
                engine: engine.clone(),
                pieces: pieces.iter().map(piece).collect(),
            })
            .collect();
        let parameters = self.variables().len();
        RawStatement { place: place.to_owned(), texts, parameters, collection: None }
    }

    /// The values of its placeholders.
    pub(super) fn parameters(&self, known: &Variables) -> Result<Vec<Parameter>> {
        let parameter = |name: &str| {
            let operand = Operand::Variable(variable(name, known)?);
            Ok(Parameter { operand, kind: None })
        };
        self.variables().into_iter().map(parameter).collect()
    }

    /// The variables in the order of their placeholders, which is the same in all texts.
    pub(super) fn variables(&self) -> Vec<&str> {
        self.texts.first().map(|(_, pieces)| variables(pieces)).unwrap_or_default()
    }
}

/// The tables that one text names in braces or by pgbench's names.
pub(super) fn tables(pieces: &[Piece]) -> Vec<usize> {
    let table = |piece: &Piece| if let Piece::Table(relation) = piece { Some(*relation) } else { None };
    pieces.iter().filter_map(table).collect()
}

/// The variables of one text, in the order of their placeholders.
pub(super) fn variables(pieces: &[Piece]) -> Vec<&str> {
    pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
            _ => None,
        })
        .collect()
}
