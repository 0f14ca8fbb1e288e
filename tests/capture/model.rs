//! `kurabe capture model`: the workload does what was recorded, as the servers count it.

use super::*;

/// The model of a capture: its text, and its path.
fn modelled(place: &Place, path: &Path, name: &str, options: &[&str]) -> (String, String) {
    let file = place.home().join(name).to_str().unwrap().to_owned();
    let args = [&["capture", "model", path.to_str().unwrap(), "-o", &file], options].concat();
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    (std::fs::read_to_string(&file).unwrap(), file)
}

/// Runs a model once, and asserts that the server counts its statements in the proportions of the recording.
fn assert_mix(place: &Place, file: &str, url: &str, recorded: &[u64], count: &mut dyn FnMut() -> Vec<u64>) {
    let args = [
        "run", "-f", file, url, "--rounds", "1", "--requests", "1500", "--interleave=off", "--no-html",
        "--quiet",
    ];
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let found = count();
    let (all, of): (u64, u64) = (recorded.iter().sum(), found.iter().sum());
    assert!(of > 1_500, "{found:?}");
    for (before, after) in recorded.iter().zip(&found) {
        let (expected, share) = (*before as f64 / all as f64, *after as f64 / of as f64);
        // Statements of one transaction come together: seven at most. The warm-up stops within one.
        let error = (7.0 * expected * (1.0 - expected) / of as f64).sqrt();
        assert!((share - expected).abs() < 4.5 * error + 0.003, "recorded {recorded:?}, run {found:?}");
    }
}

/// The numbers behind each of these words in a text.
fn numbers(text: &str, word: &str) -> Vec<f64> {
    let number = |rest: &str| rest.split([' ', ',', ']', '}']).next().and_then(|number| number.parse().ok());
    text.split(word).skip(1).filter_map(number).collect()
}

#[test]
fn model_of_pgbench_has_its_mix_and_its_draws() {
    let preload = |options: kurabe_testbed::StartOptions| {
        options
            .set("shared_preload_libraries", "pg_stat_statements")
            .set("pg_stat_statements.track_utility", "off")
    };
    let Some(server) = testing::own_server_with("postgres", preload) else { return };
    let Some(_) = sql(&server, "", "CREATE EXTENSION pg_stat_statements") else { return };
    if Command::new("pgbench").arg("--version").output().is_err() {
        skip("there is no program pgbench");
        return;
    }
    let place = Place::new();
    // The frequent keys are anywhere; a list of texts; a second value that depends on the first.
    let script = "\\set aid 1 + permute(random_zipfian(0, 99999, 1.3) , 100000)\n\\set word random(1, 4) / 4 * 7 + 1\n\
                  SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 9 AND filler < :word::text;\n";
    std::fs::write(place.home().join("zipf.sql"), script).unwrap();
    captured(&place, "init", &[], server.url(), "pgbench -i -q -s 1 2>/dev/null");
    let mut count = || {
        // As texts, since a run prepares some with other names for types.
        let query = "SELECT sum(calls) FILTER (WHERE query ILIKE 'UPDATE%accounts%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'UPDATE%tellers%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'UPDATE%branches%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'INSERT%history%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'SELECT%abalance%'), \
                     sum(calls) FILTER (WHERE query ILIKE 'SELECT count%filler%') FROM pg_stat_statements";
        let told = sql(&server, "", query).unwrap();
        sql(&server, "", "SELECT pg_stat_statements_reset()");
        told.trim().split('|').map(|number| number.parse().unwrap_or(0)).collect::<Vec<u64>>()
    };
    for mode in ["prepared", "simple"] {
        count();
        let script = format!(
            "cd '{}'; pgbench -n -M {mode} -c 2 -t 200; pgbench -n -S -M {mode} -c 2 -t 600; \
             pgbench -n -M {mode} -f zipf.sql -c 2 -t 800",
            place.home().display()
        );
        let path = captured(&place, &format!("{mode}.capture"), &[], server.url(), &script);
        let recorded = count();
        assert_eq!(recorded, [400, 400, 400, 400, 1_600, 1_600], "{mode}");
        let (text, file) = modelled(&place, &path, &format!("{mode}.toml"), &[]);
        let exponents = numbers(&text, "exponent = ");
        assert!(exponents.len() == 1 && (exponents[0] / 1.3 - 1.0).abs() < 0.1, "{exponents:?}: {text}");
        // Uniform draws are no Zipf, and the deltas have both signs.
        let least = numbers(&text, "uniform = [");
        assert!(least.iter().any(|least| (-5_000.0..-4_500.0).contains(least)), "{text}");
        assert!(text.contains("weights = [") && text.contains(":aid + 9 "), "{text}");
        assert!(text.contains("get = \"pgbench_accounts\", key = \":aid\""), "{text}");
        assert_mix(&place, &file, server.url(), &recorded, &mut count);
    }
    // An engine on which it never ran.
    let (text, file) = modelled(&place, &place.home().join("prepared.capture"), "made.toml", &["--made"]);
    assert!(
        text.contains("[collection.pgbench_history]") && text.contains("row = \"pgbench_accounts\""),
        "{text}"
    );
    assert!(text.contains("Not in it") && text.contains("not a statement on rows of one table"), "{text}");
    let args = [
        "run", "-f", &file, "sqlite:", "-D", "scale=0.01", "--rounds", "1", "--requests", "200", "--no-html",
    ];
    let answer = place.run(&args);
    assert_eq!(answer.code, Some(0), "{answer:?}");
}

#[test]
fn model_of_a_mysql_client_has_its_mix_and_its_loops() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let Some(_) = sql(
            &server,
            "",
            "CREATE TABLE item (id int PRIMARY KEY, name varchar(20), n int); \
             CREATE TABLE part (id int, of_item int, KEY (of_item))",
        ) else {
            continue;
        };
        let place = Place::new();
        // 150 pages with the parts of one item, one by one, and a name that is often the same; 300 changes of an item.
        let mut script = String::new();
        for n in 0..150_u64 {
            let item = kurabe_stats::mix(1, n) % 500;
            let _ = writeln!(script, "START TRANSACTION; SELECT name, n FROM item WHERE id = {item};");
            for part in 0..3 + n % 2 * 4 {
                let _ = writeln!(script, "SELECT n + {} FROM item WHERE n = {item};", 100 + part * 7);
            }
            script.push_str("COMMIT;\n");
            for change in 0..2 {
                let key = kurabe_stats::mix(2, 2 * n + change) % 500;
                let name = if n % 3 == 0 { "it''s" } else { "plain" };
                let _ = writeln!(script, "UPDATE item SET name = '{name}', n = {n} WHERE id = {key};");
            }
        }
        let file = place.home().join("script.sql");
        std::fs::write(&file, script).unwrap();
        let count = || -> Vec<u64> {
            let status = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_update')";
            let told = sql(&server, "", status).unwrap();
            told.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let difference = |before: &[u64]| -> Vec<u64> {
            count().iter().zip(before).map(|(now, before)| now - before).collect()
        };
        let before = count();
        let command = format!(
            "mysql --no-defaults --protocol=tcp --user=root kurabe < '{}' > /dev/null",
            file.display()
        );
        let path = captured(&place, engine, &[], server.url(), &command);
        let recorded = difference(&before);
        let (text, file) = modelled(&place, &path, &format!("{engine}.toml"), &[]);
        // Two kinds: the pages with their loop of three or seven, and the changes.
        assert!(text.matches("[transaction.").count() == 2, "{text}");
        assert!(
            text.contains("{ list = [3, 7], weights = [75, 75] }") && text.contains("most = 7"),
            "{text}"
        );
        assert!(text.contains("list = [\"plain\", \"it's\"], weights = [200, 100]"), "{text}");
        assert!(text.contains("update = \"item\", key = \":id\""), "{text}");
        assert!(text.contains("statement = [\"literal\"]"), "{text}");
        let before = count();
        assert_mix(&place, &file, server.url(), &recorded, &mut || difference(&before));
    }
}

#[test]
fn model_says_what_it_cannot_do() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let script = "psql -qXc 'CREATE TEMP TABLE t (a int)' -c 'SELECT 6 * 7'";
    let out = place.home().join("out.toml");
    for (values, part) in
        [("hash", "was recorded with --values hash"), ("drop", "was recorded with --values drop")]
    {
        let path = captured(&place, values, &["--values", values], server.url(), script);
        let answer = place.run(&["capture", "model", path.to_str().unwrap(), "-o", out.to_str().unwrap()]);
        assert!(answer.code == Some(2) && answer.err.contains(part) && !out.exists(), "{answer:?}");
    }
    let path = captured(&place, "none", &[], server.url(), "psql -qXc 'CREATE TEMP TABLE t (a int)'");
    let answer = place.run(&["capture", "model", path.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    assert!(
        answer.code == Some(2) && answer.err.contains("no statement that a workload can have"),
        "{answer:?}"
    );
    let answer = place.run(&["capture", "model", path.to_str().unwrap(), "-o", path.to_str().unwrap()]);
    assert!(answer.code != Some(0), "{answer:?}");
}
