//! The queue of runs on a broker with JetStream.

use super::common::broker::{Broker, Tap};
use super::common::{Agent, children};
use crate::support::{Answer, Place, eventually, piped, signal};
use kurabe_testbed::testing;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A worker, with folders of its own.
struct Worker {
    agent: Agent,
    place: Place,
}

impl Worker {
    fn start(broker: &Broker, name: &str) -> Self {
        let place = Place::new();
        Self { agent: Agent::start(&place, broker, name, &["--role", "run"]), place }
    }

    /// Its run waits after its first trial.
    fn that_waits(broker: &Broker, name: &str) -> Self {
        let place = Place::new();
        let args = ["agent", "--broker", broker.url(), "--name", name, "--role", "run"];
        Self { agent: Agent(piped(&mut place.pausing(&args, &[1]))), place }
    }
}

/// A suite file of point reads on a target.
pub(super) fn suite_of(place: &Place, name: &str, target: &str, rounds: u32) -> PathBuf {
    let path = place.home().join(format!("{name}.toml"));
    let text = format!(
        "experiment = \"point-read\"\ntargets = [\"{target}\"]\naxes.clients = [2]\nduration = \"300ms\"\n\
         rounds = {rounds}\nrecords = 300\n"
    );
    fs::write(&path, text).unwrap();
    path
}

/// Submits a suite, and returns its name in the queue.
pub(super) fn submit(place: &Place, broker: &Broker, suite: &Path, more: &[&str]) -> String {
    let answer = place.run(&[&["submit", suite.to_str().unwrap(), "--broker", broker.url()], more].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    answer.out.trim().to_owned()
}

/// The submitted runs, the newest first; `None` while the broker does not answer.
fn queue(place: &Place, broker: &Broker) -> Option<Vec<Value>> {
    let answer = place.run(&["runs", "ls", "--broker", broker.url(), "--format", "json"]);
    let lines = answer.out.lines().map(|line| serde_json::from_str(line).unwrap());
    (answer.code == Some(0)).then(|| lines.collect())
}

fn state<'a>(queue: &'a [Value], id: &str) -> &'a Value {
    &queue.iter().find(|entry| entry["id"] == id).unwrap()["state"]
}

/// Waits until a run is in this state, and returns that.
pub(super) fn wait_for(place: &Place, broker: &Broker, id: &str, wanted: &str) -> Value {
    let mut last = Value::Null;
    let found = eventually(120, || {
        let queue = queue(place, broker)?;
        last = state(&queue, id).clone();
        last.get(wanted).cloned()
    });
    found.unwrap_or_else(|| panic!("{id} is not {wanted}: {last}"))
}

fn fetch(place: &Place, broker: &Broker, id: &str) -> Answer {
    place.run(&["runs", "fetch", id, "--broker", broker.url()])
}

#[test]
fn submitted_run_is_executed_on_the_agents_and_its_run_file_and_page_are_fetched() {
    let Some(broker) = Broker::with_streams() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let suite = suite_of(&place, "smoke", server.url(), 2);
    let id = submit(&place, &broker, &suite, &["--agents", "1"]);
    assert!(id.ends_with("-smoke"), "{id}");
    let listed = place.run(&["runs", "ls", "--broker", broker.url()]);
    assert!(listed.out.starts_with(&format!("{id}  queued on redis://")), "{listed:?}");
    let early = fetch(&place, &broker, &id);
    assert_eq!(early.code, Some(5), "{early:?}");
    assert!(early.err.contains("has no results: it is queued"), "{early:?}");
    let elsewhere = Place::new();
    let _agent = Agent::start(&elsewhere, &broker, "a", &[]);
    let _worker = Worker::start(&broker, "w");
    let ended = wait_for(&place, &broker, &id, "ended");
    assert_eq!((&ended["code"], &ended["worker"]), (&Value::from(0), &Value::from("w")), "{ended}");
    let answer = fetch(&place, &broker, &id);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(ended["runs"][0].as_str(), Some(answer.out.trim()), "{answer:?}");
    let folder = place.path().join(answer.out.trim());
    let page = fs::read_dir(&folder).unwrap().flatten();
    assert!(page.into_iter().any(|file| file.path().extension().is_some_and(|name| name == "html")));
    let report = place.report();
    assert!(report.to_string().contains("clients on agent a"), "{report}");
    let header = fs::read_to_string(folder.join("run.jsonl")).unwrap();
    assert!(header.lines().next().unwrap().contains(&id), "the run's label is its name in the queue");
}

#[test]
fn runs_on_one_host_are_executed_one_at_a_time_in_the_order_of_submission() {
    let Some(broker) = Broker::with_streams() else { return };
    let Some(server) = testing::server("memcached") else { return };
    let place = Place::new();
    let _workers = [Worker::start(&broker, "one"), Worker::start(&broker, "two")];
    let file = suite_of(&place, "s", server.url(), 4);
    let ids: Vec<String> = (0..3).map(|_| submit(&place, &broker, &file, &["--agents", "0"])).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 3, "{ids:?}");
    let (mut seen, mut over) = (0, false);
    let mut ended = Vec::new();
    let all = eventually(120, || {
        let queue = queue(&place, &broker)?;
        let running = ids.iter().filter(|id| state(&queue, id).get("running").is_some()).count();
        assert!(running <= 1, "{queue:?}");
        seen += running;
        for id in &ids {
            over |= state(&queue, id).get("failed").is_some();
            if state(&queue, id).get("ended").is_some() && !ended.contains(id) {
                ended.push(id.clone());
            }
        }
        (ended.len() == 3 || over).then_some(())
    });
    assert!(all.is_some() && !over && seen > 0, "{:?}", queue(&place, &broker));
    assert_eq!(ended, ids);
}

#[test]
fn run_of_a_killed_worker_is_executed_by_another_one() {
    let Some(broker) = Broker::with_streams() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let first = Worker::that_waits(&broker, "first");
    let suite = suite_of(&place, "s", server.url(), 3);
    let id = submit(&place, &broker, &suite, &["--agents", "0"]);
    first.place.wait_for_pause(1);
    let runs = eventually(20, || Some(children(first.agent.0.id())).filter(|runs| !runs.is_empty())).unwrap();
    signal(&first.agent.0, "-KILL");
    let gone = || runs.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()).then_some(());
    eventually(20, gone).expect("the run goes on without its worker");
    let _second = Worker::start(&broker, "second");
    let ended = wait_for(&place, &broker, &id, "ended");
    assert_eq!((&ended["code"], &ended["worker"]), (&Value::from(0), &Value::from("second")), "{ended}");
    assert_eq!(fetch(&place, &broker, &id).code, Some(0));
}

#[test]
fn run_of_a_worker_that_hangs_ends_and_is_executed_by_another_one() {
    let Some(broker) = Broker::with_streams() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let first = Worker::that_waits(&broker, "first");
    let suite = suite_of(&place, "s", server.url(), 3);
    let id = submit(&place, &broker, &suite, &["--agents", "0"]);
    first.place.wait_for_pause(1);
    let runs = eventually(20, || Some(children(first.agent.0.id())).filter(|runs| !runs.is_empty())).unwrap();
    signal(&first.agent.0, "-STOP");
    let second = Worker::start(&broker, "second");
    let ended = |pid: &u32| {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    let began_again = || {
        let queue = queue(&place, &broker)?;
        let began = state(&queue, &id)["running"]["worker"] == "second";
        let over = runs.iter().all(ended);
        assert!(over || children(second.agent.0.id()).is_empty(), "two processes execute one run");
        (began && over).then_some(())
    };
    eventually(60, began_again).expect("no other worker executes the run");
    signal(&first.agent.0, "-CONT");
    let end = wait_for(&place, &broker, &id, "ended");
    assert_eq!((&end["code"], &end["worker"]), (&Value::from(0), &Value::from("second")), "{end}");
}

#[test]
fn queue_and_its_run_outlive_a_restart_of_the_broker() {
    let Some(mut broker) = Broker::with_streams() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let suite = suite_of(&place, "s", server.url(), 6);
    let ids = [0, 1].map(|_| submit(&place, &broker, &suite, &["--agents", "0"]));
    broker.restart();
    let _worker = Worker::start(&broker, "w");
    wait_for(&place, &broker, &ids[0], "running");
    broker.restart();
    for id in &ids {
        let ended = wait_for(&place, &broker, id, "ended");
        assert_eq!(ended["code"], 0, "{ended}");
        assert_eq!(fetch(&place, &broker, id).code, Some(0));
    }
}

#[test]
fn stopped_worker_gives_its_run_back_and_a_cancelled_run_is_stopped() {
    let Some(broker) = Broker::with_streams() else { return };
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let mut worker = Worker::start(&broker, "w");
    let suite = suite_of(&place, "s", server.url(), 400);
    let id = submit(&place, &broker, &suite, &["--agents", "0"]);
    wait_for(&place, &broker, &id, "running");
    signal(&worker.agent.0, "-INT");
    let status = eventually(20, || worker.agent.0.try_wait().unwrap()).expect("the worker does not end");
    assert_eq!(status.code(), Some(0));
    let queued = wait_for(&place, &broker, &id, "queued");
    assert_eq!(queued["attempts"], 0);
    let next = Worker::start(&broker, "next");
    wait_for(&place, &broker, &id, "running");
    let runs = eventually(20, || Some(children(next.agent.0.id())).filter(|runs| !runs.is_empty())).unwrap();
    let cancel = || place.run(&["runs", "cancel", &id, "--broker", broker.url()]);
    assert_eq!(cancel().code, Some(0));
    let gone = || runs.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()).then_some(());
    eventually(30, gone).expect("a cancelled run goes on");
    assert_eq!(cancel().code, Some(2));
    assert!(state(&queue(&place, &broker).unwrap(), &id).get("cancelled").is_some());
}

#[test]
fn suite_with_a_password_is_not_submitted() {
    const PASSWORD: &str = "hunter2-of-this-test";
    let Some(broker) = Broker::with_streams() else { return };
    let place = Place::new();
    let tap = Tap::on(&broker);
    let suite = suite_of(&place, "s", &format!("postgres://me:{PASSWORD}@db.example/x"), 1);
    let commented = place.home().join("commented.toml");
    let text = format!(
        "# mysql://me:{PASSWORD}@db.example/x\nexperiment = \"point-read\"\ntargets = [\"up:redis\"]\n"
    );
    fs::write(&commented, text).unwrap();
    for file in [suite, commented] {
        let answer = place.run(&["submit", file.to_str().unwrap(), "--broker", broker.url()]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(
            answer.err.contains("passwords are not sent") && answer.err.contains("PGPASSWORD"),
            "{answer:?}"
        );
        assert!(!answer.err.contains(PASSWORD), "{answer:?}");
    }
    assert_eq!(queue(&place, &broker).unwrap(), Vec::<Value>::new());
    assert!(!tap.read().contains(PASSWORD));
}

#[test]
fn login_of_the_url_is_used_and_neither_password_nor_token_is_shown() {
    for (login, right, wrong) in [
        (&["--user", "me", "--pass", "hunter2@x"][..], "me:hunter2%40x", "me:hunter2"),
        (&["--auth", "hunter2/x"][..], "hunter2%2Fx", "hunter2"),
    ] {
        let Some(broker) = Broker::with_login(login) else { return };
        let place = Place::new();
        let list =
            |who: &str| place.run(&["runs", "ls", "--broker", &format!("nats://{who}@{}", broker.address())]);
        let answer = list(right);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        let answer = list(wrong);
        assert_eq!(answer.code, Some(3), "{answer:?}");
        assert!(answer.err.contains("authorization") && !answer.err.contains("hunter2"), "{answer:?}");
    }
}

#[test]
fn suites_that_a_suite_names_are_sent_with_it() {
    let Some(broker) = Broker::with_streams() else { return };
    let (place, worker) = (Place::new(), Worker::start(&broker, "w"));
    suite_of(&place, "one", "null:", 1);
    let suite = place.home().join("several.toml");
    fs::write(&suite, "[[run]]\nfile = \"one.toml\"\n").unwrap();
    let id = submit(&place, &broker, &suite, &["--agents", "0"]);
    let ended = wait_for(&place, &broker, &id, "ended");
    assert_eq!(ended["code"], 0, "{ended}");
    // Others would be files of the worker's host.
    let submitted = |text: &str| {
        fs::write(&suite, text).unwrap();
        let answer =
            place.run(&["submit", suite.to_str().unwrap(), "--broker", broker.url(), "--agents", "0"]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        answer.err
    };
    let elsewhere = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    fs::copy(place.home().join("one.toml"), elsewhere.path()).unwrap();
    let named = format!("[[run]]\nfile = '{}'\n", elsewhere.path().display());
    assert!(submitted(&named).contains("outside its folder"));
    let webapp = "experiment = 'webapp'\ntargets = ['null:']\naxes.postal-codes = 'codes.csv'\n";
    assert!(submitted(webapp).contains("cannot read the file codes.csv"));
    drop(worker);
}

#[test]
fn queue_that_cannot_be_used_is_refused_with_what_to_do() {
    let Some(broker) = Broker::start() else { return };
    let place = Place::new();
    let file = suite_of(&place, "s", "up:redis", 1);
    let submit = |file: &Path, url: &str| place.run(&["submit", file.to_str().unwrap(), "--broker", url]);
    let answer = submit(&file, broker.url());
    assert_eq!(answer.code, Some(3), "{answer:?}");
    assert!(answer.err.contains("nats-server -js"), "{answer:?}");
    let answer = submit(&file, "ssh:one");
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.err.contains("a queue is on a broker"), "{answer:?}");
    let wrong = place.home().join("wrong.toml");
    fs::write(&wrong, "experiment = \"point-read\"\nround = 3\n").unwrap();
    let answer = submit(&wrong, broker.url());
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.err.contains("round"), "{answer:?}");
    let agent = place.run(&["agent", "--broker", broker.url(), "--role", "run,load"]);
    assert_eq!(agent.code, Some(2), "{agent:?}");
    let Some(broker) = Broker::with_streams() else { return };
    let answer = fetch(&place, &broker, "nothing");
    assert_eq!(answer.code, Some(5), "{answer:?}");
    assert!(answer.err.contains("no submitted run is named 'nothing'"), "{answer:?}");
}
