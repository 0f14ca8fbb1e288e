//! Agents of a fleet.

use super::accounts::{Account, Accounts};
use super::fixtures::free_port;
use super::holes::{assert_none, holes};
use super::running::Running;
use super::scene::CommandLines;
use crate::servers::common::{has, skip};
use crate::support::eventually;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A password that the owner gives; nobody else may have it.
const SECRET: &str = "Zq7-second-account-41";

#[test]
fn agents_that_a_run_starts_are_its_users_alone() {
    let Some(accounts) = Accounts::get() else { return };
    if !has("redis") {
        return;
    }
    let (user, lines) = (accounts.user(&accounts.owner), CommandLines::watch());
    let rsh = user.input("rsh", &format!("shift\nPATH={}:$PATH exec \"$@\"\n", user.programs().display()));
    let args = ["run", "point-read", "up:redis", "--fleet", "ssh:one,two", "--clients", "4", "--no-html"];
    let mut run = user.run(&[&args[..], &["--requests", "40", "--rounds", "1", "--records", "20"]].concat());
    run.env("KURABE_RSH", format!("sh {rsh}"));
    let run = Running::start_to_pause(&user, run);
    let folders = std::fs::read_dir(user.servers()).unwrap().flatten().map(|entry| entry.path());
    let mut found =
        holes(&accounts, &[run.id()], &folders.chain([user.home().to_owned()]).collect::<Vec<_>>());
    let answer = run.finish();
    assert_eq!(answer.code, Some(0), "{answer:?}");
    found.extend(lines.passwords(&user.programs(), &[]));
    assert_none("fleet", &found);
}

/// Passes connections on to a port, and keeps what clients say.
fn listener_between(to: u16) -> (u16, Arc<Mutex<Vec<u8>>>) {
    let (between, heard) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(Mutex::new(Vec::new())));
    let (port, kept) = (between.local_addr().unwrap().port(), Arc::clone(&heard));
    std::thread::spawn(move || {
        while let Ok((client, _)) = between.accept() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", to)) else { return };
            let kept = Arc::clone(&kept);
            for (mut from, mut to, keep) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap(), true), (server, client, false)]
            {
                let kept = Arc::clone(&kept);
                std::thread::spawn(move || {
                    let mut piece = [0; 4_096];
                    while let Ok(length @ 1..) = from.read(&mut piece) {
                        if keep {
                            kept.lock().unwrap().extend_from_slice(&piece[..length]);
                        }
                        if to.write_all(&piece[..length]).is_err() {
                            return;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (port, heard)
}

#[test]
fn agent_sends_its_passwords_to_no_host_that_another_account_names() {
    let Some(accounts) = Accounts::get() else { return };
    let (owner, other) = (accounts.user(&accounts.owner), accounts.user(&accounts.intruder));
    let (nats, port) = (free_port(), free_port());
    let Some(_broker) = broker(&Account::nobody(), nats) else { return };
    let Some(_redis) = redis(&accounts.intruder, port) else { return };
    let (between, heard) = listener_between(port);
    let url = format!("nats://127.0.0.1:{nats}");
    let mut agent = owner.run(&["agent", "--broker", &url, "--name", "lent"]);
    agent.env("REDISCLI_AUTH", SECRET);
    let mut agent = Running::start(&mut agent);
    std::thread::sleep(Duration::from_secs(1));
    // The other account's coordinator has no password; its server needs none.
    let target = format!("redis://:@127.0.0.1:{between}");
    for target in [target, format!("redis://127.0.0.1:{between}")] {
        let args =
            ["run", "point-read", &target, "--fleet", &url, "--agents", "1", "--clients", "1", "--no-html"];
        let mut run =
            other.run(&[&args[..], &["--requests", "20", "--rounds", "1", "--records", "20"]].concat());
        let mut child =
            run.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        let ended = eventually(60, || child.try_wait().unwrap());
        if ended.is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    let heard = String::from_utf8_lossy(&heard.lock().unwrap()).into_owned();
    agent.end();
    assert!(
        heard.contains("HELLO") || heard.contains("GET") || heard.contains("PING"),
        "nothing reached the other's server"
    );
    assert!(!heard.contains(SECRET), "the agent sent its password to a host that another account named");
}

/// A Redis server of this account without a password, at this port; `None`, with a message, if it is not installed.
fn redis(account: &Account, port: u16) -> Option<Running> {
    listening(
        account,
        "redis-server",
        &["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"],
        port,
    )
}

/// A NATS broker of this account without a login, at this port; `None`, with a message, if it is not installed.
fn broker(account: &Account, port: u16) -> Option<Running> {
    listening(account, "nats-server", &["-a", "127.0.0.1", "-p", &port.to_string()], port)
}

fn listening(account: &Account, program: &str, args: &[&str], port: u16) -> Option<Running> {
    let mut command = account.command(program);
    if account.command(program).arg("--version").output().is_err() {
        skip(&format!("there is no program {program}"));
        return None;
    }
    let process = Running::start(command.args(args).current_dir("/"));
    eventually(60, || TcpStream::connect(("127.0.0.1", port)).ok()).expect("it does not listen");
    Some(process)
}
