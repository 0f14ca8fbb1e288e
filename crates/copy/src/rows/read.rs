//! The rows of a table of the source: one query, whose answer is read in pages as it arrives. If the table has a key, rows
//! come in its order, and a later process can continue after the last one.

use crate::canonical::{Reading, push, push_mended};
use crate::engines::engine::Engine;
use crate::page::{BINARY, Cell, Encoded, Page};
use crate::plan::{ColumnPlan, Resume, TablePlan};
use crate::script::quoted;
use crate::sql::{GAP, ROWS, Side, all_of};
use crate::state::Range;
use crate::types::{Class, Kind};
use crate::verify::{Checks, Forms, Of};
use kurabe_core::value::{Reply, Value};
use kurabe_core::{Error, ErrorKind, Result};
use std::fmt::Write as _;

/// What is read at a time.
pub struct Read {
    pub page: Page,
    /// The key of the last row, as the side has it.
    pub last: Option<Page>,
    /// The chunk and the digest of each row, as verification reads it, if they are asked for.
    pub digests: Vec<(usize, [u64; 2])>,
}

/// Reads a table's rows in pages.
pub struct Reader<'a> {
    table: &'a TablePlan,
    readings: Vec<Reading>,
    sql: String,
    /// The values of the gaps in `sql`: fields of the key after which rows are read.
    parameters: Vec<Option<Page>>,
    /// The positions in a row of the key's fields.
    key: Vec<usize>,
    /// What verification reads of each row, and the first position of it.
    checks: Option<(Checks<'a>, usize)>,
    /// Whether rows come as the tuples that the target loads. The key's fields are then those of a tuple.
    is_tuples: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the rows of a range after the one with the key `after`. `digests`: also of what verification reads of them.
    ///
    /// # Errors
    /// [`Damaged`](ErrorKind::Damaged) if `after` is no key of this table.
    pub fn new(
        engine: &Engine,
        table: &'a TablePlan,
        after: Option<&Page>,
        bounds: Range,
        digests: bool,
    ) -> Result<Self> {
        let pass =
            engine.pass_through.filter(|_| after.is_none() && !digests && passes_in_binary(engine, table));
        let read = |column: &ColumnPlan| {
            if pass.is_some() { quoted(engine, &column.name) } else { column.read.clone() }
        };
        let mut list: Vec<String> = table.columns.iter().map(read).collect();
        let mut key = Vec::new();
        // As the side has the key: its order, and the expression of each field.
        let mut fields: Vec<(String, Kind)> = Vec::new();
        match &table.resume {
            Resume::Columns(columns) => {
                for at in columns {
                    let (name, kind) =
                        (quoted(engine, &table.columns[*at].name), table.columns[*at].kind.clone());
                    match engine.read_key.map(|expression| expression(&name)) {
                        Some(expression) => {
                            key.push(list.len());
                            list.push(expression);
                        }
                        None => key.push(*at),
                    }
                    fields.push((format!("{ROWS}.{name}"), kind));
                }
            }
            Resume::Hidden(name) => {
                key.push(list.len());
                list.push(format!("{ROWS}.{name}"));
                fields.push((format!("{ROWS}.{name}"), Kind::whole()));
            }
            Resume::Restart => {}
        }
        let checks = digests.then(|| Checks::new(engine, table, Of::Source)).transpose()?;
        let checks = checks.map(|checks| (checks, list.len()));
        list.extend(checks.iter().flat_map(|(checks, _)| checks.list.iter().cloned()));
        let mut sql = format!("SELECT {} FROM {} {ROWS}", list.join(", "), table.from);
        let mut parameters = Vec::new();
        let mut conditions: Vec<String> = table.filter.iter().map(|filter| format!("({filter})")).collect();
        if let Some((first, _)) = fields.first() {
            conditions.extend(bounds.from.map(|from| format!("{first} >= {from}")));
            conditions.extend(bounds.to.map(|to| format!("{first} < {to}")));
        }
        if let Some(after) = after {
            if after.width() != fields.len() {
                return Err(Error::new(ErrorKind::Damaged, "the state of the copy has another key")
                    .hint("begin again with --no-resume"));
            }
            let gap = |at: usize| engine.dialect.compared(&fields[at].1, after.cell(0, at));
            let terms = (0..fields.len()).map(|last| {
                let mut terms: Vec<String> = Vec::new();
                for (at, (name, _)) in fields.iter().enumerate().take(last + 1) {
                    let sign = if at == last { ">" } else { "=" };
                    let declared = fields[at].1.declared.as_str();
                    let sign = (engine.sign)([declared; 2], sign);
                    terms.push(format!("{name} {sign} {}", gap(at)));
                    let mut value = Page::new(1);
                    value.push(after.cell(0, at));
                    parameters.push(Some(value));
                }
                format!("({})", terms.join(" AND "))
            });
            let terms: Vec<String> = terms.collect();
            conditions.push(format!("({})", terms.join(" OR ")));
        }
        sql.push_str(&all_of(conditions));
        if !fields.is_empty() {
            // Writing to a String cannot fail.
            let by: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            let _ = write!(sql, " ORDER BY {}", by.join(", "));
        }
        debug_assert_eq!(sql.matches(GAP).count(), parameters.len());
        let sql = pass.map_or_else(|| sql.clone(), |(send, _)| send(&sql));
        let reading = |column: &ColumnPlan| Reading {
            class: column.kind.class,
            hex: engine.bytes_as_hex,
            exact: column.exact,
        };
        let readings = table.columns.iter().map(reading).collect();
        Ok(Self { table, readings, sql, parameters, key, checks, is_tuples: pass.is_some() })
    }

    /// Passes on all rows, in canonical form and as the target holds them, with the key of each page's last row.
    pub fn read(&self, side: &mut Side, each: &mut dyn FnMut(Read) -> Result<()>) -> Result<()> {
        let engine = side.engine;
        let parameters = self.parameters.iter().flatten().map(|page| engine.dialect.as_read(page.cell(0, 0)));
        let parameters = parameters.collect::<Result<Vec<Encoded<'_>>>>()?;
        let values: Vec<Value<'_>> = parameters.iter().map(Encoded::value).collect();
        side.pages(&self.sql, &values, self.table.page, &mut |reply| {
            if self.is_tuples {
                let page = Self::passed_through(reply);
                return match page.rows() {
                    0 => Ok(()),
                    _ => each(Read { last: self.key_of_last_tuple(&page)?, page, digests: Vec::new() }),
                };
            }
            let mut page = Page::new(self.readings.len());
            for row in 0..reply.rows() {
                for (at, reading) in self.readings.iter().enumerate() {
                    push_mended(*reading, &self.table.columns[at].mend, field(reply, row, at), &mut page)
                        .map_err(|error| self.named(error, at))?;
                }
            }
            let (mut digests, mut forms) = (Vec::new(), Forms::default());
            if let Some((checks, from)) = &self.checks {
                let all = (0..reply.rows()).map(|row| checks.digests(reply, row, *from, &mut forms));
                digests = all.collect::<Result<_>>()?;
            }
            each(Read { page, last: self.last(reply)?, digests })
        })
    }

    /// The key of the last row, as the source has it.
    fn last(&self, reply: &Reply) -> Result<Option<Page>> {
        if self.key.is_empty() {
            return Ok(None);
        }
        let mut key = Page::new(self.key.len());
        for at in &self.key {
            push(Reading::RAW, field(reply, reply.rows() - 1, *at), &mut key)?;
        }
        Ok(Some(key))
    }

    /// The tuples as they came. The header comes with the first one, and the trailer as a further one.
    fn passed_through(reply: &Reply) -> Page {
        let mut page = Page::new(1);
        page.is_tuples = true;
        let [begin, end] = BINARY;
        let rows = (0..reply.rows()).filter_map(|row| reply.field_bytes(row, 0));
        let tuples = rows.map(|row| row.strip_prefix(begin).unwrap_or(row)).filter(|tuple| *tuple != end);
        tuples.for_each(|tuple| page.push(Cell::Bytes(tuple)));
        page
    }

    fn key_of_last_tuple(&self, page: &Page) -> Result<Option<Page>> {
        let mut key = Page::new(self.key.len());
        for at in &self.key {
            let Cell::Int(field) = page.cell(page.rows() - 1, *at) else {
                return Err(Error::new(ErrorKind::Internal, "a row of COPY without its key"));
            };
            key.push(Cell::Int(field));
        }
        Ok(Some(key).filter(|_| !self.key.is_empty()))
    }

    fn named(&self, error: Error, column: usize) -> Error {
        error.context(format!("source, {}.{}", self.table.name, self.table.columns[column].name))
    }
}

/// Whether all values go to the target as they are, and a tuple shows how far the copy is. Generated columns are not loaded.
fn passes_in_binary(engine: &Engine, table: &TablePlan) -> bool {
    let is_as_it_is = |column: &ColumnPlan| {
        let own = engine.dialect.read(&column.kind, &quoted(engine, &column.name));
        column.has_binary && column.written && column.mend.is_empty() && column.read == own
    };
    let is_whole =
        |at: &usize| matches!(table.columns[*at].kind.class, Class::Int16 | Class::Int32 | Class::Int64);
    let resume = if let Resume::Columns(columns) = &table.resume { columns } else { &table.key };
    !table.columns.is_empty()
        && table.columns.iter().all(is_as_it_is)
        && table.key.iter().chain(resume).all(is_whole)
}

fn field(reply: &Reply, row: usize, at: usize) -> Value<'_> {
    reply.field(row, at).unwrap_or(Value::Null)
}
