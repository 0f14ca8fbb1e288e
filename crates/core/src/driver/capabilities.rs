//! What a driver supports besides executing one operation after the other.

use super::Support;

/// What a driver supports besides executing one operation after the other.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Whether the server can prepare an operation once and execute it many times, so that preparing once and per
    /// request differ.
    pub prepared_statements: Support,
    /// Whether an operation can be sent as text with literals ([`Session::prepare_literal`](super::Session::prepare_literal)).
    pub literals: Support,
    /// Whether requests can be sent before earlier replies have arrived ([`Session::pipeline`](super::Session::pipeline)).
    pub pipelining: Support,
    /// Whether the optimizer's row estimates can be read ([`Planner`](super::Planner)).
    pub estimates: Support,
    /// Whether text can be stored in Latin-1 ([`Charset::Latin1`](crate::collection::Charset)).
    pub latin1: Support,
    /// Whether rows can expire ([`Collection::expires`](crate::collection::Collection::expires)).
    pub expiry: Support,
    /// Whether the target is an application that serves experiments (`docs/app.openapi.yaml`), not a database.
    /// Its sessions support only [`Page`](crate::operation::Operation::Page), and it manages its own data.
    pub is_application: bool,
    /// Whether the database belongs to this driver alone and is deleted with it. Opening its URL again creates
    /// another one.
    pub is_temporary: bool,
    /// Whether many sessions can share a thread. They can if they wait in the crate `kurabe-reactor` only. Any other
    /// wait, such as that of a client library, would stop all clients of the thread.
    pub shared_threads: Support,
    /// Whether the server refuses every change of a session that is opened with [`Access::ReadOnly`](super::Access::ReadOnly). A session of a
    /// driver that says no may write, whatever its options say.
    pub read_only_sessions: Support,
    /// Whether settings, locks and temporary tables stay with a session. They do not behind a pooler that shares
    /// connections.
    pub own_sessions: Support,
    pub pace: Pace,
}

/// How fast a database loads and finds small rows, on the machine of the tests. Announced times count it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Rows loaded, counted and read back in a second, many in a request.
    pub loaded_per_second: f64,
    /// Rows read in a second to find one by a whole number; `None` if an index finds it.
    pub scanned_per_second: Option<f64>,
}

/// Why a driver has no read-only sessions, unless it says otherwise.
const WRITES: &str = "its driver opens no sessions in which the server refuses to write; allow writes with --write, or \
                      'write = true' in the file of the workload";

/// Why most clients cannot share a thread.
const BLOCKS: &str = "each request blocks the thread of its session";

impl Capabilities {
    /// The capabilities of a client that prepares statements and can also write values into their text.
    pub fn of_sql(pipelining: Support) -> Self {
        Self {
            prepared_statements: Support::Native,
            literals: Support::Native,
            pipelining,
            estimates: Support::no("its driver does not read the optimizer's estimates"),
            latin1: Support::no(
                "a table has the character set of its database, which Kurabe does not create",
            ),
            expiry: Support::Native,
            is_application: false,
            is_temporary: false,
            shared_threads: Support::no(BLOCKS),
            read_only_sessions: Support::no(WRITES),
            own_sessions: Support::Native,
            pace: Pace { loaded_per_second: 300e3, scanned_per_second: None },
        }
    }

    /// The capabilities of a database without statements; `engine` names it in the reason.
    pub fn without_statements(engine: &str, pipelining: Support) -> Self {
        let no = Support::No(format!("{engine} has no statements to prepare"));
        Self {
            prepared_statements: no.clone(),
            literals: no,
            estimates: Support::No(format!("{engine} has no optimizer that estimates rows")),
            latin1: Support::No(format!("{engine} has no character sets")),
            expiry: Support::No(format!("{engine} does not remove rows by their time")),
            ..Self::of_sql(pipelining)
        }
    }

    /// The same capabilities, of sessions that can share a thread.
    #[must_use]
    pub fn sharing_threads(self) -> Self {
        Self { shared_threads: Support::Native, ..self }
    }

    /// The capability of this kind.
    pub fn get(&self, capability: Capability) -> &Support {
        match capability {
            Capability::PreparedStatements => &self.prepared_statements,
            Capability::Literals => &self.literals,
            Capability::Pipelining => &self.pipelining,
            Capability::Estimates => &self.estimates,
            Capability::Latin1 => &self.latin1,
            Capability::Expiry => &self.expiry,
            Capability::ReadOnlySessions => &self.read_only_sessions,
            Capability::OwnSessions => &self.own_sessions,
        }
    }
}

/// A capability that a workload may need of its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// [`Capabilities::prepared_statements`].
    PreparedStatements,
    /// [`Capabilities::literals`].
    Literals,
    /// [`Capabilities::pipelining`].
    Pipelining,
    /// [`Capabilities::estimates`].
    Estimates,
    /// [`Capabilities::latin1`].
    Latin1,
    /// [`Capabilities::expiry`].
    Expiry,
    /// [`Capabilities::read_only_sessions`].
    ReadOnlySessions,
    /// [`Capabilities::own_sessions`].
    OwnSessions,
}
