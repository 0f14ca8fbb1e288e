//! What Connector/J sends before the first statement of the application.

use super::*;

/// The statements that Connector/J sends before the first own one on a further connection, with these properties.
fn connector_j(server: &Server, folder: &std::path::Path, properties: &str) -> Vec<String> {
    let place = Place::new();
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let jar = entries.into_iter().find(|path| path.extension().is_some_and(|end| end == "jar")).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../xtask/drivers/Jdbc.java");
    let command =
        ["java", "-cp", jar.to_str().unwrap(), script, "mysql", properties, "SELECT 42 AS kurabe_own"];
    let (report, _) = relayed(&place, &["--first", "kurabe_own"], server.url(), &command);
    let connections = report["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 2, "{report:#}");
    let further = &connections[1]["connecting"]["statements"];
    texts(further).into_iter().map(str::to_owned).collect()
}

/// The folder of a driver that `cargo xtask setup --stacks` fetches from Maven, if it is there with a Java that runs it.
fn java_driver(name: &str) -> Option<std::path::PathBuf> {
    let folder = crate::support::cache()?.join("drivers/java").join(name);
    let there = folder.is_dir() && Command::new("javac").arg("-version").output().is_ok();
    if !there {
        tell(&format!("{name} or a JDK is missing; to get it: cargo xtask setup --stacks"));
    }
    there.then_some(folder)
}

/// What the author of 2012 reported: several statements on each new connection, and four properties that prevent them.
#[test]
fn four_properties_prevent_the_statements_of_connector_j() {
    const FOUR: [(&str, &str); 4] = [
        ("cacheServerConfiguration=true", "@@session.auto_increment_increment"),
        ("useLocalSessionState=true", "SET autocommit"),
        ("characterSetResults=UTF-8", "SET character_set_results"),
        ("jdbcCompliantTruncation=false", "sql_mode="),
    ];
    // Today's servers are strict by default, so that a driver that requires it has nothing to set.
    let not_strict = |options: StartOptions| options.set("sql_mode", "NO_ENGINE_SUBSTITUTION");
    let Some(server) = testing::server_with("mysql", not_strict) else { return };
    for (name, left) in [
        // Today's server calls UTF-8 utf8mb4; the driver of that time calls it utf8.
        ("connector-j-5.1", vec!["SET character_set_results = utf8"]),
        ("connector-j", vec![]),
    ] {
        let Some(folder) = java_driver(name) else { return };
        let plain = connector_j(&server, &folder, "");
        for (property, statement) in FOUR {
            let contains = |statements: &[String]| statements.iter().any(|text| text.contains(statement));
            assert!(contains(&plain), "{name}: {plain:?}");
            let with_one = connector_j(&server, &folder, property);
            let same = left.iter().any(|left| left.contains(statement));
            assert_eq!(contains(&with_one), same, "{name} {property}: {with_one:?}");
        }
        let all = connector_j(&server, &folder, &FOUR.map(|(property, _)| property).join("&"));
        assert_eq!(all, left, "{name}");
    }
}
