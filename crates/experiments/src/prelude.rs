//! The types that most experiments use, so that a module imports by name only what is special to it.

pub(crate) use crate::content::RowData;
pub(crate) use crate::statement::{Bind, Statement};
pub(crate) use kurabe_core::axis::{AxisInfo, AxisKind, AxisValue, Cell};
pub(crate) use kurabe_core::collection::{Collection, Field, FieldType};
pub(crate) use kurabe_core::driver::{Capability, Namespace, Prepared, Session};
pub(crate) use kurabe_core::experiment::{
    After, Answer, Before, Checked, Client, ClientSummary, Dataset, DatasetState, Experiment, ExperimentInfo,
    OperationInfo, Recorder, Transaction, Workload,
};
pub(crate) use kurabe_core::metric::{Better, Metric, MetricValue, Unit};
pub(crate) use kurabe_core::operation::Operation;
pub(crate) use kurabe_core::page::{self, ServedPages};
pub(crate) use kurabe_core::planned::{
    CacheNeed, Capacity, Connections, Demand, LoopPolicy, Need, NeededSetting, PlannedCell,
};
pub(crate) use kurabe_core::value::{Reply, Value};
pub(crate) use kurabe_core::verification::Verification;
pub(crate) use kurabe_core::{Error, ErrorKind, Result, units};
pub(crate) use kurabe_stats::rng::{Rng, mix};
pub(crate) use std::sync::Arc;
