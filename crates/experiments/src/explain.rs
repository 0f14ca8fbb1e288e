//! How a server executes a statement, by its `EXPLAIN`.

use crate::prelude::*;
use kurabe_core::query_plan::{QueryPlan, STEP};
use kurabe_core::raw::{RawPiece, RawStatement, RawText};

/// Whether the statement is executed for its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Explain {
    /// It is, and the plan has what it did.
    Execute,
    /// It is only planned.
    Plan,
}

/// What precedes a statement, by the engine's word: the first that a server knows counts.
const EXECUTED: [(&str, &[&str]); 3] = [
    ("postgres", &["EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) ", "EXPLAIN "]),
    ("mysql", &["EXPLAIN ANALYZE ", "ANALYZE ", "EXPLAIN "]),
    ("sqlite", &["EXPLAIN QUERY PLAN "]),
];
const PLANNED: [(&str, &[&str]); 3] = [
    ("postgres", &["EXPLAIN "]),
    ("mysql", &["EXPLAIN FORMAT=TREE ", "EXPLAIN "]),
    ("sqlite", &["EXPLAIN QUERY PLAN "]),
];

/// The longest plan that is kept, in lines.
const LINES: usize = 60;
/// The characters of a line.
const WIDTH: usize = 300;

/// The plan of a statement with these values in its text. `None` if the server has no such request, or refuses it.
///
/// # Errors
/// If the connection is lost.
pub(crate) fn plan(
    session: &mut dyn Session,
    name: &str,
    statement: &RawStatement,
    values: &[Value<'_>],
    how: Explain,
) -> Result<Option<QueryPlan>> {
    let ways = if how == Explain::Execute { &EXECUTED } else { &PLANNED };
    let most = ways.iter().map(|(_, ways)| ways.len()).max().unwrap_or(0);
    for way in 0..most {
        let texts = ways.iter().filter_map(|(engine, ways)| {
            let prefix = ways.get(way).or_else(|| ways.last())?;
            let RawText { pieces, .. } = statement.text(&[engine])?;
            let pieces = [RawPiece::Text((*prefix).to_owned())].into_iter().chain(pieces.iter().cloned());
            Some(RawText { engine: Some((*engine).to_owned()), pieces: pieces.collect() })
        });
        let asked = RawStatement { texts: texts.collect(), ..statement.clone() };
        let mut reply = Reply::new();
        let prepared = session.prepare_literal(&Operation::Raw { statement: Arc::new(asked) });
        let done = prepared.and_then(|prepared| {
            let done = session.execute(&prepared, values, &mut reply);
            session.release(prepared).and(done)
        });
        match done {
            Ok(()) => {
                let lines = lines(&reply);
                let text = text_of(statement, values);
                return Ok((!lines.is_empty()).then(|| QueryPlan {
                    statement: name.to_owned(),
                    text,
                    lines,
                }));
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionLost | ErrorKind::Protocol) => {
                return Err(error);
            }
            Err(_) => {}
        }
    }
    Ok(None)
}

/// The statement with its values, on one line.
fn text_of(statement: &RawStatement, values: &[Value<'_>]) -> String {
    let mut values = values.iter();
    let Some(text) = statement.texts.first() else { return String::new() };
    let piece = |piece: &RawPiece| match piece {
        RawPiece::Text(text) | RawPiece::Table(text) => text.clone(),
        RawPiece::Parameter => values.next().map_or_else(|| "?".to_owned(), |value| shown(*value)),
    };
    let text: String = text.pieces.iter().map(piece).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A value as a text.
pub(crate) fn shown(value: Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) | Value::Time(number) => number.to_string(),
        Value::Text(text) => text.to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Bool(value) => value.to_string(),
    }
}

/// The lines of a plan, from the rows of an answer.
fn lines(reply: &Reply) -> Vec<String> {
    let field = |row: usize, column: usize| reply.field(row, column).map_or_else(String::new, shown);
    let rows = 0..reply.rows();
    let lines: Vec<String> = match reply.width() {
        0 => Vec::new(),
        // A tree of the engine's own: PostgreSQL's first line has no arrow.
        1 => {
            let text: Vec<String> = rows.map(|row| field(row, 0)).collect();
            let first = |line: &str| !line.trim_start().starts_with("->");
            let each = text.iter().flat_map(|text| text.lines()).enumerate();
            each.map(|(n, line)| if n == 0 && first(line) { format!("{STEP}{line}") } else { tidy(line) })
                .collect()
        }
        // SQLite: id, parent, and what is done.
        4 => {
            let mut depths: Vec<(String, usize)> = Vec::new();
            let line = |row: usize| {
                let depth =
                    depths.iter().find(|(id, _)| *id == field(row, 1)).map_or(0, |(_, depth)| depth + 1);
                depths.push((field(row, 0), depth));
                format!("{}{STEP}{}", "  ".repeat(depth), field(row, 3))
            };
            rows.map(line).collect()
        }
        // MySQL's and MariaDB's tables: with partitions, and with what was counted.
        width => {
            let [kind, key, estimated, counted] = match width {
                12 => [4, 6, 9, usize::MAX],
                13 => [3, 5, 8, 9],
                _ => [3, 5, 8, usize::MAX],
            };
            let line = |row: usize| {
                let after = |before: &str, column: usize| match field(row, column).as_str() {
                    "" | "NULL" => String::new(),
                    value => format!("{before}{value}"),
                };
                let (index, more) = (after(" using ", key), after(": ", width - 1));
                let counted = if counted < width { after(" actual rows=", counted) } else { String::new() };
                let (kind, table, estimated) = (field(row, kind), field(row, 2), field(row, estimated));
                format!("{STEP}{kind} on {table}{index}{more}  (rows={estimated}{counted})")
            };
            rows.map(line).collect()
        }
    };
    lines.into_iter().take(LINES).map(|line| line.chars().take(WIDTH).collect()).collect()
}

/// A line with one space behind its arrow.
fn tidy(line: &str) -> String {
    match line.split_once("->") {
        Some((before, step)) if before.trim().is_empty() => format!("{before}{STEP}{}", step.trim_start()),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(rows: &[&[&str]]) -> Reply {
        let mut reply = Reply::new();
        for row in rows {
            for field in *row {
                match field.parse() {
                    Ok(number) => reply.push_int(number),
                    Err(_) => reply.push_bytes(field.as_bytes()),
                }
            }
            reply.end_row();
        }
        reply
    }

    #[test]
    fn answers_of_each_engine_are_steps() {
        let postgres =
            reply(&[&["Aggregate  (cost=1)"], &["  ->  Seq Scan on t  (cost=2)"], &["        Filter: a"]]);
        assert_eq!(
            lines(&postgres),
            ["-> Aggregate  (cost=1)", "  -> Seq Scan on t  (cost=2)", "        Filter: a"]
        );
        let mysql = reply(&[&["-> Filter: (a > 1)  (cost=1)\n    -> Table scan on t  (cost=2)\n"]]);
        assert_eq!(lines(&mysql), ["-> Filter: (a > 1)  (cost=1)", "    -> Table scan on t  (cost=2)"]);
        let sqlite = reply(&[&["2", "0", "0", "SCAN t"], &["5", "2", "0", "SEARCH u USING INDEX k (a=?)"]]);
        assert_eq!(lines(&sqlite), ["-> SCAN t", "  -> SEARCH u USING INDEX k (a=?)"]);
        let row = [
            "1", "SIMPLE", "t", "ref", "k", "k", "4", "const", "10", "10.00", "100.00", "90.00",
            "Using where",
        ];
        assert_eq!(lines(&reply(&[&row])), ["-> ref on t using k: Using where  (rows=10 actual rows=10.00)"]);
        assert!(lines(&Reply::new()).is_empty());
    }
}
