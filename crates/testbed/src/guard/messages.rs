//! What a tool and its guard say to each other: a line of JSON each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::TestbedError;

/// From the tool, after the [`crate::options::Spec`]. There is none to stop: the tool closes the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Kill the server like a power cut would.
    Kill,
    /// Start it again on its data and its port, after [`Order::Kill`] or in place of the one that runs.
    Restart,
    /// Hold all its processes still.
    Pause,
    /// Let them go on.
    Resume,
}

/// From the guard.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The server answers.
    Ready(Facts),
    /// An order was carried out.
    Done,
    /// The start or an order failed. After a failed start the guard cleans up and exits.
    Failed(TestbedError),
    /// The server ended, and nobody asked for it.
    Died(String),
}

/// Where the server is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub url: String,
    pub port: u16,
    pub socket: Option<PathBuf>,
    pub pid: u32,
    pub version: String,
    pub program: PathBuf,
    pub dir: PathBuf,
    pub log: PathBuf,
    pub ca: Option<PathBuf>,
}
