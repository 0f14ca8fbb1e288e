//! The words of `core` that every driver speaks.

pub(crate) use kurabe_core::collection::{Collection, FieldType};
pub(crate) use kurabe_core::driver::{
    Capabilities, ConnectOptions, ConnectTimes, Driver, Namespace, Prepared, Session, Support,
};
pub(crate) use kurabe_core::durability::DurabilityClass;
pub(crate) use kurabe_core::facts::{Limit, Limits, ServerFacts, Setting};
pub(crate) use kurabe_core::observation::Endpoint;
pub(crate) use kurabe_core::operation::Operation;
pub(crate) use kurabe_core::secret::Secret;
pub(crate) use kurabe_core::stats_probe::StatsProbe;
pub(crate) use kurabe_core::target::TargetUrl;
pub(crate) use kurabe_core::value::{Reply, Value};
pub(crate) use kurabe_core::{Error, ErrorKind, Result};
