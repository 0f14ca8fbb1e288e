//! Accounts as text and Markdown.

use crate::account::{Connecting, Connection, Encryption, End, Statement, Traffic};
use kurabe_core::text::cut;
use kurabe_core::units;
use serde::Serialize;
use std::fmt::Write as _;

/// The length to which statements are cut in texts, in characters.
const SHOWN: usize = 160;

/// All that a relay saw, as its JSON has it.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    /// The version of this format.
    pub version: u32,
    /// The server, without a password.
    pub target: &'a str,
    /// The connections in the order of opening.
    pub connections: &'a [Connection],
    /// The number of connections that are not listed, because there were too many.
    pub not_listed: u64,
    /// The number of connections of other accounts of this machine, which were refused.
    pub refused: u64,
    /// The traffic of the listed connections.
    pub traffic: Traffic,
    /// The exit status of the command; `None` if there was none, or if a signal ended it.
    pub command_status: Option<i32>,
}

impl<'a> Report<'a> {
    /// The version of the JSON.
    pub const VERSION: u32 = 1;

    pub fn new(target: &'a str, connections: &'a [Connection], not_listed: u64, refused: u64) -> Self {
        let traffic = connections.iter().fold(Traffic::default(), |sum, one| sum.plus(one.traffic));
        let version = Self::VERSION;
        Self { version, target, connections, not_listed, refused, traffic, command_status: None }
    }

    /// The last line: all connections together.
    pub fn total(&self) -> String {
        let left_out = match self.not_listed {
            0 => String::new(),
            n => format!("; not listed: {}", units::counted(n, "more connection")),
        };
        let refused = refused(self.refused);
        let count = self.connections.len() as u64;
        format!("{}: {}{left_out}{refused}\n", units::counted(count, "connection"), traffic(self.traffic))
    }

    /// A table in Markdown, with a row for each connection.
    pub fn markdown(&self) -> String {
        let mut out = "| connection | client | encryption | round trips | bytes sent | bytes received | statements before the first own one \
             | all round trips | all bytes sent | all bytes received |\n|--:|---|---|--:|--:|--:|---|--:|--:|--:|\n"
            .to_owned();
        for connection in self.connections {
            let Traffic { round_trips, sent_bytes, received_bytes } = connection.traffic;
            let before = connection.connecting.as_ref();
            let number =
                |of: fn(Traffic) -> u64| before.map_or("–".to_owned(), |one| of(one.traffic).to_string());
            let statements = match (before, &connection.unreadable, connection.encryption) {
                (None, _, Encryption::Tls) => "encrypted".to_owned(),
                (None, Some(why), _) => cell(why),
                (None, None, _) => "no own statement".to_owned(),
                (Some(one), ..) => cells(&one.statements),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} | {} | {statements} | {round_trips} | {sent_bytes} | {received_bytes} |",
                connection.number,
                cell(connection.client.as_deref().unwrap_or("–")),
                encryption(connection.encryption),
                number(|traffic| traffic.round_trips),
                number(|traffic| traffic.sent_bytes),
                number(|traffic| traffic.received_bytes),
            );
        }
        out
    }
}

/// A connection, in some lines.
pub fn text(connection: &Connection) -> String {
    let mut out = format!("connection {}", connection.number);
    if let Some(client) = &connection.client {
        let _ = write!(out, " of {client}");
    }
    let _ = writeln!(out, ": {}; {}", encryption(connection.encryption), end(&connection.end));
    for note in &connection.notes {
        let _ = writeln!(out, "  {note}");
    }
    if let Some(why) = &connection.unreadable {
        let _ = writeln!(out, "  statements could not be read: {why}");
    }
    match &connection.connecting {
        Some(Connecting { traffic: before, statements, first_own }) => {
            let _ = writeln!(out, "  before its first own statement: {}", traffic(*before));
            if statements.is_empty() {
                let _ = writeln!(out, "    no statements");
            }
            for statement in statements {
                let _ = writeln!(out, "    {}", line(statement));
            }
            let _ = writeln!(out, "  first own statement: {}", cut(first_own, SHOWN));
        }
        None if connection.encryption == Encryption::Tls => {
            let _ = writeln!(out, "  its statements are encrypted: bytes and round trips were counted");
        }
        None => {
            let _ = writeln!(out, "  no own statement was seen");
        }
    }
    let _ = writeln!(out, "  in all: {}", traffic(connection.traffic));
    for statement in &connection.statements {
        let _ = writeln!(out, "    {}", line(statement));
    }
    if connection.not_listed > 0 {
        let _ = writeln!(out, "    {} of other statements", units::counted(connection.not_listed, "request"));
    }
    out
}

/// A statement with its counts.
fn line(statement: &Statement) -> String {
    let Statement { as_text, prepared, executed, bound, .. } = *statement;
    let parts =
        [(as_text, "as text"), (prepared, "prepared"), (executed, "executed prepared"), (bound, "bound")];
    let ways: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, way)| format!("{} {way}", units::count(*count)))
        .collect();
    format!("{:<12}  {}", ways.join(", "), cut(&statement.text, SHOWN))
}

/// What is said of connections of other accounts after a total; empty if there were none.
pub fn refused(count: u64) -> String {
    let were = if count == 1 { "was" } else { "were" };
    if count == 0 {
        String::new()
    } else {
        format!("; {} of other accounts {were} refused", units::counted(count, "connection"))
    }
}

fn traffic(traffic: Traffic) -> String {
    format!(
        "{}, {} bytes sent, {} received",
        units::counted(traffic.round_trips, "round trip"),
        units::count(traffic.sent_bytes),
        units::count(traffic.received_bytes)
    )
}

fn encryption(encryption: Encryption) -> &'static str {
    match encryption {
        Encryption::Plain => "plain",
        Encryption::Refused => "plain, TLS was refused",
        Encryption::Tls => "TLS",
    }
}

fn end(end: &End) -> String {
    match end {
        End::Open => "still open".to_owned(),
        End::Client => "closed by the client".to_owned(),
        End::ClientReset => "the client died or did not read all".to_owned(),
        End::Server => "closed by the server".to_owned(),
        End::ServerReset => "the server died or did not read all".to_owned(),
        End::Relay => "closed by the relay at its end".to_owned(),
        End::Unreachable(why) => format!("the server could not be reached: {why}"),
    }
}

/// Statements in a cell of a table.
fn cells(statements: &[Statement]) -> String {
    if statements.is_empty() {
        return "none".to_owned();
    }
    let shown = statements.iter().map(|statement| {
        let times = match statement.executions() {
            0 => " (prepared)".to_owned(),
            1 => String::new(),
            n => format!(" ×{n}"),
        };
        format!("`{}`{times}", cell(&cut(without_comment(&statement.text), SHOWN)).replace('`', "'"))
    });
    shown.collect::<Vec<_>>().join("<br>")
}

/// A statement without the comment that it begins with: some drivers name themselves in it.
fn without_comment(text: &str) -> &str {
    let after =
        text.strip_prefix("/*").and_then(|comment| comment.split_once("*/")).map(|(_, after)| after.trim());
    after.filter(|after| !after.is_empty()).unwrap_or(text)
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        let traffic = |round_trips| Traffic { round_trips, sent_bytes: 1_200, received_bytes: 7 };
        let set = Statement {
            text: "/* by x */ SET a = 'x|y'".to_owned(),
            setup: true,
            as_text: 2,
            ..Statement::default()
        };
        let own = Statement { text: "SELECT 1".to_owned(), prepared: 1, executed: 3, ..Statement::default() };
        Connection {
            number: 1,
            client: Some("libx 1.0".to_owned()),
            encryption: Encryption::Refused,
            connecting: Some(Connecting {
                traffic: traffic(4),
                statements: vec![set.clone()],
                first_own: "SELECT 1".to_owned(),
            }),
            traffic: traffic(8),
            statements: vec![set, own],
            end: End::Client,
            ..Connection::default()
        }
    }

    #[test]
    fn text_says_what_happened_before_the_first_own_statement() {
        assert_eq!(
            text(&connection()),
            "connection 1 of libx 1.0: plain, TLS was refused; closed by the client\n  \
             before its first own statement: 4 round trips, 1,200 bytes sent, 7 received\n    \
             2 as text     /* by x */ SET a = 'x|y'\n  \
             first own statement: SELECT 1\n  \
             in all: 8 round trips, 1,200 bytes sent, 7 received\n    \
             2 as text     /* by x */ SET a = 'x|y'\n    \
             1 prepared, 3 executed prepared  SELECT 1\n"
        );
    }

    #[test]
    fn markdown_has_a_row_for_each_connection() {
        let connections = [connection(), Connection { number: 2, ..Connection::default() }];
        let report = Report::new("x:", &connections, 0, 0);
        let table = report.markdown();
        let rows: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "| 1 | libx 1.0 | plain, TLS was refused | 4 | 1200 | 7 | `SET a = 'x\\|y'` ×2 | 8 | 1200 | 7 |",
                "| 2 | – | plain | – | – | – | no own statement | 0 | 0 | 0 |"
            ]
        );
        assert_eq!(report.total(), "2 connections: 8 round trips, 1,200 bytes sent, 7 received\n");
    }
}
