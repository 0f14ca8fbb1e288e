//! All that another account can do to a running command of somebody else.

use super::accounts::{Account, Accounts};
use super::intruder::{Attempt, tries};
use super::{logins, scene};
use std::path::PathBuf;

/// What the intruder, or the account that the system's services share, can do to processes, to those below them, and to
/// these folders; one text each.
pub(super) fn holes(accounts: &Accounts, processes: &[u32], folders: &[PathBuf]) -> Vec<String> {
    let pids: Vec<u32> = processes.iter().flat_map(|process| scene::tree(*process)).collect();
    let mut found = of_processes(accounts, &pids, folders);
    found.extend(logins::served(&accounts.intruder, &scene::listeners(&pids)));
    found
}

/// Like [`holes`], for a command with so many relays, which have no answer at all for others, whichever database user they say
/// to be.
pub(super) fn holes_of_relays(
    accounts: &Accounts,
    process: u32,
    expected: usize,
    folders: &[PathBuf],
    users: &[&str],
) -> Vec<String> {
    let pids = scene::tree(process);
    let mut found = of_processes(accounts, &pids, folders);
    let (relays, servers): (Vec<_>, Vec<_>) =
        scene::listeners(&pids).into_iter().partition(|listener| listener.program == "kurabe");
    assert_eq!(relays.len(), expected, "{relays:?}");
    found.extend(logins::answered(&accounts.intruder, &relays, users));
    found.extend(logins::served(&accounts.intruder, &servers));
    found
}

fn of_processes(accounts: &Accounts, pids: &[u32], folders: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    for account in [&accounts.intruder, &Account::nobody()] {
        let mut attempts = Vec::new();
        let mut add = |what: String, attempt| attempts.push((what, attempt));
        for pid in pids {
            let (name, proc) = (scene::name(*pid), PathBuf::from(format!("/proc/{pid}")));
            add(format!("signals {name}"), Attempt::Signal(*pid));
            add(format!("reads the environment of {name}"), Attempt::Read(proc.join("environ")));
            add(format!("reads the memory map of {name}"), Attempt::Read(proc.join("maps")));
            add(format!("lists the open files of {name}"), Attempt::List(proc.join("fd")));
        }
        for folder in folders {
            add(String::new(), Attempt::Walk(folder.clone()));
        }
        let answers =
            tries(account, &attempts.iter().map(|(_, attempt)| attempt.clone()).collect::<Vec<_>>());
        for ((what, _), answer) in attempts.iter().zip(answers) {
            // A process that has ended has nothing to read; a signal has no answer.
            let Some(answer) = answer.filter(|answer| !answer.is_empty() || what.starts_with("signals"))
            else {
                continue;
            };
            let text = String::from_utf8_lossy(&answer).into_owned();
            if what.is_empty() {
                found.extend(text.lines().map(|line| format!("{} {line}", account.name)));
            } else {
                found.push(format!("{} {what}", account.name));
            }
        }
    }
    found.extend(scene::open_memory(pids));
    found.sort();
    found.dedup();
    found
}

/// How many of many holes a message has.
const SHOWN: usize = 60;

/// Fails with the list, unless it is empty.
#[track_caller]
pub(super) fn assert_none(of: &str, holes: &[String]) {
    let shown = holes[..holes.len().min(SHOWN)].join("\n");
    assert!(holes.is_empty(), "{of}: another account can do {} things:\n{shown}", holes.len());
}
