//! The rows of a table of the source: one query, whose answer is read in pages as it arrives. Rows come in the order of a key, or of the
//! places where the source keeps them, and a later process can continue after the last one.

use crate::canonical::{Reading, push, push_mended};
use crate::engines::engine::Engine;
use crate::engines::queries::expression_of;
use crate::page::{BINARY, Cell, Encoded, Page, whole_of_tuple};
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
    sql: String,
    /// The values of the gaps in `sql`, each in a row: fields of the key after which rows are read.
    parameters: Page,
    /// The positions in a row of the key's fields.
    key: Vec<usize>,
    /// What verification reads of each row.
    checks: Option<Checks<'a>>,
    /// Whether rows come as the tuples that the target loads. The key's fields are then those of a tuple.
    is_tuples: bool,
    /// Whether rows come in the order of their places.
    has_places: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the rows of a range after the one with the key `after`. `digests`: also of what verification reads of them.
    pub fn new(
        engine: &Engine,
        table: &'a TablePlan,
        after: Option<&Page>,
        bounds: Range,
        digests: bool,
    ) -> Result<Self> {
        let place = engine.place.filter(|_| matches!(table.resume, Resume::Hidden(_)));
        // The query of tuples has no parameters.
        let is_free = (after.is_none() || place.is_some()) && !digests;
        let pass = engine.pass_through.filter(|_| is_free && passes_in_binary(engine, table));
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
                    match expression_of(engine, "with_storage_class", &name) {
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
                let name = format!("{ROWS}.{name}");
                let number = expression_of(engine, "place_number", &name).filter(|_| pass.is_none());
                list.push(number.unwrap_or_else(|| name.clone()));
                fields.push((name, Kind::whole()));
            }
            Resume::Restart => {}
        }
        let mut checks = digests.then(|| Checks::new(engine, table, Of::Source)).transpose()?;
        if let Some(checks) = &mut checks {
            checks.first = list.len();
            list.extend(checks.list.iter().cloned());
        }
        let mut sql = format!("SELECT {} FROM {} {ROWS}", list.join(", "), table.from);
        let mut parameters = Page::new(1);
        let mut conditions: Vec<String> = table.filter.iter().map(|filter| format!("({filter})")).collect();
        if let Some((first, _)) = fields.first() {
            let bound = |at: i64| place.map_or(at.to_string(), |literal| literal(at));
            conditions.extend(bounds.from.map(|from| format!("{first} >= {}", bound(from))));
            conditions.extend(bounds.to.map(|to| format!("{first} < {}", bound(to))));
        }
        if let Some(after) = after {
            if after.width() != fields.len() {
                return Err(Error::new(ErrorKind::Damaged, "the state of the copy has another key")
                    .hint("begin again with --no-resume"));
            }
            let terms = (0..fields.len()).map(|last| {
                let mut terms: Vec<String> = Vec::new();
                for (at, (name, kind)) in fields.iter().enumerate().take(last + 1) {
                    let sign = if at == last { ">" } else { "=" };
                    let sign = (engine.sign)([kind.declared.as_str(); 2], sign);
                    let gap = engine.dialect.compared(kind, after.cell(0, at));
                    terms.push(format!("{name} {sign} {gap}"));
                    parameters.push(after.cell(0, at));
                }
                format!("({})", terms.join(" AND "))
            });
            conditions.push(match (place, after.cell(0, 0)) {
                (Some(literal), Cell::Int(place)) => format!("{} > {}", fields[0].0, literal(place)),
                _ => format!("({})", terms.collect::<Vec<String>>().join(" OR ")),
            });
        }
        sql.push_str(&all_of(conditions));
        if !fields.is_empty() && place.is_none() {
            // Writing to a String cannot fail.
            let by: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
            let _ = write!(sql, " ORDER BY {}", by.join(", "));
        }
        debug_assert_eq!(sql.matches(GAP).count(), parameters.rows());
        let sql = pass.map_or_else(|| sql.clone(), |(send, _)| send(&sql));
        let (is_tuples, has_places) = (pass.is_some(), place.is_some());
        Ok(Self { table, sql, parameters, key, checks, is_tuples, has_places })
    }

    /// Passes on all rows, in canonical form and as the target holds them, with the key of each page's last row.
    pub fn read(&self, side: &mut Side, each: &mut dyn FnMut(Read) -> Result<()>) -> Result<()> {
        let (engine, TablePlan { name, columns, .. }) = (side.engine, self.table);
        let rows = 0..self.parameters.rows();
        let parameters = rows.map(|row| engine.dialect.as_read(self.parameters.cell(row, 0)));
        let parameters = parameters.collect::<Result<Vec<Encoded<'_>>>>()?;
        let values: Vec<Value<'_>> = parameters.iter().map(Encoded::value).collect();
        let set = |name| expression_of(engine, name, "");
        set("by_place").map_or(Ok(()), |sql| side.run(&sql))?;
        side.pages(&self.sql, &values, self.table.page, &mut |reply| {
            if self.is_tuples {
                let (page, last) = self.passed_through(reply);
                let last = self.key_of(&|at| whole_of_tuple(last, at).map_or(Value::Null, Value::Int))?;
                return if page.rows() == 0 {
                    Ok(())
                } else {
                    each(Read { page, last, digests: Vec::new() })
                };
            }
            let (mut page, hex) = (Page::new(columns.len()), engine.bytes_as_hex);
            for row in 0..reply.rows() {
                for (at, column) in columns.iter().enumerate() {
                    let reading = Reading { class: column.kind.class, hex, exact: column.exact };
                    let pushed = push_mended(reading, column.mend.as_ref(), field(reply, row, at), &mut page);
                    pushed.map_err(|error| error.context(format!("source, {name}.{}", column.name)))?;
                }
            }
            let (mut digests, mut forms) = (Vec::new(), Forms::default());
            if let Some(checks) = &self.checks {
                let all = (0..reply.rows()).map(|row| checks.digests(reply, row, &mut forms));
                digests = all.collect::<Result<_>>()?;
            }
            let last = self.key_of(&|at| field(reply, reply.rows() - 1, at))?;
            each(Read { page, last, digests })
        })?;
        set("after_by_place").map_or(Ok(()), |sql| side.run(&sql))
    }

    /// The key of a row with these fields, as the source has it.
    fn key_of<'v>(&self, field: &dyn Fn(usize) -> Value<'v>) -> Result<Option<Page>> {
        let mut key = Page::new(self.key.len());
        self.key.iter().try_for_each(|at| push(Reading::RAW, field(*at), &mut key))?;
        Ok(Some(key).filter(|_| !self.key.is_empty()))
    }

    /// The tuples as they came but for the place, which is the last field, and the last one as it came. The header comes with the first
    /// tuple, and the trailer as a further one.
    fn passed_through<'r>(&self, reply: &'r Reply) -> (Page, &'r [u8]) {
        let (mut page, mut last) = (Page::new(1), &[][..]);
        page.is_tuples = true;
        let [begin, end] = BINARY;
        let rows = (0..reply.rows()).filter_map(|row| reply.field_bytes(row, 0));
        let tuples = rows.map(|row| row.strip_prefix(begin).unwrap_or(row)).filter(|tuple| *tuple != end);
        for tuple in tuples {
            match without_last(tuple).filter(|_| self.has_places) {
                Some((count, fields)) => page.push_parts([&count, fields]),
                None => page.push(Cell::Bytes(tuple)),
            }
            last = tuple;
        }
        (page, last)
    }
}

/// The number of a tuple's fields without the last one, the row's place of six bytes and their length, and those fields.
fn without_last(tuple: &[u8]) -> Option<([u8; 2], &[u8])> {
    let (count, fields) = tuple.split_first_chunk::<2>()?;
    let (fields, _place) = fields.split_last_chunk::<10>()?;
    Some((u16::from_be_bytes(*count).checked_sub(1)?.to_be_bytes(), fields))
}

/// Whether all values go to the target as they are, and a tuple shows how far the copy is. Generated columns are not loaded.
fn passes_in_binary(engine: &Engine, table: &TablePlan) -> bool {
    let is_as_it_is = |column: &ColumnPlan| {
        let own = engine.dialect.read(&column.kind, &quoted(engine, &column.name));
        column.has_binary && column.written && column.mend.is_none() && column.read == own
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
