//! Relays of `capture` and `wire` before servers that know their user by its account or its certificate.

use super::accounts::{Account, Accounts, User};
use super::fixtures::Postgres;
use super::holes::{assert_none, holes, holes_of_relays};
use super::intruder::Address;
use super::running::Running;
use super::{logins, scene};
use crate::support::eventually;
use std::process::Command;

/// A relay whose command has used the database and waits.
fn relaying(user: &User, args: &[&str], ask: &str) -> Running {
    relaying_by(user, args, &["sh", "-ec"], ask)
}

/// Like [`relaying`]; these words execute the command.
fn relaying_by(user: &User, args: &[&str], by: &[&str], ask: &str) -> Running {
    let (ready, go) = (user.signals().join("ready"), user.signals().join("go"));
    let _ = std::fs::remove_file(&ready);
    let script =
        format!("{ask} && touch {} && while [ ! -e {} ]; do sleep 0.2; done", ready.display(), go.display());
    let mut relay = Running::start(&mut user.run(&[args, &["--"], by, &[&*script]].concat()));
    eventually(120, || (ready.exists() || relay.has_ended()).then_some(()));
    assert!(ready.exists(), "{args:?}: its own command does not get through: {:?}", relay.end());
    relay
}

const ASK: &str = "psql -XAtqc 'SELECT 4711' | grep -qx 4711";

#[test]
fn relay_lends_nobody_the_identity_of_its_user() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&accounts.owner);
    let Some(server) = Postgres::start(&user) else { return };
    let (socket, folder, certificate) = (server.by_socket(), server.by_folder(), server.by_certificate());
    let names = [user.account.name.as_str(), "kurabe", "root"];
    let mut found = Vec::new();
    // In a folder that everybody may enter.
    let at_socket = format!("unix:{}", user.signals().display());
    for (name, args) in [
        ("wire at a Unix socket", ["wire", &folder, "--listen", &at_socket].to_vec()),
        ("capture of a peer", ["capture", &socket, "-o", &user.at("peer.capture")].to_vec()),
        (
            "capture of a certificate",
            ["capture", &certificate, "--tls", "terminate", "-o", &user.at("cert.capture")].to_vec(),
        ),
        ("wire of a peer", ["wire", &folder].to_vec()),
    ] {
        let mut relay = relaying(&user, &args, ASK);
        let holes = holes_of_relays(&accounts, relay.id(), 1, &[user.home().to_owned()], &names);
        found.extend(holes.into_iter().map(|hole| format!("{name}: {hole}")));
        found.extend(
            psql_through(&accounts.intruder, &user, &relay).into_iter().map(|hole| format!("{name}: {hole}")),
        );
        relay.end();
    }
    assert!(!user.signals().join(".s.PGSQL.5432").exists(), "the socket is left");
    found.extend(holes(&accounts, &[], &[user.home().to_owned()]));
    assert_none("relays", &found);
}

/// What the intruder's own client gets through the relays of a process.
fn psql_through(intruder: &Account, user: &User, relay: &Running) -> Vec<String> {
    let mut found = Vec::new();
    for listener in scene::listeners(&scene::tree(relay.id())) {
        let (address, host, port) = match &listener.address {
            Address::Tcp(address) => {
                let (host, port) = address.rsplit_once(':').unwrap();
                (address.clone(), host.to_owned(), port.to_owned())
            }
            Address::Path(path) => {
                let port = path.extension().unwrap().to_string_lossy().into_owned();
                (path.display().to_string(), path.parent().unwrap().display().to_string(), port)
            }
            Address::Abstract(_) => continue,
        };
        for role in [user.account.name.as_str(), "kurabe"] {
            for mode in ["disable", "require"] {
                let mut psql: Command = intruder.command("psql");
                psql.args([
                    "-XAtqw", "-h", &host, "-p", &port, "-U", role, "-d", "postgres", "-c",
                    "SELECT current_user",
                ]);
                psql.env("PGSSLMODE", mode).env("PGCONNECT_TIMEOUT", "5");
                let output = psql.output().unwrap();
                if output.status.success() {
                    let who = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                    found.push(format!("is {who} of the database through {address} (psql, sslmode={mode})"));
                }
            }
        }
    }
    found
}

#[test]
fn relay_before_each_engine_serves_no_other_account() {
    let Some(accounts) = Accounts::get() else { return };
    let users = accounts.users();
    let mut found = Vec::new();
    for (engine, user) in super::throwaway::engines().into_iter().zip(users.iter().cycle()) {
        let (target, file) = (format!("up:{engine}"), user.at(&format!("{engine}.capture")));
        let program = user.path().display().to_string();
        // The relay of `capture` is before the server, and that of `wire` before the relay of `capture`.
        let wire = ["sh", "-ec", "exec \"$0\" wire \"$KURABE_URL\" -- sh -ec \"$1\"", &program];
        let mut relay = relaying_by(user, &["capture", &target, "-o", &file], &wire, "true");
        let holes = holes_of_relays(&accounts, relay.id(), 2, &[user.home().to_owned()], &["kurabe", "root"]);
        found.extend(holes.into_iter().map(|hole| format!("{target}: {hole}")));
        relay.end();
    }
    assert_none("relays", &found);
}

#[test]
fn other_accounts_use_a_relay_that_allows_them() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&accounts.owner);
    let Some(server) = Postgres::start(&user) else { return };
    let socket = server.by_socket();
    let relay = relaying(&user, &["wire", &socket, "--allow-other-users"], ASK);
    assert!(!psql_through(&accounts.intruder, &user, &relay).is_empty(), "it is refused");
    // The other sockets of the machine are none of the relay's.
    let relays = scene::listeners(&scene::tree(relay.id()));
    assert!(!logins::answered(&accounts.intruder, &relays, &[&user.account.name]).is_empty());
}
