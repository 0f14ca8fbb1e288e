//! The requests of a transaction, and what is expected of their answers.

use super::section::variable;
use super::variables::{Operand, Variables};
use crate::prelude::*;
use kurabe_core::raw::{RawPiece, RawStatement, RawText};

#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) operand: Operand,
    /// The type of its field; `None` in an SQL statement. For a timestamp, an integer counts seconds since 1970.
    pub(super) kind: Option<FieldType>,
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
