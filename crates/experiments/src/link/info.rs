//! What the experiment asks, what it varies and what it reports.

use crate::axes::{CLIENTS, choice, reads};
use crate::prelude::*;
use kurabe_core::axis::Words;
use kurabe_core::collection::Charset;
use kurabe_core::remote::RemoteServer;

const READ: &str = "read";
/// Default number of rows. The original has a million.
pub(super) const RECORDS: u64 = 20_000;

const LOCAL: &str = "local";
const DIRECT: &str = "direct";
/// The fetch size of the engine.
const DEFAULT: &str = "default";

/// The ways to read the rows. Each that is an engine's own has the name by which its driver knows it.
const WAYS: Words = &[
    (LOCAL, "from a table of the target, without a link"),
    (DIRECT, "from the other server by the client, without a link"),
    ("fdw", "a foreign table of postgres_fdw"),
    ("mysql-fdw", "a foreign table of mysql_fdw, which reads MySQL and MariaDB"),
    ("dblink", "a query sent by dblink"),
    ("attach", "an attached file of SQLite"),
    ("federated", "a FEDERATED table of MySQL or MariaDB"),
    ("connect", "a CONNECT table of MariaDB"),
    ("spider", "a Spider table of MariaDB"),
    ("database-link", "a database link of Oracle"),
];

/// The time of a read for each of its rows.
pub(super) const ROW: Metric =
    Metric::new("time per row", Unit::Nanoseconds, Better::Lower, "time of a read for each of its rows")
        .primary();

pub(super) static INFO: ExperimentInfo = ExperimentInfo {
    name: "link",
    question: "What does it cost that a database reads another one's table?",
    about: "Reads a table in ranges of its key, over and over, through the database's own means of reading another \
            server's tables: foreign tables of PostgreSQL (postgres_fdw, mysql_fdw) and its dblink, the storage engines FEDERATED, \
            CONNECT and Spider of MySQL and MariaDB, and attached files of SQLite. The table is on a \
            second instance that is started beside a throwaway server, on the same server, or on the server that --remote names. Two \
            baselines are read in the same run: a table of the database itself (local), and the other server's table \
            by Kurabe's client (direct). Every row is compared byte for byte. --charset utf8,latin1,to-latin1 shows what it costs if the \
            servers must convert text (MySQL and MariaDB). The report shows sessions and statements \
            of both servers, and the CPU time of each. --records 1m --batch 50k are the sizes of the published \
            experiment (link.csv).",
    axes: &[
        // By default without Oracle's, which is not available yet, and without mysql_fdw, which needs --remote.
        AxisInfo::new(
            "way",
            "how the rows are read",
            AxisKind::choice(WAYS),
            &[LOCAL, DIRECT, "fdw", "dblink", "attach", "federated", "connect", "spider"],
        ),
        AxisInfo::new(
            "where",
            "where the other table is",
            AxisKind::choice(&[
                ("same", "on the target's own server"),
                ("second", "on a second instance: another process on this host, or another file"),
                (
                    "host",
                    "on a second host: another network namespace, behind a link with an MTU of 1,500 (up: targets, as root)",
                ),
                ("host-9000", "the same, with an MTU of 9,000"),
                ("remote", "on the server that --remote names"),
            ]),
            &["second"],
        ),
        AxisInfo::new(
            "fetch",
            "rows per round trip between the servers, where the engine has such a setting (postgres_fdw)",
            AxisKind::count(1, 1_000_000).or(&[(DEFAULT, "that of the engine; 100 for postgres_fdw")]),
            &[DEFAULT],
        ),
        // A short read shows the way, a long one what each row costs.
        AxisInfo::new("batch", "rows of one read", AxisKind::count(1, 1_000_000), &["10", "5000"]),
        AxisInfo::new(
            "row-bytes",
            "bytes of one row, beside its key",
            AxisKind::size(16, 1_000_000),
            &["1k"],
        ),
        AxisInfo::new(
            CHARSET,
            "letters of the text, and the character sets of the two tables",
            AxisKind::choice(&[
                ("ascii", "ASCII; Unicode in both tables"),
                ("utf8", "a quarter in accented letters; Unicode in both tables"),
                ("latin1", "the same text; Latin-1 in the other server's table, Unicode in the target's"),
                ("to-latin1", "the same text; Unicode in the other server's table, Latin-1 in the target's"),
            ]),
            &["ascii"],
        ),
        CLIENTS,
    ],
    operations: &[reads(READ, "read one range of rows", 200)],
    metrics: &[Metric::cost("way", "time per read beyond that of the local table"), ROW],
    chart_axis: "batch",
    answer: Answer::Metrics,
    published: Some("link"),
};

const CHARSET: &str = "charset";

/// The text of a cell and its character sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Texts {
    /// Whether rows have letters that are not in ASCII.
    pub(super) accented: bool,
    /// The character set of the table with the rows.
    pub(super) source: Charset,
    /// That of the table that reads it over the link.
    pub(super) linked: Charset,
}

impl Texts {
    pub(super) fn of(cell: &Cell) -> Result<Self> {
        use Charset::{Latin1, Unicode};
        let texts = |accented, source, linked| Self { accented, source, linked };
        let all = [
            ("ascii", texts(false, Unicode, Unicode)),
            ("utf8", texts(true, Unicode, Unicode)),
            ("latin1", texts(true, Latin1, Unicode)),
            ("to-latin1", texts(true, Unicode, Latin1)),
        ];
        choice(&INFO, cell, CHARSET, &all)
    }

    /// The end of the name of the table with the rows.
    pub(super) fn suffix(self) -> &'static str {
        match (self.accented, self.source) {
            (false, _) => "",
            (true, Charset::Unicode) => "_u",
            (true, Charset::Latin1) => "_l",
        }
    }

    /// Whether a table must be stored in Latin-1.
    pub(super) fn needs_latin1(self) -> bool {
        [self.source, self.linked].contains(&Charset::Latin1)
    }
}

/// How a cell reads its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Local,
    Direct,
    /// By this means of the engine.
    Link(&'static str),
}

impl Way {
    pub(super) fn of(cell: &Cell) -> Result<Self> {
        match cell.word("way")? {
            LOCAL => Ok(Self::Local),
            DIRECT => Ok(Self::Direct),
            word => WAYS
                .iter()
                .find(|(way, _)| *way == word)
                .map(|(way, _)| Self::Link(way))
                .ok_or_else(|| Error::new(ErrorKind::Internal, format!("link: unknown way '{word}'"))),
        }
    }
}

/// The server with the other table.
pub(super) fn server(cell: &Cell) -> Result<RemoteServer> {
    let word = cell.word("where")?;
    RemoteServer::ALL
        .into_iter()
        .find(|server| server.name() == word)
        .ok_or_else(|| Error::new(ErrorKind::Internal, format!("link: unknown place '{word}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_the_axes_has_a_meaning() {
        let kind = |axis: &str| INFO.axes.iter().find(|info| info.name == axis).unwrap().kind;
        let words = |axis: &str| kind(axis).words.iter().map(|(word, _)| *word);
        for word in words("way") {
            Way::of(&INFO.baseline(&[("way", word)]).unwrap()).unwrap();
        }
        for word in words(CHARSET) {
            Texts::of(&INFO.baseline(&[(CHARSET, word)]).unwrap()).unwrap();
        }
        for word in words("where") {
            server(&INFO.baseline(&[("where", word)]).unwrap()).unwrap();
        }
    }
}
