//! Reports that may not name an engine, for a run on every server.

use super::common::{assert_all_verified, installed, session};
use crate::support::Place;
use kurabe_core::run::PublishingClause;
use kurabe_drivers::info::DriverInfo;
use kurabe_drivers::registry::DRIVERS;
use kurabe_record::Store;
use kurabe_testbed::testing::{self, Lease};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;

/// A short run in which some targets do not support some cells.
const SHORT: [&str; 12] = [
    "--compress", "none", "--layout", "blob,rows", "--payload", "1k", "--requests", "20", "--records", "20",
    "--rounds", "1",
];

/// Every name of an engine here, and everything that identifies this run's targets.
fn telling(report: &Value, servers: &[Lease]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    // Neither an application nor a listener is an engine, and their names and schemes are ordinary words.
    let is_engine = |driver: &&&DriverInfo| !["application", "TCP listener"].contains(&driver.engine);
    for driver in DRIVERS.iter().filter(is_engine) {
        // JSON writes `null` for missing values.
        all.extend(
            driver.schemes.iter().filter(|scheme| **scheme != "null").map(|scheme| (*scheme).to_owned()),
        );
        all.extend(driver.engine.split(", ").filter(|name| *name != "null").map(str::to_owned));
    }
    all.extend(["oracle", "mongo", "couchdb", "redis", "valkey", "innodb"].map(str::to_owned));
    all.extend(servers.iter().map(|server| format!("127.0.0.1:{}", server.port())));
    for target in report["targets"].as_array().unwrap() {
        for member in ["name", "url", "engine", "version", "client"] {
            all.insert(target[member].as_str().unwrap().to_owned());
        }
        for member in ["settings", "durability_settings"] {
            // Short ones are ordinary words and letters: `flush`, `w`.
            all.extend(target[member].as_object().unwrap().keys().filter(|name| name.len() > 9).cloned());
        }
        all.extend(target["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned()));
    }
    for cell in report["cells"].as_array().unwrap() {
        all.extend(cell["reason"].as_str().map(str::to_owned));
    }
    all
}

fn assert_untold(what: &str, text: &str, telling: &BTreeSet<String>) {
    let text = text.to_lowercase();
    for word in telling {
        assert!(!text.contains(&word.to_lowercase()), "{what} contains '{word}'");
    }
}

#[test]
fn anonymous_report_names_no_server() {
    let servers: Vec<Lease> = installed().into_iter().filter_map(testing::server).collect();
    let mut targets = vec!["sqlite:"];
    targets.extend(servers.iter().map(|server| server.url()));
    let place = Place::new();
    let answer = place.run(&session(&targets, &SHORT));
    assert!(matches!(answer.code, Some(0 | 4)), "{answer:?}");
    let report = place.report();
    let telling = telling(&report, &servers);
    for format in ["html", "md", "csv", "json", "hgrm"] {
        let whole = place.run(&["report", "--format", format, "-o", "-"]);
        assert!(whole.out.to_lowercase().contains("sqlite"), "{format}");
        let answer = place.run(&["report", "--anonymise", "--format", format, "-o", "-"]).success();
        assert!(answer.out.contains("database A"), "{format}: {}", answer.out);
        assert_untold(format, &answer.out, &telling);
    }
    let answer = place.run(&["compare", "last", "last", "--anonymise"]).success();
    assert_untold("compare", &answer.out, &telling);
    // The anonymous page does not replace the complete one.
    let page = place.run(&["report", "--anonymise", "--format", "html"]).out;
    assert!(page.trim_end().ends_with("report-anonymous.html"), "{page}");
    assert_untold("the page", &fs::read_to_string(page.trim_end()).unwrap(), &telling);
}

#[test]
fn excluded_target_is_in_no_format_and_unknown_one_is_rejected() {
    let place = Place::new();
    let answer = place.run(&session(&["sqlite:", "null:"], &SHORT));
    assert_all_verified(&place, &answer);
    for format in ["html", "md", "csv", "json", "hgrm"] {
        let answer = place.run(&["report", "--leave-out", "SQLite", "--format", format, "-o", "-"]).success();
        assert!(!answer.out.to_lowercase().contains("sqlite"), "{format}: {}", answer.out);
    }
    let answer = place.run(&["compare", "last", "last", "--leave-out", "sqlite:"]).success();
    assert!(!answer.out.to_lowercase().contains("sqlite"), "{answer:?}");
    for (args, part) in [
        (&["report", "--leave-out", "sqlit"][..], "did you mean 'sqlite'?"),
        (&["report", "--leave-out", "sqlite", "--leave-out", "null"], "would have no targets left"),
        (&["compare", "last", "last", "--leave-out", "oracle"], "there are: null, sqlite"),
    ] {
        place.run(args).exit_code(2).err_has(part);
    }
}

#[test]
fn recorded_clause_is_in_every_format_and_anonymised() {
    let place = Place::new();
    assert_all_verified(&place, &place.run(&session(&["null:"], &SHORT)));
    // As a run on an engine with such a licence records it.
    let store = Store::open(place.path()).unwrap();
    let mut run = kurabe_record::read(&store.find("last").unwrap()).unwrap().run;
    run.header.targets[0].publishing = Some(PublishingClause {
        name: "Licence 7".to_owned(),
        says: "no figures".to_owned(),
        source: "https://licence.example".to_owned(),
    });
    fs::remove_dir_all(place.path().join(&run.header.run)).unwrap();
    let mut writer = store.create(&run.header).unwrap();
    run.trials.iter().for_each(|trial| writer.trial(trial).unwrap());
    writer.end(&run.end.unwrap()).unwrap();
    drop(writer);
    for args in [
        &["report", "last"][..],
        &["report", "--format", "md"],
        &["report", "--format", "csv"],
        &["report", "--format", "json"],
        &["report", "--format", "html", "-o", "-"],
        &["compare", "last", "last"],
    ] {
        let answer = place.run(args).success();
        assert!(answer.out.contains("https://licence.example"), "{args:?}: {}", answer.out);
    }
    let answer = place.run(&["report", "--format", "json", "--anonymise"]);
    assert!(!answer.out.contains("licence.example"), "{answer:?}");
    assert!(answer.err.contains("Licence 7") && answer.err.contains("warning"), "{answer:?}");
}
