//! Through applications: one process, and two before one database, with summed results and the CPU of each tier.

use crate::servers::common::cells;
use crate::support::{Answer, Place};
use crate::web::common::App;
use kurabe_testbed::testing;
use serde_json::Value;

const BRIEF: [&str; 11] = [
    "--requests", "400", "--rounds", "1", "--clients", "4", "--connection", "kept", "--no-html", "--quiet",
    "--verbose",
];

fn app(target: &str, rest: &[&str]) -> App {
    App::start_with(
        target,
        &[&["--experiment", "webapp", "--records", "300", "--workers", "4"], rest].concat(),
    )
}

fn via(url: &str, rest: &[&str]) -> (Answer, Value) {
    let place = Place::new();
    let answer = place.run(&[&["run", "webapp", "--via", url], &BRIEF[..], rest].concat());
    let report = if answer.code == Some(0) { place.report() } else { Value::Null };
    (answer, report)
}

/// The tiers in a run's trials: the name of each, and whether it used CPU.
fn tiers(report: &Value) -> Vec<(String, bool)> {
    let trials = cells(report)[0]["observed"].as_array().unwrap();
    let tiers = trials[0]["tiers"].as_array().unwrap().iter();
    tiers
        .map(|tier| {
            let cpu = tier["used"]["seen"]["cpu_ns"].as_u64();
            (tier["name"].as_str().unwrap().to_owned(), cpu.is_some_and(|ns| ns > 0))
        })
        .collect()
}

fn seen(names: &[&str]) -> Vec<(String, bool)> {
    names.iter().map(|name| ((*name).to_owned(), true)).collect()
}

fn assert_verified(report: &Value) {
    for cell in cells(report) {
        assert_eq!(cell["status"], "ok", "{cell:#}");
        let verified = &cell["verified"];
        assert!(verified["writes"].as_u64().unwrap() > 0 && verified["mismatches"] == 0, "{cell:#}");
        assert!(verified["answers"].as_u64().unwrap() > 0, "{cell:#}");
    }
}

#[test]
fn application_is_verified_and_both_tiers_are_observed() {
    let Some(server) = testing::server("mariadb") else { return };
    let app = app(server.url(), &[]);
    let (answer, report) = via(&app.url(""), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_verified(&report);
    assert_eq!(tiers(&report), seen(&["application", "database"]));
    // Where a line ends depends on its figures.
    let said = answer.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["behind the client, application ", "application CPU", "database CPU"] {
        assert!(said.contains(part), "{part}: {}", answer.out);
    }
    app.stop().success().err_has("of them counted on the server");
}

#[test]
fn two_applications_share_the_data_and_the_clients() {
    let Some(server) = testing::server("postgres") else { return };
    let first = app(server.url(), &["--part", "1/2"]);
    let second = app(server.url(), &["--part", "2/2", "--join", &first.url("")]);
    let both = format!("{},{}", first.url(""), second.url(""));
    let (answer, report) = via(&both, &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_verified(&report);
    assert_eq!(tiers(&report), seen(&["application 1", "application 2", "database"]));
    for name in ["application 1 CPU", "application 2 CPU", "database CPU"] {
        assert!(answer.out.contains(name), "{name}: {}", answer.out);
    }
    // Both had their share. The second joined the first, and ends before it.
    for stopped in [second, first].map(App::stop) {
        let answered = stopped
            .err
            .split(" requests answered")
            .next()
            .unwrap()
            .rsplit(['\n', ' '])
            .next()
            .unwrap()
            .replace(',', "");
        assert!(stopped.code == Some(0) && answered.parse::<u64>().unwrap() > 10, "{stopped:?}");
    }
}

#[test]
fn application_contains_its_sqlite_database() {
    let app = app("sqlite:", &[]);
    let (answer, report) = via(&app.url(""), &[]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert_eq!(tiers(&report), seen(&["application"]));
    let about: Value = serde_json::from_str(&app.get("/webapp").body).unwrap();
    assert_eq!((about["records"].as_u64(), about["codes"].as_u64()), (Some(300), Some(360)));
    assert_eq!((about["database"].as_str(), about["parts"].as_u64()), (Some("in-process"), Some(1)));
}

#[test]
fn pages_show_only_their_results() {
    let app = app("null:", &[]);
    let page = app.post("/webapp/request");
    assert_eq!(page.status, 200);
    let user = page.body.lines().next().unwrap().to_owned();
    let number = user.split('\t').nth(1).unwrap();
    assert!(app.get(&format!("/webapp/user?key={number}")).body.starts_with(&format!("user\t{number}\t")));
    let line = page.body.lines().nth(1).unwrap().to_owned();
    let number = line.split('\t').nth(1).unwrap();
    assert_eq!(app.get(&format!("/webapp/log?key={number}")).body, format!("{line}\n"));
    for (page, status) in [
        ("/webapp/user", 400),
        ("/webapp/user?key=301", 404),
        ("/webapp/log?key=18446744073709551615", 404),
        ("/webapp/log?key=18446744073709551616", 400),
        ("/webapp/nothing", 404),
    ] {
        assert_eq!(app.get(page).status, status, "{page}");
    }
    assert_eq!(app.post("/webapp/request?key=1").status, 400);
    assert_eq!(app.get("/webapp/count").body.trim().trim_start_matches('0'), "1");
}

#[test]
fn unrelated_applications_are_rejected() {
    let first = app("null:", &["--part", "1/2"]);
    let other = app("null:", &[]);
    let both = format!("{},{}", first.url(""), other.url(""));
    let (answer, _) = via(&both, &[]);
    assert!(answer.code == Some(2) && answer.err.contains("serve different data: 'seed'"), "{answer:?}");
    let place = Place::new();
    for (rest, part) in [
        (vec!["--part", "2/2"], "--join http://127.0.0.1:8080"),
        (vec!["--part", "3/2"], "is not K/N"),
        (vec!["--part", "2/2", "--join", "sqlite:"], "is not an application"),
        (vec!["--part", "2/2", "--join", "http://127.0.0.1:1"], "nothing listens at 127.0.0.1:1"),
        (
            vec!["--part", "2/3", "--join", "FIRST", "--records", "300", "--workers", "4"],
            "parts of webapp is 2",
        ),
        (
            vec!["--part", "2/2", "--join", "FIRST", "--records", "301", "--workers", "4"],
            "records of webapp is 300",
        ),
        (
            vec!["--part", "2/2", "--join", "FIRST", "--records", "300", "--workers", "5"],
            "session_slots of webapp is 4",
        ),
    ] {
        let url = first.url("");
        let rest: Vec<&str> =
            rest.into_iter().map(|word| if word == "FIRST" { url.as_str() } else { word }).collect();
        let args = [&["up", "app", "null:", "--listen", "127.0.0.1:0", "--experiment", "webapp"], &rest[..]]
            .concat();
        let answer = place.run(&args);
        assert!(answer.code.is_some_and(|code| code != 0), "{rest:?}: {answer:?}");
        assert!(answer.err.contains(part), "{rest:?}: {answer:?}");
    }
}
