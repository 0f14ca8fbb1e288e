//! The planted causes, and the expected attribution of each.

use crate::EMBEDDED;
use kurabe_report::attribution::Bottleneck;

/// A cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Nothing,
    ServerCpu,
    Network,
    Disk,
    Lock,
    ClientCpu,
    Table,
}

impl Kind {
    pub(super) const ALL: [Self; 7] =
        [Self::Nothing, Self::ServerCpu, Self::Network, Self::Disk, Self::Lock, Self::ClientCpu, Self::Table];

    /// Its name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::ServerCpu => "server-cpu",
            Self::Network => "network",
            Self::Disk => "disk",
            Self::Lock => "lock",
            Self::ClientCpu => "client-cpu",
            Self::Table => "table",
        }
    }

    /// The description in the table.
    pub(super) fn planted(self) -> &'static str {
        match self {
            Self::Nothing => "nothing: one client on a server with spare capacity",
            Self::ServerCpu => "the server may use a tenth to a fifth of one processor (control group)",
            Self::Network => "a relay delays each request by 20 to 40 ms",
            Self::Disk => "synced writes, and the disk takes 150 writes a second (control group)",
            Self::Lock => "another session locks every row for 50 of each 58 ms",
            Self::ClientCpu => "the client computes for 1 to 3 ms before each request",
            Self::Table => "before each read the server searches 20,000 rows without an index",
        }
    }

    /// The expected attribution on an engine of this name.
    pub(super) fn expected(self, engine: &str) -> Bottleneck {
        match self {
            Self::Nothing => Bottleneck::Latency,
            Self::Network => Bottleneck::Network,
            Self::Disk => Bottleneck::Disk,
            Self::Lock => Bottleneck::Locks,
            Self::ClientCpu => Bottleneck::ClientCpu,
            Self::Table if engine == EMBEDDED => Bottleneck::ProcessCpu,
            Self::ServerCpu | Self::Table => Bottleneck::ServerCpu,
        }
    }

    pub(super) fn writes(self) -> bool {
        matches!(self, Self::Disk | Self::Lock)
    }

    pub(super) fn clients(self) -> u64 {
        match self {
            Self::Network | Self::Lock => 4,
            _ => 1,
        }
    }

    pub(super) fn records(self) -> u64 {
        match self {
            Self::Lock => 8,
            Self::Table => 20_000,
            _ => 500,
        }
    }

    /// Why it cannot be planted on this engine.
    pub(super) fn why_not(self, engine: &str) -> Option<&'static str> {
        let served = engine != EMBEDDED;
        match self {
            Self::Nothing | Self::ServerCpu if !served => Some("there is no server apart from the client"),
            Self::Network if !served => Some("there is no way between client and database"),
            Self::ClientCpu if !served => Some("the client's CPU is the database's"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_unique_names_and_are_not_planted_where_meaningless() {
        for (n, kind) in Kind::ALL.iter().enumerate() {
            assert!(Kind::ALL[..n].iter().all(|other| other.name() != kind.name()));
            assert_eq!(kind.why_not("any server"), None);
        }
        assert!(Kind::Network.why_not(EMBEDDED).is_some());
        assert_eq!(Kind::Disk.why_not(EMBEDDED), None);
        assert_eq!(Kind::Table.expected(EMBEDDED), Bottleneck::ProcessCpu);
        assert_eq!(Kind::Table.expected("any server"), Bottleneck::ServerCpu);
    }
}
