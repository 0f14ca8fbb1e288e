//! Every driver there is. Help, docs, the support matrix and the test matrix are made from this table.

use kurabe_core::driver::Driver;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result, units};

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

/// All drivers, one line each, in the order in which they are listed.
pub static DRIVERS: &[&DriverInfo] =
    &[&crate::sqlite::INFO, &crate::postgres::INFO, &crate::mysql::INFO, &crate::null::INFO];

/// The driver that a scheme names.
pub fn find(scheme: &str) -> Option<&'static DriverInfo> {
    DRIVERS.iter().copied().find(|driver| driver.schemes.contains(&scheme))
}

/// Every scheme, in the order of [`DRIVERS`].
pub fn schemes() -> Vec<&'static str> {
    DRIVERS.iter().flat_map(|driver| driver.schemes.iter().copied()).collect()
}

/// Makes the driver of a target. No connection is opened yet.
///
/// # Errors
/// [`Usage`](kurabe_core::ErrorKind::Usage) for a scheme or an option that there is not, with the nearest that
/// there is; or what the driver says of the rest of the URL.
pub fn open(url: &TargetUrl) -> Result<Box<dyn Driver>> {
    let Some(driver) = find(&url.scheme) else {
        let known = schemes();
        let list = format!("known: {}", known.iter().map(|s| format!("{s}:")).collect::<Vec<_>>().join(", "));
        let hint = units::nearest(&url.scheme, &known)
            .map_or_else(|| list.clone(), |near| format!("did you mean '{near}:'? ({list})"));
        return Err(Error::usage(format!("no driver for '{}:'", url.scheme)).hint(hint));
    };
    let options: Vec<&str> = driver.options.iter().map(|option| option.name).collect();
    url.check_options(&options)?;
    (driver.open)(url)
}
