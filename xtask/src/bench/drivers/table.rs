//! What drivers send, as Markdown.

use std::fmt::Write as _;

use super::list::SERVERS;

/// What a connection carried before its first own statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    round_trips: u64,
    sent: u64,
    received: u64,
    statements: String,
}

/// The first connection of a process, and a further one if it made one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    first: Connection,
    next: Option<Connection>,
}

impl Measured {
    /// From the table of `kurabe wire`. Connections without an own statement are those that a driver uses itself.
    pub fn read(table: &str) -> Option<Self> {
        let mut connections = table.lines().filter_map(connection);
        let first = connections.next()?;
        Some(Self { first, next: connections.next_back() })
    }
}

fn connection(line: &str) -> Option<Connection> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let number = |at: usize| cells.get(at)?.parse().ok();
    Some(Connection {
        round_trips: number(3)?,
        sent: number(4)?,
        received: number(5)?,
        statements: (*cells.get(6)?).to_owned(),
    })
}

/// A driver's row.
pub struct Row {
    pub server: &'static str,
    pub name: &'static str,
    pub version: String,
    pub measured: Measured,
}

impl Row {
    pub fn markdown(&self) -> String {
        let Measured { first, next } = &self.measured;
        let both = |of: fn(&Connection) -> u64| match next {
            Some(next) if of(next) != of(first) => format!("{}, then {}", of(first), of(next)),
            _ => of(first).to_string(),
        };
        let statements = match next {
            Some(next) if next.statements != first.statements => {
                format!("first: {}<br>then: {}", first.statements, next.statements)
            }
            _ => first.statements.clone(),
        };
        format!(
            "| {} | {} | {} | {} | {} | {statements} |",
            self.name,
            self.version,
            both(|one| one.round_trips),
            both(|one| one.sent),
            both(|one| one.received)
        )
    }
}

/// The tables of docs/drivers.md.
pub fn tables(rows: &[Row]) -> String {
    let mut out = String::new();
    for server in SERVERS {
        let own: Vec<String> =
            rows.iter().filter(|row| row.server == server.title).map(Row::markdown).collect();
        if own.is_empty() {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "\n## {}\n\n| driver | version | round trips | bytes sent | bytes received | statements |\n\
             |---|---|--:|--:|--:|---|\n{}\n",
            server.title,
            own.join("\n")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_connection_with_an_own_statement_are_compared() {
        let table = "| connection | client | …\n|--:|---|\n\
                     | 1 | x | plain | – | – | – | no own statement | 1 | 2 | 3 |\n\
                     | 2 | x | plain | 4 | 10 | 20 | `A \\| B`<br>`C` | 5 | 6 | 7 |\n\
                     | 3 | x | plain | 2 | 10 | 9 | `C` | 5 | 6 | 7 |\n";
        let measured = Measured::read(table).unwrap();
        let row = Row { server: "x", name: "d", version: "1".to_owned(), measured };
        assert_eq!(
            row.markdown(),
            "| d | 1 | 4, then 2 | 10 | 20, then 9 | first: `A \\| B`<br>`C`<br>then: `C` |"
        );
        assert_eq!(Measured::read("| 1 | x | plain | – | – | – | no | 1 | 2 | 3 |\n"), None);
    }
}
