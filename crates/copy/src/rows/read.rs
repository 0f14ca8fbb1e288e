//! Rows of a table in pages, in the order of a key.

use super::{Encoded, encode, page_rows};
use crate::canonical::{Reading, mend, push};
use crate::engines::{Engine, Keyless};
use crate::issue::IssueKind;
use crate::page::{Cell, Page};
use crate::plan::{ColumnPlan, TablePlan};
use crate::sql::{GAP, Side, quoted};
use crate::types::{Class, Kind};
use kurabe_core::driver::Prepared;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, Result};

/// Which side of a copy a reader reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// The source, with values as the target holds them.
    Source,
    /// The target.
    Target,
}

/// Reads a table's rows in pages.
pub struct Reader<'a> {
    table: &'a TablePlan,
    of: Of,
    columns: Vec<Field>,
    select: String,
    page_rows: usize,
    first: Option<Prepared>,
    next: Option<Prepared>,
    /// The key's fields of each parameter of `next`, by position in the key.
    order: Vec<usize>,
    /// The key of the last row; `None` before the first page.
    last: Option<Page>,
    offset: u64,
    keyless: Option<Keyless>,
    done: bool,
    reply: Reply,
}

struct Field {
    /// How this side stores it.
    stored: Kind,
    reading: Reading,
    mend: Vec<IssueKind>,
}

impl<'a> Reader<'a> {
    /// A reader of one side, from after the row with the key `after` on.
    pub fn new(side: &Side, of: Of, table: &'a TablePlan, after: Option<Page>) -> Self {
        let engine = side.engine;
        let field = |column: &ColumnPlan| Field {
            stored: if of == Of::Source { column.kind.clone() } else { column.mapped.stored.clone() },
            reading: Reading { class: column.kind.class, hex: engine.bytes_as_hex() },
            mend: if of == Of::Source { column.mend.clone() } else { Vec::new() },
        };
        let columns: Vec<Field> = table.columns.iter().map(field).collect();
        let list = table.columns.iter().zip(&columns);
        let mut list: Vec<String> =
            list.map(|(column, field)| engine.read(&field.stored, &quoted(engine, &column.name))).collect();
        let keyless = table.key.is_empty().then(|| engine.keyless());
        if let Some(Keyless::Hidden(column)) = keyless {
            list.push(column.to_owned());
        }
        let select = format!("SELECT {} FROM {}", list.join(", "), quoted(engine, &table.name));
        Self {
            table,
            of,
            columns,
            select,
            page_rows: page_rows(table),
            first: None,
            next: None,
            order: Vec::new(),
            last: after,
            offset: 0,
            keyless,
            done: false,
            reply: Reply::new(),
        }
    }

    /// The key of the last row that was read.
    pub fn last(&self) -> Option<&Page> {
        self.last.as_ref()
    }

    /// The next page; `None` after the last.
    pub fn page(&mut self, side: &mut Side) -> Result<Option<Page>> {
        if self.done {
            return Ok(None);
        }
        match self.keyless {
            None | Some(Keyless::Hidden(_)) => self.keyed(side)?,
            Some(Keyless::Cursor) => {
                if self.first.is_none() {
                    side.run(&format!("DECLARE kurabe_rows NO SCROLL CURSOR FOR {}", self.select))?;
                    let fetch = format!("FETCH FORWARD {} FROM kurabe_rows", self.page_rows);
                    self.first = Some(side.prepare(&fetch)?);
                }
                let Some(fetch) = &self.first else { return Ok(None) };
                side.session.execute(fetch, &[], &mut self.reply).map_err(|e| e.context(&side.name))?;
            }
            Some(Keyless::Offset) => {
                let sql = side.engine.limited(&self.select, self.page_rows, self.offset);
                side.execute(&sql, &[], &mut self.reply)?;
            }
        }
        let rows = self.reply.rows();
        self.offset += rows as u64;
        self.done = rows < self.page_rows;
        if self.done {
            self.end(side)?;
        }
        if rows == 0 {
            return Ok(None);
        }
        self.canonical().map(Some)
    }

    fn keyed(&mut self, side: &mut Side) -> Result<()> {
        if self.first.is_none() {
            let [first, next] = self.statements(side.engine);
            self.first = Some(side.prepare(&first)?);
            self.next = Some(side.prepare(&next)?);
        }
        let (statement, parameters) = match &self.last {
            None => (&self.first, Vec::new()),
            Some(last) => {
                let value = |at: &usize| {
                    let class = self
                        .table
                        .key
                        .get(*at)
                        .map_or(Class::Int64, |column| self.columns[*column].stored.class);
                    encode(side.engine, class, last.cell(0, *at))
                };
                (&self.next, self.order.iter().map(value).collect::<Result<Vec<_>>>()?)
            }
        };
        let Some(statement) = statement else { return Ok(()) };
        let values: Vec<Value<'_>> = parameters.iter().map(Encoded::value).collect();
        side.session.execute(statement, &values, &mut self.reply).map_err(|e| e.context(&side.name))
    }

    /// The statements of the first page, and of the page after a key.
    fn statements(&mut self, engine: &dyn Engine) -> [String; 2] {
        let name = |at: &usize| {
            (quoted(engine, &self.table.columns[*at].name), engine.compared(&self.columns[*at].stored))
        };
        let (mut names, mut gaps): (Vec<String>, Vec<String>) = self.table.key.iter().map(name).unzip();
        if let Some(Keyless::Hidden(column)) = self.keyless {
            (names, gaps) = (vec![column.to_owned()], vec![GAP.to_string()]);
        }
        let after = if names.len() == 1 || engine.compares_rows() {
            self.order = (0..names.len()).collect();
            if names.len() == 1 {
                format!("{} > {}", names[0], gaps[0])
            } else {
                format!("({}) > ({})", names.join(", "), gaps.join(", "))
            }
        } else {
            // The first comparison is what the index is entered by.
            self.order = vec![0];
            let terms = (0..names.len()).map(|last| {
                let equal = (0..last).map(|at| format!("{} = {}", names[at], gaps[at]));
                self.order.extend(0..=last);
                equal.chain([format!("{} > {}", names[last], gaps[last])]).collect::<Vec<_>>().join(" AND ")
            });
            let terms: Vec<String> = terms.collect();
            format!("{} >= {} AND (({}))", names[0], gaps[0], terms.join(") OR ("))
        };
        let by = names.join(", ");
        let first = format!("{} ORDER BY {by}", self.select);
        let next = format!("{} WHERE {after} ORDER BY {by}", self.select);
        [first, next].map(|sql| engine.limited(&sql, self.page_rows, 0))
    }

    /// The reply's rows in canonical form, and the key of the last one.
    fn canonical(&mut self) -> Result<Page> {
        let (rows, width) = (self.reply.rows(), self.columns.len());
        let mut page = Page::new(width);
        for row in 0..rows {
            for (at, field) in self.columns.iter().enumerate() {
                let value = self.reply.field(row, at).unwrap_or(Value::Null);
                push(field.reading, value, &mut page).map_err(|error| self.named(error, at))?;
                if !field.mend.is_empty()
                    && let Cell::Bytes(bytes) = page.last()
                {
                    let becomes = mend(&field.mend, bytes);
                    page.replace_last(becomes.as_deref().map_or(Cell::Null, Cell::Bytes));
                }
            }
        }
        let last = rows - 1;
        self.last = match self.keyless {
            None => {
                // As the source has it, before anything becomes something else.
                let mut key = Page::new(self.table.key.len());
                for at in &self.table.key {
                    push(
                        self.columns[*at].reading,
                        self.reply.field(last, *at).unwrap_or(Value::Null),
                        &mut key,
                    )?;
                }
                Some(key)
            }
            Some(Keyless::Hidden(_)) => {
                let mut key = Page::new(1);
                push(
                    Reading { class: Class::Int64, hex: false },
                    self.reply.field(last, width).unwrap_or(Value::Null),
                    &mut key,
                )?;
                Some(key)
            }
            Some(_) => None,
        };
        Ok(page)
    }

    fn named(&self, error: Error, column: usize) -> Error {
        let side = if self.of == Of::Source { "source" } else { "target" };
        error.context(format!("{side}, {}.{}", self.table.name, self.table.columns[column].name))
    }

    fn end(&mut self, side: &mut Side) -> Result<()> {
        for prepared in [self.first.take(), self.next.take()].into_iter().flatten() {
            side.session.release(prepared)?;
        }
        if self.keyless == Some(Keyless::Cursor) {
            side.run("CLOSE kurabe_rows")?;
        }
        Ok(())
    }
}
