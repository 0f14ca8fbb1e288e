//! Claims: statements about databases, each with the suite that tests it. Some ship with the program; users write theirs.

mod definition;
mod earlier;
mod read;
mod targets;

use crate::run_options::WorkloadOptions;
use kurabe_core::{Error, ErrorKind, Result};
use std::path::Path;

pub(crate) use definition::{Definition, Work};
pub(crate) use earlier::Earlier;
pub(crate) use targets::{Resolved, on_this_machine, resolve};

/// The files that ship, by name.
static FILES: &[(&str, &str)] = &[
    ("session", include_str!("../../claims/session.toml")),
    ("web", include_str!("../../claims/web.toml")),
    ("connect", include_str!("../../claims/connect.toml")),
    ("webapp", include_str!("../../claims/webapp.toml")),
    ("bulk", include_str!("../../claims/bulk.toml")),
    ("link", include_str!("../../claims/link.toml")),
    ("net", include_str!("../../claims/net.toml")),
    ("engine", include_str!("../../claims/engine.toml")),
];

/// The name of the suite that runs of claims have which ship.
const SHIPPED: &str = "claims";

/// The claims that ship.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) if one of the files is wrong: a test reads all of them.
pub(crate) fn shipped(workload: &WorkloadOptions) -> Result<Vec<Definition>> {
    let mut all = Vec::new();
    for (name, text) in FILES {
        let found = read::claims(text, SHIPPED, Path::new("."), workload)
            .map_err(|error| Error::new(ErrorKind::Internal, error.context(name).to_string()))?;
        all.extend(found);
    }
    Ok(all)
}

/// The claims of a file.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) with file and line if it cannot be read, or a claim in it is wrong.
pub(crate) fn of_file(path: &Path, workload: &WorkloadOptions) -> Result<Vec<Definition>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::usage(format!("the claims file {} cannot be read: {error}", path.display()))
    })?;
    let stem =
        path.file_stem().map_or_else(|| SHIPPED.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    read::claims(&text, &stem, folder, workload).map_err(|error| error.context(path.display()))
}
