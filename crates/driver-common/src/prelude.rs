//! Items that drivers use.

pub use crate::datetime::DateTime;
pub use crate::info::{Connections, DriverInfo, ForeignOption, Meaning, OptionInfo, ServerPlace};
pub use crate::ownership::Owned;
pub use crate::packed::with_fields;
pub use crate::slots::check_parameters;
pub use crate::wire::malformed;
pub use kurabe_core::collection::{Collection, FieldType};
pub use kurabe_core::compression::Compression;
pub use kurabe_core::driver::{
    Bulk, Cache, CacheCounters, Capabilities, ConnectOptions, ConnectTimes, Driver, Links, Namespace,
    Planner, Prepared, RawMessages, Receive, RowEstimate, Session, Support, TableStatistics, no_remote,
};
pub use kurabe_core::dump::DumpTool;
pub use kurabe_core::durability::DurabilityClass;
pub use kurabe_core::facts::{Limit, Limits, ServerFacts, ServerIdentity, Setting};
pub use kurabe_core::memory::LimitedServer;
pub use kurabe_core::observation::Endpoint;
pub use kurabe_core::operation::{NO_FLOW, Operation};
pub use kurabe_core::secret::Secret;
pub use kurabe_core::stats_probe::{
    Clients, Counter, CounterScope, EngineCount, Reading, SessionSample, SnapshotPoint, StatementUse,
    StatsProbe, WaitState, shortened,
};
pub use kurabe_core::target::TargetUrl;
pub use kurabe_core::transfer::{Fetch, Moved, Pages, RowSink, RowSource, Transfer};
pub use kurabe_core::value::{Reply, Value};
pub use kurabe_core::{Error, ErrorKind, Result, without};
