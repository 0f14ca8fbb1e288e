//! What a copy will make on the target, and what does not map.

use crate::canonical::Mend;
use crate::catalog::Named;
use crate::issue::{Accepted, Issue, IssueKind};
use crate::page::PageSize;
use crate::script::{Entry, executed};
use crate::types::{Kind, Mapped};
use crate::wanted::Parts;
use kurabe_core::Error;

/// A column of a new table.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts of a column that do not depend on one another")]
pub struct ColumnPlan {
    pub name: String,
    /// Its type on the source.
    pub kind: Kind,
    /// Its type on the target.
    pub mapped: Mapped,
    /// Whether it can be null on the target.
    pub nullable: bool,
    /// Its definition on the target.
    pub sql: String,
    /// Whether both sides have the same type, so that values are carried and compared as the server writes them.
    pub exact: bool,
    /// The kind of values that become others, as accepted.
    pub mend: Option<Mend>,
    /// The next number, if the target's server gives it numbers.
    pub identity: Option<i128>,
    /// The expression that reads it for the target. Verification has its own.
    pub read: String,
    /// Whether the target's numbers in documents have 64 bits.
    pub rounds: bool,
    /// Whether both servers have one binary form of its values.
    pub has_binary: bool,
    /// Whether its values are inserted; if not, the target's server generates them.
    pub written: bool,
}

/// How a copy of a table that was stopped continues.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resume {
    /// After the last row in the order of these columns.
    Columns(Vec<usize>),
    /// After the last row in the order of a hidden whole number.
    Hidden(&'static str),
    /// From the first row.
    Restart,
}

/// A new table.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// Its name on the source.
    pub name: String,
    /// Its name on the target.
    pub to: String,
    /// The condition of the rows that are copied.
    pub filter: Option<String>,
    pub columns: Vec<ColumnPlan>,
    /// The source's table in queries: its quoted name, without the rows of tables that inherit from it.
    pub from: String,
    /// The positions of the columns by which rows are named; empty if there is no key.
    pub key: Vec<usize>,
    /// How a copy continues.
    pub resume: Resume,
    /// How many rows are inserted together.
    pub page: PageSize,
    /// The number of rows when the plan was made.
    pub rows: u64,
    /// The statement that makes it.
    pub create: String,
    /// Whether it has its key while its rows are written; otherwise a search of a range reads all of it.
    pub has_key: bool,
    /// The statements that make its indexes, after its rows are copied.
    pub indexes: Vec<Named>,
    /// The statements that make its foreign keys, after all tables are copied.
    pub foreign: Vec<Named>,
}

impl TablePlan {
    /// The condition of the rows that are copied, with the word before it; empty if all are.
    pub fn filtered(&self) -> String {
        self.filter.as_ref().map(|filter| format!(" WHERE ({filter})")).unwrap_or_default()
    }
}

/// An object that the user leaves out.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Left {
    /// Its name, perhaps with that of its table.
    pub object: String,
    /// What stands in the file of leftovers: the statement that would make it, or a comment.
    pub sql: Entry,
}

/// A whole copy.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The tables, parents before the tables that refer to them.
    pub tables: Vec<TablePlan>,
    pub issues: Vec<Issue>,
    /// The statements that make what tables need: types and sequences.
    pub before: Vec<Named>,
    /// The statements after all rows, and what is lost without each: positions of sequences, constraints not proven, comments.
    pub after: Vec<(IssueKind, Named)>,
    pub left: Vec<Left>,
    /// The file of leftovers, of which the target has taken all statements; `None` if they were not tried.
    pub tried: Option<Vec<(String, Entry)>>,
    pub parts: Parts,
}

impl Plan {
    /// The error of differences that the user did not accept, all of them.
    pub fn refusal(&self, accepted: &Accepted) -> Option<Error> {
        let is_refused =
            |issue: &&Issue| !issue.kind.is_only_listed() && !accepted.has(issue.kind, &issue.object);
        let mut kinds: Vec<&str> =
            self.issues.iter().filter(is_refused).map(|issue| issue.kind.name()).collect();
        if kinds.is_empty() {
            return None;
        }
        let what = format!("{} differences do not map, and nothing was copied", kinds.len());
        kinds.sort_unstable();
        kinds.dedup();
        Some(Error::unsupported(what).hint(format!("accept them by name: --accept {}", kinds.join(","))))
    }

    /// Has statements execute bytes that are not UTF-8.
    pub(crate) fn execute_bytes(&mut self) {
        let execute = |sql: &mut String| *sql = executed(sql);
        for TablePlan { create, indexes, foreign, .. } in &mut self.tables {
            execute(create);
            indexes.iter_mut().chain(foreign).for_each(|made| execute(&mut made.sql));
        }
        let after = self.after.iter_mut().map(|(_, made)| made);
        self.before.iter_mut().chain(after).for_each(|made| execute(&mut made.sql));
    }

    /// The plan as text: its statements.
    pub fn statements(&self) -> String {
        let before = self.before.iter().map(|named| &named.sql);
        let tables = self.tables.iter().map(|table| &table.create);
        let indexes = self.tables.iter().flat_map(|table| &table.indexes);
        let later = indexes.chain(self.tables.iter().flat_map(|table| &table.foreign));
        let all = before.chain(tables).chain(later.map(|named| &named.sql));
        let all = all.filter(|_| self.parts != Parts::Data);
        all.flat_map(|sql| [sql, ";\n"]).collect()
    }
}
