//! `kurabe up`: a throwaway server, an application stack before a database, or the other end of experiment net, until Ctrl-C.

use super::app::{ServedOptions, app};
use crate::exit::{self, Exit};
use crate::options::{options, parsed};
use crate::output::Output;
use crate::{signals, time};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind, units};
use kurabe_os::account::Accounts;
use kurabe_targets::{OpenOptions, Opened, SERVED_BY_STACKS, STACK, StackData, start_error};
use kurabe_tcp::Listener;
use kurabe_tcp::protocol::PORT;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

options! {
    /// The options of `kurabe up ENGINE`.
    UpOptions {
        engine: Option<String>,
        setting: Vec<String>,
    }
}

/// Starts what was named, and ends it at Ctrl-C.
pub(super) fn up(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    match matches.subcommand() {
        Some(("app", matches)) => app(&ServedOptions::of(matches), output),
        Some(("stack", matches)) => stack(&StackOptions::of(matches), output),
        Some((_, matches)) => listen(&ListenOptions::of(matches), output),
        None => server(&UpOptions::of(matches), output),
    }
}

fn server(options: &UpOptions, output: &Output) -> Result<Exit> {
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

options! {
    /// The options of `kurabe up stack`.
    StackOptions {
        stack: Option<String>,
        db: Option<String>,
        variant: Option<String>,
        workers: Option<String>,
        records: Option<String>,
        seed: Option<String>,
        timeout: Option<String>,
    }
}

fn stack(options: &StackOptions, output: &Output) -> Result<Exit> {
    let count = |name: &str, text: &Option<String>| -> kurabe_core::Result<Option<u64>> {
        match parsed(name, text.as_ref(), units::parse_count)? {
            Some(0) => Err(Error::usage(format!("--{name} 0 is out of range"))),
            n => Ok(n),
        }
    };
    let mut url = format!("{STACK}:{}", options.stack.as_deref().unwrap_or_default());
    if let Some(variant) = &options.variant {
        url = format!("{url}/{variant}");
    }
    if let Some(workers) = count("workers", &options.workers)? {
        url = format!("{url}?workers={workers}");
    }
    let url = kurabe_targets::with_database(&url, options.db.as_deref().unwrap_or_default())?;
    time::set_timeout(options.timeout.as_deref())?;
    let clock = time::since_1970().as_nanos() as u64;
    let stack_data = StackData {
        experiments: SERVED_BY_STACKS.iter().map(|name| (*name).to_owned()).collect(),
        seed: count("seed", &options.seed)?.unwrap_or(clock % 1_000_000_000),
        records: count("records", &options.records)?,
    };
    let stop = signals::watch(exit::DONE, output)?;
    let opened = kurabe_targets::open(&[url], &OpenOptions { stack_data, ..OpenOptions::default() }, output)?;
    signals::wait_for("the stack to end");
    let ended = announce(&opened, output).and_then(|()| {
        signals::until_stopped(&stop, || {
            let lost = opened.died().map(|why| start_error(ErrorKind::ConnectionLost, &why));
            lost.map_or(Ok(()), Err)
        })
    });
    opened.close(output);
    ended?;
    Ok(exit::DONE)
}

fn announce(opened: &Opened, output: &Output) -> kurabe_core::Result<()> {
    for (target, reached) in opened.targets.iter().zip(&opened.reached) {
        output.result(&reached.exposed())?;
        output.note(&format!("{}: {} {}", target.name, target.facts.engine, target.facts.version));
        for setting in &target.facts.settings {
            output.note(&format!("  {} = {}", setting.name, setting.value));
        }
    }
    output.note("Ctrl-C stops and removes the stack and its tables");
    Ok(())
}

options! {
    /// The options of `kurabe up tcp`.
    ListenOptions {
        address: Option<String>,
        allow_remote: bool,
        allow_other_users: bool,
    }
}

fn listen(options: &ListenOptions, output: &Output) -> Result<Exit> {
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
