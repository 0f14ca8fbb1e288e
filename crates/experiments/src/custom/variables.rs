//! The variables of a workload, and the values that they and requests have.

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
