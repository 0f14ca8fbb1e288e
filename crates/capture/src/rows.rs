//! Statements that name the rows of one table by equal values: what every engine can do.

/// The field of a row that is its key, and the one that has the value of a key, where stores of keys and documents are shown as tables.
pub(crate) const KEY: &str = "id";
pub(crate) const VALUE: &str = "value";

/// A statement on the rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub(crate) verb: Verb,
    pub(crate) table: String,
    /// The columns that are read; none: all but the key.
    pub(crate) columns: Vec<String>,
    pub(crate) sets: Vec<(String, Expr)>,
    /// The columns that are compared, with their slots.
    pub(crate) by: Vec<(String, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Select,
    Insert,
    /// Inserts, or replaces what is there.
    Put,
    Update,
    Delete,
}

/// A value that is written into a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    Slot(usize),
    Now,
    /// The column itself plus or minus a value.
    Changed(char, usize),
}

/// A statement on the rows of a table that have these values. A field is written, with a value that may be added.
pub(crate) fn translated<T>(
    verb: Verb,
    columns: Vec<String>,
    table: String,
    by: Vec<(String, T)>,
    fields: Vec<(String, T, bool)>,
) -> Result<(Plain, Vec<T>), &'static str> {
    if verb == Verb::Update && fields.is_empty() {
        return Err("a change of no field");
    }
    // The fields of an update are before those by which it finds its row.
    let is_update = verb == Verb::Update;
    let (first, first_by) = if is_update { (0, fields.len()) } else { (by.len(), 0) };
    let column = |(at, (column, _)): (usize, &(String, T))| (column.clone(), first_by + at);
    let keys: Vec<(String, usize)> = by.iter().enumerate().map(column).collect();
    let set = |(at, (column, _, is_added)): (usize, &(String, T, bool))| {
        let slot = first + at;
        (column.clone(), if *is_added { Expr::Changed('+', slot) } else { Expr::Slot(slot) })
    };
    // An inserted document has its key as a field.
    let is_inserted = matches!(verb, Verb::Insert | Verb::Put);
    let given = keys.iter().filter(|_| is_inserted).map(|(column, slot)| (column.clone(), Expr::Slot(*slot)));
    let sets = given.chain(fields.iter().enumerate().map(set)).collect();
    let is_compared = |(column, _): &(String, usize)| !is_inserted || verb == Verb::Put && column == KEY;
    let compared = keys.iter().filter(|key| is_compared(key)).cloned().collect();
    let by = by.into_iter().map(|(_, value)| value);
    let fields = fields.into_iter().map(|(_, value, _)| value);
    let values = if is_update { fields.chain(by).collect() } else { by.chain(fields).collect() };
    Ok((Plain { verb, table, columns, sets, by: compared }, values))
}

impl Plain {
    /// The column of each value, in the order of slots. A slot without a column, as that of a limit, is the last one.
    pub(crate) fn columns_of_values(&self) -> Vec<String> {
        let sets = self.sets.iter().filter_map(|(column, expr)| match expr {
            Expr::Slot(slot) | Expr::Changed(_, slot) => Some((*slot, column)),
            Expr::Now => None,
        });
        let by = self.by.iter().map(|(column, slot)| (*slot, column));
        let mut all: Vec<(usize, &String)> = sets.chain(by).collect();
        all.sort_unstable();
        // What is put has its key in both.
        all.dedup_by_key(|(slot, _)| *slot);
        all.into_iter().map(|(_, column)| column.clone()).collect()
    }

    /// The word for what is done.
    pub(crate) fn word(&self) -> &'static str {
        match self.verb {
            Verb::Select => "get",
            Verb::Insert => "insert",
            Verb::Put => "put",
            Verb::Update => "update",
            Verb::Delete => "delete",
        }
    }

    /// For people, of what is translated into a statement: `GET value FROM session WHERE id = ?`.
    pub(crate) fn text(&self) -> String {
        let Self { verb, table, columns, sets, by } = self;
        let compared: Vec<String> = by.iter().map(|(column, _)| format!("{column} = ?")).collect();
        let compared = compared.join(" AND ");
        let wanted = if columns.is_empty() { "*".to_owned() } else { columns.join(", ") };
        let written: Vec<&str> = sets.iter().map(|(column, _)| column.as_str()).collect();
        let written = written.join(", ");
        let set = |(column, expr): &(String, Expr)| match expr {
            Expr::Changed(sign, _) => format!("{column} = {column} {sign} ?"),
            _ => format!("{column} = ?"),
        };
        let word = self.word().to_uppercase();
        match verb {
            Verb::Select => format!("{word} {wanted} FROM {table} WHERE {compared}"),
            Verb::Insert | Verb::Put => format!("{word} INTO {table} ({written}) VALUES (?)"),
            Verb::Update => {
                let sets: Vec<String> = sets.iter().map(set).collect();
                format!("{word} {table} SET {} WHERE {compared}", sets.join(", "))
            }
            Verb::Delete => format!("{word} FROM {table} WHERE {compared}"),
        }
    }
}
