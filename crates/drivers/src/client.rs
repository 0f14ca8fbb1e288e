//! Which client speaks to a server that two are there for: our own, or the well-known crate.

use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};

/// Whether `client=driver` asks for the crate; ours is `client=lean`, and the one where nothing is said.
pub(crate) fn is_wrapped(url: &TargetUrl) -> Result<bool> {
    match url.option("client") {
        None | Some("lean") => Ok(false),
        Some("driver") => Ok(true),
        Some(other) => {
            Err(Error::usage(format!("{}: client={other} is unknown", url.scheme)).hint("lean or driver"))
        }
    }
}
