//! A workload as it was written, whatever the language: what it keeps, what it varies and what each transaction does.

use super::expression::Expr;
use super::rows::Generator;
use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::operation::Operation;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};
use std::sync::Arc;

/// A workload.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) homes: Vec<Home>,
    pub(super) variables: Variables,
    pub(super) programs: Vec<Program>,
}

/// Where rows live: a collection that is made for the run, or a table that is there.
#[derive(Debug)]
pub(super) struct Home {
    /// As the file calls it; for a table, its name on the server.
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    pub(super) key: Vec<usize>,
    pub(super) indexes: Vec<Vec<usize>>,
    /// How its rows are made, by field; `None` for a table that is there.
    pub(super) made: Option<Made>,
    /// Whether transactions may change it.
    pub(super) write: bool,
    /// Which fields some transaction changes.
    pub(super) changed: Vec<bool>,
    /// Whether rows are replaced or removed, or changed by a statement whose effect is not known: then none is known to
    /// be as it was made.
    pub(super) disturbed: bool,
    pub(super) traffic: Traffic,
}

/// Whether rows come into a collection or go from it. Where they do, it is filled anew for each trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traffic {
    None,
    /// The server says how many.
    Counted,
    /// They do, and how many is not known.
    Unknown,
}

/// How the rows of a collection are made.
#[derive(Debug)]
pub(super) struct Made {
    /// How many, in terms of variables that are given.
    pub(super) rows: Expr,
    pub(super) generators: Vec<Generator>,
    /// Where the number of rows stands.
    pub(super) place: String,
}

impl Home {
    pub(super) fn new(name: String, fields: Vec<Field>, key: Vec<usize>, made: Option<Made>) -> Self {
        let changed = vec![false; fields.len()];
        let write = made.is_some();
        Self {
            name,
            fields,
            key,
            indexes: Vec::new(),
            made,
            write,
            changed,
            disturbed: false,
            traffic: Traffic::None,
        }
    }

    /// Notes that rows come or go, and whether it is known how many.
    pub(super) fn note_traffic(&mut self, counted: bool) {
        if !counted {
            self.traffic = Traffic::Unknown;
        } else if self.traffic == Traffic::None {
            self.traffic = Traffic::Counted;
        }
    }

    /// The number of the first row's key, where keys are numbers in sequence.
    pub(super) fn first_key(&self) -> Option<i64> {
        let [key] = self.key.as_slice() else { return None };
        match self.made.as_ref()?.generators.get(*key)? {
            Generator::Sequence(first) => Some(*first),
            _ => None,
        }
    }

    /// The collection on the target of this slot.
    pub(super) fn collection(&self, slot: usize) -> Arc<Collection> {
        let name =
            if self.made.is_some() { format!("kurabe_{slot}_{}", self.name) } else { self.name.clone() };
        let mut collection = Collection::new(name, self.fields.clone(), self.key.clone());
        collection.indexes.clone_from(&self.indexes);
        Arc::new(collection)
    }
}

/// The variables of a client, by slot.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) names: Vec<String>,
    /// What each holds when the client begins.
    pub(super) initial: Vec<Constant>,
}

impl Variables {
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// The variable's slot; a new one where there is none of that name.
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

/// The variables that every client has.
pub(super) const CLIENT_ID: &str = "client_id";
pub(super) const CLIENTS: &str = "clients";
pub(super) const DEFAULT_SEED: &str = "default_seed";
pub(super) const RANDOM_SEED: &str = "random_seed";
pub(super) const NOW: &str = "now";

/// The variable that holds the number of a collection's rows.
pub(super) fn rows_of(collection: &str) -> String {
    format!("rows_{collection}")
}

/// A value that does not change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Constant {
    Null,
    Int(i64),
    Double(f64),
    Text(String),
}

impl Constant {
    /// A value as it is written on a command line or in a list: a whole number where it is one. Any other number stays
    /// the text that it is, so that it is sent as it was written.
    pub(super) fn of(text: &str) -> Self {
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Self::Int(number),
            _ => Self::Text(text.to_owned()),
        }
    }
}

/// A value that a request is given, or that an answer must be.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Constant(Constant),
    Variable(usize),
}

/// A parameter of a request.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) operand: Operand,
    /// The type of its field; `None` in a statement in SQL. For a timestamp, a whole number is one of seconds since 1970.
    pub(super) kind: Option<FieldType>,
}

/// Where a variable's value comes from.
#[derive(Debug)]
pub(super) enum Source {
    Expression(Expr),
    /// One of these, each equally likely.
    List(Vec<Constant>),
    /// Text of so many characters, unlike any other.
    Text(usize),
    /// Text after a pattern.
    Template(String),
    /// Numbers from the first on, shared out to all clients.
    Sequence(i64),
}

/// One transaction.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) weight: u64,
    pub(super) steps: Vec<Step>,
    /// The server's own codes of errors after which it is rolled back and begun again.
    pub(super) retry: Vec<String>,
}

/// A step of a transaction. Steps that jump go forward only.
#[derive(Debug)]
pub(super) enum Step {
    Set {
        slot: usize,
        source: Source,
        place: String,
    },
    Execute(Box<Execute>),
    /// Waits for so long: a value of so many nanoseconds each.
    Sleep {
        time: Expr,
        unit: u64,
        place: String,
    },
    /// Goes on elsewhere unless the condition is true.
    Unless {
        condition: Expr,
        to: usize,
        place: String,
    },
    Jump(usize),
}

/// How many rows an answer must be of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wanted {
    /// The fewest and the most.
    Range(u64, u64),
    /// As many as this variable says.
    Variable(usize),
}

/// One request with what must come of it.
#[derive(Debug)]
pub(super) struct Execute {
    pub(super) request: Request,
    pub(super) parameters: Vec<Parameter>,
    /// How many rows must come.
    pub(super) rows: Option<Wanted>,
    /// How many rows must be changed.
    pub(super) affected: Option<Wanted>,
    /// Columns of every row that comes, and what they must be.
    pub(super) fields: Vec<(usize, Operand)>,
    /// Columns of the first row, and the variables that keep them.
    pub(super) keep: Vec<(usize, usize)>,
    /// The collections that the rows changed come into or go from.
    pub(super) adds: Option<usize>,
    pub(super) removes: Option<usize>,
    pub(super) place: String,
}

impl Program {
    /// The variables that steps from this one on change; of this step itself only those that it keeps of its answer.
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
    /// The variables that the check of its answer needs.
    pub(super) fn checked_by(&self) -> Vec<usize> {
        let variable = |operand: &Operand| match operand {
            Operand::Variable(slot) => Some(*slot),
            Operand::Constant(_) => None,
        };
        let wanted = |wanted: &Wanted| match wanted {
            Wanted::Variable(slot) => Some(*slot),
            Wanted::Range(..) => None,
        };
        let key = matches!(self.request, Request::Get { .. }).then(|| self.parameters.first()).flatten();
        let fields = self.fields.iter().map(|(_, operand)| operand);
        let operands = fields.chain(key.map(|key| &key.operand)).filter_map(variable);
        operands.chain([self.rows, self.affected].iter().flatten().filter_map(wanted)).collect()
    }
}

/// What is asked of a database; collections by number.
#[derive(Debug)]
pub(super) enum Request {
    Begin,
    Commit,
    Rollback,
    Get { home: usize, fields: Vec<usize> },
    Insert { home: usize },
    Put { home: usize },
    Update { home: usize, fields: Vec<usize> },
    Delete { home: usize },
    FindEqual { home: usize, by: Vec<usize>, fields: Vec<usize> },
    Count { home: usize },
    Raw(Raw),
}

/// A statement of the user's own.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) texts: Vec<(Option<String>, Vec<Piece>)>,
    pub(super) writes: bool,
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    Variable(String),
    Table(usize),
}

impl Request {
    /// Whether it changes data.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Insert { .. } | Self::Put { .. } | Self::Update { .. } | Self::Delete { .. } => true,
            Self::Raw(raw) => raw.writes,
            _ => false,
        }
    }

    /// The operation, with the collections of a target.
    pub(super) fn operation(&self, homes: &[Arc<Collection>], place: &str) -> Operation {
        let of = |home: &usize| Arc::clone(&homes[*home]);
        match self {
            Self::Begin => Operation::Begin,
            Self::Commit => Operation::Commit,
            Self::Rollback => Operation::Rollback,
            Self::Get { home, fields } => Operation::Get { collection: of(home), fields: fields.clone() },
            Self::Insert { home } => Operation::Insert { collection: of(home) },
            Self::Put { home } => Operation::Put { collection: of(home) },
            Self::Update { home, fields } => {
                Operation::Update { collection: of(home), fields: fields.clone() }
            }
            Self::Delete { home } => Operation::Delete { collection: of(home) },
            Self::FindEqual { home, by, fields } => {
                Operation::FindEqual { collection: of(home), by: by.clone(), fields: fields.clone() }
            }
            Self::Count { home } => Operation::Count { collection: of(home) },
            Self::Raw(raw) => Operation::Raw { statement: Arc::new(raw.statement(homes, place)) },
        }
    }
}

impl Raw {
    fn statement(&self, homes: &[Arc<Collection>], place: &str) -> RawStatement {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => RawPiece::Text(text.clone()),
            Piece::Variable(_) => RawPiece::Parameter,
            Piece::Table(home) => RawPiece::Table(homes[*home].name.clone()),
        };
        let texts: Vec<RawText> = self
            .texts
            .iter()
            .map(|(engine, pieces)| RawText {
                engine: engine.clone(),
                pieces: pieces.iter().map(piece).collect(),
            })
            .collect();
        RawStatement { place: place.to_owned(), texts, parameters: self.variables().len() }
    }

    /// The variables, in the order of their places: the same in all texts.
    pub(super) fn variables(&self) -> Vec<&str> {
        self.texts.first().map(|(_, pieces)| variables(pieces)).unwrap_or_default()
    }
}

/// The variables of one text, in the order of their places.
pub(super) fn variables(pieces: &[Piece]) -> Vec<&str> {
    pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name.as_str()),
            _ => None,
        })
        .collect()
}
