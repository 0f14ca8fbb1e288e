//! Which names are ours to give.

use kurabe_core::collection::Collection;
use kurabe_core::{Error, ErrorKind, Result};

/// Refuses what is no name for a collection of ours, or `kept` for something else, such as the marker.
pub(crate) fn check_name(name: &str, kept: &[impl AsRef<[u8]>]) -> Result<()> {
    if Collection::name_is_ours(name) && !kept.iter().any(|kept| kept.as_ref() == name.as_bytes()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotOurs, format!("'{name}' is not a name for a collection of Kurabe's"))
        .hint("such names start with kurabe_ and hold lower case letters, digits and underscores"))
}
