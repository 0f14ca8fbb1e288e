//! Observers on other hosts, as in `postgres://me@db.example/shop?observe`.

use kurabe_core::observation::Endpoint;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_observe::{PORT, Remote, Token};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The URL option; drivers do not see it.
const OPTION: &str = "observe";
/// The environment variable with the token.
const TOKEN: &str = "KURABE_OBSERVE_TOKEN";
/// The environment variable with the name of the token's file.
const TOKEN_FILE: &str = "KURABE_OBSERVE_TOKEN_FILE";

/// Takes the observer out of a target's URL.
pub(crate) fn taken(url: &mut TargetUrl) -> Option<String> {
    url.options.remove(OPTION)
}

/// Reads the observer's address: `HOST:PORT`, `HOST`, `:PORT`, or nothing for the server's host and the default port.
///
/// # Errors
/// If there is no token, or the address is invalid.
pub(crate) fn named(text: &str, server: &Endpoint) -> Result<Remote> {
    let token = token(None)?;
    let Endpoint::Tcp { host, .. } = server else {
        return Err(Error::usage(format!("?{OPTION}: only servers reached by TCP can be observed remotely")));
    };
    let bad =
        || Error::usage(format!("?{OPTION}={text} is not an address")).hint("write HOST:PORT, HOST or :PORT");
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => text.rsplit_once(':').map_or((text, None), |(name, port)| (name, Some(port))),
    };
    let port = match port {
        None => PORT,
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(bad)?,
    };
    if name.contains([' ', '/', '@']) {
        return Err(bad());
    }
    Ok(Remote::new(if name.is_empty() { host } else { name }, port, token))
}

/// Reads the token from this file or from the environment.
///
/// # Errors
/// If there is none, or other users can read it.
pub(crate) fn token(file: Option<&Path>) -> Result<Token> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let file = file.map(Path::to_owned).or_else(|| set(TOKEN_FILE).map(PathBuf::from));
    let text = match (&file, set(TOKEN)) {
        (Some(file), _) => read(file)?,
        (None, Some(text)) => text.to_string_lossy().into_owned(),
        (None, None) => {
            return Err(Error::usage("an observer requires a token").hint(format!(
                "set {TOKEN_FILE} to a file with the token, or {TOKEN} to the token, the same on both hosts"
            )));
        }
    };
    Token::new(&text).map_err(|why| {
        let place = file.map_or_else(|| TOKEN.to_owned(), |file| file.display().to_string());
        Error::usage(why).context(place)
    })
}

fn read(file: &Path) -> Result<String> {
    let failed =
        |error: std::io::Error| Error::new(ErrorKind::Environment, error.to_string()).context(file.display());
    let mode = std::fs::metadata(file).map_err(failed)?.permissions().mode();
    if mode & 0o004 != 0 {
        return Err(Error::usage("other users of this machine can read the token")
            .context(file.display())
            .hint(format!("chmod 600 {}", file.display())));
    }
    std::fs::read_to_string(file).map_err(failed)
}
