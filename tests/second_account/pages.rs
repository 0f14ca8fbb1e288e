//! The web page of `serve`.

use super::accounts::Accounts;
use super::holes::{assert_none, holes};
use super::running::Running;
use super::scene::CommandLines;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// A password that the owner gives; nobody else may have it.
const SECRET: &str = "Zq7-second-account-41";

#[test]
fn page_and_its_runs_tell_nobody_passwords_of_targets() {
    let Some(accounts) = Accounts::get() else { return };
    let user = accounts.user(&accounts.owner);
    let lines = CommandLines::watch();
    let mut page = Running::start(&mut user.run(&["serve", "--listen", "127.0.0.1:0", "--allow-any-target"]));
    let url = page.first_line();
    let (address, token) = url.trim_start_matches("http://").split_once("/?token=").unwrap();
    // A server that never answers, so that the run goes on.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    // One of each engine, so that the children of the page have the passwords of all.
    let target = |scheme: &&str| {
        let path =
            if ["postgres", "mysql", "mariadb", "mongodb"].contains(scheme) { "%2Fkurabe" } else { "" };
        format!("{scheme}%3A%2F%2Fkurabe%3A{SECRET}%40127.0.0.1%3A{port}{path}")
    };
    let schemes = ["redis", "valkey", "postgres", "mysql", "mariadb", "mongodb", "couchdb", "memcached"];
    let targets: Vec<String> = schemes.iter().map(target).collect();
    let form = format!("targets={}&rounds=3&duration=100ms", targets.join("+"));
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "POST /new/point-read HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    silent.accept().expect("no run comes to the target");
    let mut found = holes(&accounts, &[page.id()], &[user.home().to_owned()]);
    found.extend(lines.passwords(&user.programs(), &[SECRET, token]));
    drop(silent);
    page.end();
    assert_none("serve", &found);
}
