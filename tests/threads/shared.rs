//! Runs whose clients share threads.

use crate::support::{Place, metric, recorded_trials};
use serde_json::Value;

/// The engines whose sessions can share threads.
pub(crate) const NATIVE: [&str; 5] = ["postgres", "mariadb", "mysql", "memcached", "redis"];

/// The measured trials of the only run.
pub(crate) fn measured(place: &Place) -> Vec<Value> {
    let trials = recorded_trials(&place.run_file()).into_iter();
    trials.filter_map(|trial| trial.pointer("/outcome/measured").cloned()).collect()
}

/// Arguments of a short run with that many clients.
pub(crate) fn point<'a>(
    experiment: &'a str,
    url: &'a str,
    clients: &'a str,
    rest: &[&'a str],
) -> Vec<&'a str> {
    let fixed =
        ["run", experiment, url, "--clients", clients, "--records", "2000", "--interleave=off", "--no-html"];
    [&fixed[..], rest].concat()
}

/// Runs an experiment with this many clients on two threads, and checks that each answer of each trial was verified.
pub(crate) fn every_answer_is_verified(experiment: &str, url: &str, clients: u64, rest: &[&str]) {
    let (place, number) = (Place::new(), clients.to_string());
    let args = point(experiment, url, &number, rest);
    place.run(&[&args[..], &["--threads", "2"]].concat()).success();
    let trials = measured(&place);
    assert!(!trials.is_empty());
    for trial in trials {
        assert_eq!((&trial["threads"], &trial["clients"]), (&2.into(), &clients.into()), "{trial}");
        let count = |name: &str| trial[name].as_u64().unwrap();
        assert_eq!(count("offered"), count("completed") + count("failed") + count("dropped"));
        assert!(count("failed") == 0 && count("completed") > 500, "{trial}");
        let answers = trial["verified"]["answers"].as_u64().unwrap_or_default();
        let writes = experiment == "point-write";
        assert!(writes || answers >= count("completed") + count("warmup"), "{trial}");
        let (queue, p99) = (metric(&trial, "queue"), metric(&trial, "queue p99"));
        assert!(queue.is_some() && p99 > Some(0.0), "{trial}");
    }
}
