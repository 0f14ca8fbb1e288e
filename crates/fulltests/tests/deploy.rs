//! The files in `deploy/`: they are of the types that their programs read, and the program takes their arguments.

use crate::support::{Answer, Place};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use serde_json::Value;
use std::path::PathBuf;

fn read(name: &str) -> String {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A manifest as its type writes it. A key that the type does not have is lost then.
fn typed(manifest: &Value) -> Value {
    let given = manifest.clone();
    match manifest["kind"].as_str().unwrap() {
        "Job" => serde_json::to_value(serde_json::from_value::<Job>(given).unwrap()),
        "PersistentVolumeClaim" => {
            serde_json::to_value(serde_json::from_value::<PersistentVolumeClaim>(given).unwrap())
        }
        other => panic!("{other} is not expected"),
    }
    .unwrap()
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// Checks that the program takes these arguments, at a broker and a server that are not there.
fn assert_taken(args: &[String]) {
    assert_taken_with(args, &[]);
}

/// As [`assert_taken`], with these variables.
fn assert_taken_with(args: &[String], variables: &[(&str, &str)]) {
    let place = Place::new();
    let far =
        |word: &String| word.replace("nats:4222", "127.0.0.1:1").replace("postgres:5432", "127.0.0.1:1");
    let args: Vec<String> = args.iter().map(far).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = place.command(&args).envs(variables.iter().copied()).output().unwrap();
    let answer = Answer::of(&output);
    assert_eq!(answer.code, Some(3), "{args:?}: {answer:?}");
    let shown = ["nats://127.0.0.1:1: ", "nats://me@127.0.0.1:1: "];
    assert!(shown.iter().any(|url| answer.err.contains(url)), "{args:?}: {answer:?}");
    assert!(!answer.err.contains("hunter2"), "{args:?}: {answer:?}");
}

#[test]
fn kubernetes_manifests_are_of_its_types_and_start_the_program() {
    let mut containers = 0;
    for name in ["agents.yaml", "run.yaml"] {
        let manifests: Vec<Value> =
            serde_saphyr::from_multiple(&read(&format!("kubernetes/{name}"))).unwrap();
        for manifest in &manifests {
            assert_eq!(typed(manifest), *manifest, "{name}");
            for container in
                manifest["spec"]["template"]["spec"]["containers"].as_array().into_iter().flatten()
            {
                assert_taken(&words(&container["args"]));
                containers += 1;
            }
        }
    }
    assert_eq!(containers, 2);
    // Of a key that it does not have, the type keeps nothing.
    let wrong = "{kind: Job, apiVersion: batch/v1, metadata: {}, spec: {paralelism: 4, template: {}}}";
    let wrong: Value = serde_saphyr::from_str(wrong).unwrap();
    assert_ne!(typed(&wrong), wrong);
}

#[test]
fn compose_file_starts_agents_on_its_broker() {
    let file: Value = serde_saphyr::from_str(&read("compose.yaml")).unwrap();
    let services = file["services"].as_object().unwrap();
    let command = words(&services["agent"]["command"]);
    assert_taken(&command);
    let broker = command.iter().find_map(|word| word.strip_prefix("nats://")?.split_once(':')).unwrap().0;
    assert!(services.contains_key(broker), "{command:?}");
    let build = &services["agent"]["build"];
    assert_eq!((&build["context"], &build["dockerfile"]), (&"..".into(), &"deploy/Containerfile".into()));
    assert!(read("Containerfile").contains("ENTRYPOINT [\"kurabe\"]"));
}

#[test]
fn systemd_unit_starts_an_agent() {
    let unit = read("systemd/kurabe-agent.service");
    let starts: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    let [start] = starts[..] else { panic!("{starts:?}") };
    let (program, args) = start.split_once(' ').unwrap();
    assert!(program.ends_with("/kurabe"), "{program}");
    // Other users of the host see arguments, and the broker's URL may have a password.
    assert!(!args.contains("nats") && !args.contains('$'), "{args}");
    let file = unit.lines().find_map(|line| line.strip_prefix("EnvironmentFile=")).unwrap();
    assert!(unit.contains(file) && unit.contains("# KURABE_AGENT_BROKER=nats://"), "{unit}");
    let args: Vec<String> = args.split(' ').map(str::to_owned).collect();
    assert_taken_with(&args, &[("KURABE_AGENT_BROKER", "nats://me:hunter2@127.0.0.1:1")]);
}
