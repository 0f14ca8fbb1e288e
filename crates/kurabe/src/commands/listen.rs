//! `kurabe up tcp`: the other end of experiment net, until Ctrl-C.

use crate::exit::{self, Exit};
use crate::options::options;
use crate::output::Output;
use crate::signals;
use anyhow::Result;
use kurabe_core::{Error, ErrorKind};
use kurabe_os::account::Accounts;
use kurabe_tcp::Listener;
use kurabe_tcp::protocol::PORT;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

options! {
    /// The options of `kurabe up tcp`.
    ListenOptions {
        address: Option<String>,
        allow_remote: bool,
        allow_other_users: bool,
    }
}

pub(super) fn listen(options: &ListenOptions, output: &Output) -> Result<Exit> {
    let address = address(options.address.as_deref().unwrap_or_default())?;
    if !address.ip().is_loopback() && !options.allow_remote {
        return Err(Error::usage(format!(
            "up tcp: other machines can reach {address}, and it has no authentication"
        ))
        .hint("add --allow-remote to allow that")
        .into());
    }
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::Environment, format!("cannot listen at {address}: {error}"))
            .hint("name an address of this host and a free port")
    };
    // Accounts of other hosts are not known.
    let is_checked = address.ip().is_loopback() && !options.allow_other_users;
    let accounts = is_checked.then(Accounts::new).transpose().map_err(|error| {
        let what = format!("this system does not say which account a connection is of: {error}");
        Error::new(ErrorKind::Environment, what).hint("--allow-other-users lets all accounts connect")
    })?;
    let stop = signals::watch(exit::DONE, output)?;
    let listener = Listener::bind(address, accounts).map_err(failed)?;
    let bound = listener.address().map_err(failed)?;
    let serving = thread::Builder::new().name("listen".to_owned());
    let serving = serving.spawn(move || listener.serve()).map_err(failed)?;
    output.result(&format!("tcp://{bound}"))?;
    output.note("Ctrl-C ends the listener");
    while !stop.load(Ordering::SeqCst) {
        if serving.is_finished() {
            let ended = serving.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread panicked")));
            return Err(ended.map_or_else(failed, |()| failed(std::io::Error::other("it ended"))).into());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(exit::DONE)
}

/// An address with a port, or with the default one.
fn address(text: &str) -> kurabe_core::Result<SocketAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let address = text.parse().ok().or_else(|| bare.ok().map(|ip| SocketAddr::new(ip, PORT)));
    address.ok_or_else(|| {
        Error::usage(format!("up tcp: '{text}' is not an address"))
            .hint("write 192.0.2.1, 192.0.2.1:7007 or [2001:db8::1]:7007")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_default_port_and_names_are_refused() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1:7007"),
            ("192.0.2.1:0", "192.0.2.1:0"),
            ("::1", "[::1]:7007"),
            ("[::1]", "[::1]:7007"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        for text in ["", "localhost", "192.0.2.1:x", ":7007"] {
            assert_eq!(address(text).unwrap_err().kind(), ErrorKind::Usage, "{text}");
        }
    }
}
