//! What is known of a driver before anything is opened.

use kurabe_core::Result;
use kurabe_core::driver::Driver;
use kurabe_core::target::TargetUrl;

/// An option that a target's URL may have: `?name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does and what it is by default, one line.
    pub help: &'static str,
}

/// A driver, as it is known before anything is opened.
#[derive(Debug)]
pub struct DriverInfo {
    /// The URL schemes that name it; the first is the usual one.
    pub schemes: &'static [&'static str],
    /// The engine's name as people write it.
    pub engine: &'static str,
    /// What it is and what it is good for here, one line.
    pub about: &'static str,
    /// The shape of its URL: `postgres://[user[:password]@]host[:port]/database`.
    pub url: &'static str,
    /// Its options; others are refused before [`DriverInfo::open`] is called.
    pub options: &'static [OptionInfo],
    /// Makes the driver. Reads nothing from the network: the server is first met by `connect` or `describe`.
    pub open: fn(&TargetUrl) -> Result<Box<dyn Driver>>,
}
