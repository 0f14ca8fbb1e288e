//! `kurabe up ENGINE`: runs a throwaway server until Ctrl-C.

use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::signals;
use anyhow::Result;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind};

options! {
    /// The options of `kurabe up ENGINE`.
    UpOptions {
        engine: Option<String>,
        setting: Vec<String>,
    }
}

pub(super) fn up(options: &UpOptions, output: &Output) -> Result<Exit> {
    let engine = options.engine.as_deref().unwrap_or_default();
    let name = engine.trim_start_matches("up:").trim_end_matches(':');
    // A URL may hold a password.
    if name != engine && !name.contains(':') {
        return Err(Error::usage("up takes the name of an engine")
            .hint(format!("write 'kurabe up {}'", name.split('?').next().unwrap_or_default()))
            .into());
    }
    let mut url = TargetUrl::parse(&format!("up:{engine}"))?;
    kurabe_targets::check_scheme(&url)?;
    for setting in &options.setting {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Error::usage(format!("'{setting}' is not a setting")).hint("write NAME=VALUE"))?;
        url.options.insert(name.to_owned(), value.to_owned());
    }
    let stop = signals::watch(exit::DONE, output)?;
    signals::wait_for(format!("a throwaway {engine} to start"));
    let server = kurabe_targets::up(&url, None, 0, output)?;
    let reached = kurabe_targets::reached(&url, &server)?;
    // For any client, each of which reads its own environment. Only this output tells the password.
    output.result(&TargetUrl { ignores_environment: false, ..reached }.exposed())?;
    if let Some(socket) = server.socket() {
        output.note(&format!("{} {}, socket {}", engine, server.version(), socket.display()));
    } else {
        output.note(&format!("{} {}", engine, server.version()));
    }
    if server.is_open() {
        output.note("it has no users: every account of this machine may use it");
    }
    output.note("Ctrl-C stops and removes the server");
    signals::wait_for(format!("{engine} to end"));
    signals::until_stopped(&stop, || match server.died() {
        None => Ok(()),
        Some(why) => {
            let text = format!("the server exited: {why}");
            Err(kurabe_targets::start_error(ErrorKind::ConnectionLost, &text))
        }
    })?;
    server.stop().map_err(|e| Error::new(ErrorKind::Environment, e.to_string()))?;
    Ok(exit::DONE)
}
