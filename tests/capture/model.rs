//! `kurabe capture model`: the workload does what was recorded, as the servers count it.

use super::*;
use crate::replay::commands;
use crate::replay::mongodb::{Client, counted, recorded};
use crate::servers::common::{cells, has_program};
use serde_json::json;
use std::io::Write as _;
use std::net::TcpStream;

/// The model of a capture: its text, and its path.
fn modelled(place: &Place, path: &str, name: &str, options: &[&str]) -> (String, String) {
    let file = place.at(name);
    let args = [&["capture", "model", path, "-o", &file], options].concat();
    place.run(&args).success();
    (std::fs::read_to_string(&file).unwrap(), file)
}

/// Runs a model once, and asserts that the server counts its statements in the proportions of the recording.
fn assert_mix(place: &Place, file: &str, url: &str, recorded: &[u64], count: &mut dyn FnMut() -> Vec<u64>) {
    assert_mix_of(1_500, place, file, url, recorded, count);
}

/// As [`assert_mix`], with so many requests in a trial.
fn assert_mix_of(
    requests: u64,
    place: &Place,
    file: &str,
    url: &str,
    recorded: &[u64],
    count: &mut dyn FnMut() -> Vec<u64>,
) {
    let requests = requests.to_string();
    let args = [
        "run", "-f", file, url, "--rounds", "1", "--requests", &requests, "--interleave=off", "--no-html",
        "--quiet",
    ];
    place.run(&args).success();
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
    if !has_program("pgbench") {
        return;
    }
    let place = Place::new();
    // The frequent keys are anywhere; a list of texts; a second value that depends on the first.
    let script = "\\set aid 1 + permute(random_zipfian(0, 99999, 1.3) , 100000)\n\\set word random(1, 4) / 4 * 7 + 1\n\
                  SELECT count(*) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 9 AND filler < :word::text;\n";
    place.file("zipf.sql", script);
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
    let (text, file) = modelled(&place, &place.at("prepared.capture"), "made.toml", &["--made"]);
    assert!(text.contains("[collection.pgbench_history]"), "{text}");
    assert!(text.contains("row = \"pgbench_accounts\""), "{text}");
    assert!(text.contains("Not in it") && text.contains("not a statement on rows of one table"), "{text}");
    let args = [
        "run", "-f", &file, "sqlite:", "-D", "scale=0.01", "--rounds", "1", "--requests", "200", "--no-html",
    ];
    place.run(&args).success();
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
        let file = place.file("script.sql", script);
        let count = || -> Vec<u64> {
            let status = "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_select', 'Com_update')";
            let told = sql(&server, "", status).unwrap();
            told.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let difference = |before: &[u64]| -> Vec<u64> {
            count().iter().zip(before).map(|(now, before)| now - before).collect()
        };
        let before = count();
        let command = format!("mysql --no-defaults --protocol=tcp --user=root kurabe < '{file}' > /dev/null");
        let path = captured(&place, engine, &[], server.url(), &command);
        let recorded = difference(&before);
        let (text, file) = modelled(&place, &path, &format!("{engine}.toml"), &[]);
        // Two kinds: the pages with their loop of three or seven, and the changes.
        assert!(text.matches("[transaction.").count() == 2, "{text}");
        assert!(text.contains("{ list = [3, 7], weights = [75, 75] }"), "{text}");
        assert!(text.contains("most = 7"), "{text}");
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
    let out = place.at("out.toml");
    for (values, part) in
        [("hash", "was recorded with --values hash"), ("drop", "was recorded with --values drop")]
    {
        let path = captured(&place, values, &["--values", values], server.url(), script);
        let answer = place.run(&["capture", "model", &path, "-o", &out]).exit_code(2).err_has(part);
        assert!(!Path::new(&out).exists(), "{answer:?}");
    }
    let path = captured(&place, "none", &[], server.url(), "psql -qXc 'CREATE TEMP TABLE t (a int)'");
    place
        .run(&["capture", "model", &path, "-o", &out])
        .exit_code(2)
        .err_has("no statement that a workload can have");
    let answer = place.run(&["capture", "model", &path, "-o", &path]);
    assert!(answer.code != Some(0), "{answer:?}");
}

#[test]
fn model_of_texts_in_statements_and_of_columns_after_a_default_runs() {
    let Some(server) = testing::server("postgres") else { return };
    let Some(_) = sql(&server, "", "CREATE TABLE item (id serial PRIMARY KEY, title text, body text)") else {
        return;
    };
    let place = Place::new();
    let mut script = String::new();
    for n in 0..60 {
        let _ = writeln!(script, "SELECT count(*) FROM item WHERE title = 'title {}' AND id > 0;", n % 7);
        let _ = writeln!(
            script,
            "INSERT INTO item (id, title, body) VALUES (DEFAULT, 'title {}', 'always');",
            n % 5
        );
    }
    let file = place.file("script.sql", script);
    let path = captured(&place, "texts", &[], server.url(), &format!("psql -qXf '{file}' > /dev/null"));
    let (text, file) = modelled(&place, &path, "texts.toml", &[]);
    // Draws have the names of their own columns.
    assert!(text.contains("title = ':title'") && !text.contains(":id"), "{text}");
    let run =
        ["run", "-f", &file, server.url(), "--rounds", "1", "--requests", "300", "--no-html", "--write"];
    place.run(&run).success();
}

/// Runs a model once on an engine that has none of the tables, keys or documents.
fn assert_runs(place: &Place, file: &str, targets: &[&str]) {
    let brief = ["--rounds", "1", "--requests", "300", "--no-html"];
    place.run(&[&["run", "-f", file], targets, &brief].concat()).success();
    let report = place.report();
    for cell in cells(&report) {
        assert!(cell["verified"].as_object().is_some_and(|counts| !counts.is_empty()), "{cell:#}");
    }
}

/// Ranks below `width` by Zipf's law, from the table of its distribution function.
fn zipf(width: usize, exponent: f64) -> impl FnMut() -> usize {
    let mut sum = 0.0;
    let mut add = |k: usize| {
        sum += (k as f64).powf(-exponent);
        sum
    };
    let sums: Vec<f64> = (1..=width).map(&mut add).collect();
    let mut rng = kurabe_stats::Rng::new(7);
    move || {
        let wanted = rng.unit_f64() * sums[width - 1];
        sums.partition_point(|sum| *sum <= wanted).min(width - 1)
    }
}

/// The name of a session, of which a third of all characters are no digits.
fn session(rank: usize) -> String {
    format!("session:{:016x}", kurabe_stats::mix(3, rank as u64))
}

/// Asserts that a text of a model has these exponents, and these sizes with these shares.
fn assert_planted(text: &str, exponent: f64, sizes: &str, share: f64) {
    let exponents = numbers(text, "exponent = ");
    let is_near = |found: &f64| (found / exponent - 1.0).abs() < 0.1;
    assert!(!exponents.is_empty() && exponents.iter().all(is_near), "{exponents:?}: {text}");
    let (_, weights) = text.split_once(&format!("{{ text = [{sizes}], weights = [")).expect(text);
    let weights: Vec<f64> =
        weights.split(']').next().unwrap().split(", ").map(|weight| weight.parse().unwrap()).collect();
    assert!((weights[0] / weights.iter().sum::<f64>() - share).abs() < 0.1, "{weights:?}");
}

/// What Redis has counted of reads, writes and removals of keys since then.
fn of_keys(server: &Server, before: &BTreeMap<String, u64>) -> Vec<u64> {
    let now = commands(server);
    let since = |name: &&str| now.get(*name).unwrap_or(&0) - before.get(*name).unwrap_or(&0);
    let writes: u64 = ["set", "setex", "incr"].iter().map(since).sum();
    vec![since(&"get"), writes, since(&"del")]
}

#[test]
fn model_of_a_session_store_has_its_mix_its_skew_and_its_sizes() {
    let Some(server) = testing::own_server("redis") else { return };
    if !has_program("redis-cli") || !has_program("redis-benchmark") {
        return;
    }
    let place = Place::that_starts_servers();
    let (mut rank, mut rng, mut lines) = (zipf(200, 1.2), kurabe_stats::Rng::new(1), String::new());
    for n in 0..6_000 {
        let size = if rng.below(4) == 0 { 900 } else { 90 };
        let _ = match rng.below(20) {
            0..12 => writeln!(lines, "GET {}", session(rank())),
            // Each value differs from all others.
            12..16 => writeln!(lines, "SETEX {} 600 {n:0size$}", session(rank())),
            16..18 => writeln!(lines, "INCR user:{}:visits", 1 + rng.below(500)),
            18 => writeln!(lines, "DEL {}", session(rank())),
            _ => writeln!(lines, "LPUSH queue {n}"),
        };
    }
    place.file("lines", lines);
    let script = format!(
        "cd '{}'; redis-cli -u \"$REDIS_URL\" < lines > out; \
         redis-benchmark -h $REDIS_HOST -p $REDIS_PORT -a $REDISCLI_AUTH -q -r 400 -n 1000 -c 2 -t set,get > out",
        place.home().display()
    );
    let before = commands(&server);
    let path = captured(&place, "sessions", &[], server.url(), &script);
    let recorded = of_keys(&server, &before);
    place.run(&["capture", "model", &path, "-o", "x.toml"]).exit_code(2).err_has("add --made");
    let (text, file) = modelled(&place, &path, "made.toml", &["--made"]);
    assert_planted(&text, 1.2, "90, 900", 0.75);
    // A client that logs in and sends one command in a loop has no transaction of that many commands.
    assert!(numbers(&text, "repeat = ").iter().all(|times| *times < 50.0), "{text}");
    assert!(text.contains("LPUSH ?: a list") && text.contains("[collection.user_visits]"), "{text}");
    // Numbers of keys as redis-benchmark writes them, without the zeros before them.
    let rows = numbers(&text[text.find("[collection.key]").unwrap()..], "int(");
    assert!((380.0..=400.0).contains(&rows[0]), "{text}");
    let before = commands(&server);
    // The server counts some 600 writes of loading too: they are a few of a hundred then.
    assert_mix_of(6_000, &place, &file, server.url(), &recorded, &mut || of_keys(&server, &before));
    assert_runs(&place, &file, &["sqlite:", "up:redis"]);
}

#[test]
fn transaction_of_redis_is_one_of_the_model() {
    let Some(server) = testing::own_server("redis") else { return };
    if !has_program("redis-cli") {
        return;
    }
    let place = Place::new();
    let mut lines = String::new();
    for n in 0..300_u64 {
        let user = kurabe_stats::mix(1, n) % 50 + 1;
        let _ = writeln!(lines, "MULTI\nHSET user:{user} name n{n} city c{n}\nSET last:{user} {n}\nEXEC");
        let _ = writeln!(lines, "HGETALL user:{user}");
    }
    place.file("lines", lines);
    let script = format!("redis-cli -u \"$REDIS_URL\" < '{}' > /dev/null", place.at("lines"));
    let path = captured(&place, "multi", &[], server.url(), &script);
    let (text, file) = modelled(&place, &path, "made.toml", &["--made"]);
    let steps = "  \"begin\",\n  { put = \"user\", values = { \"id\" = \":id\", \"name\" = \":name\", \"city\" = \":city\" } },\n  \
                 { put = \"last\", values = { \"id\" = \":id\"";
    assert!(text.contains(steps), "{text}");
    assert!(text.contains("  { get = \"user\", key = \":id\", rows = [0, 1] }"), "{text}");
    assert_runs(&place, &file, &["sqlite:"]);
}

#[test]
fn model_of_memcached_has_its_mix_on_another_engine() {
    let open = |options: kurabe_testbed::StartOptions| options.set("login", "none");
    let server = testing::own_server_with("memcached", open);
    let (Some(server), Some(other)) = (server, testing::own_server("redis")) else { return };
    let place = Place::that_starts_servers();
    let ask = |stream: &mut BufReader<TcpStream>, text: &str, end: &[&str]| {
        let mut found = String::new();
        stream.get_mut().write_all(text.as_bytes()).unwrap();
        while !end.iter().any(|end| found.ends_with(&format!("{end}\r\n"))) {
            assert_ne!(stream.read_line(&mut found).unwrap(), 0);
        }
        found
    };
    let count = || -> Vec<u64> {
        let stream = testing::connected(&server).unwrap();
        let said = ask(&mut BufReader::new(stream), "stats\r\n", &["END"]);
        let of = |name: &str| numbers(&said.replace('\r', " "), &format!("STAT {name} "))[0] as u64;
        vec![of("cmd_get"), of("cmd_set"), of("delete_hits") + of("delete_misses")]
    };
    let before = count();
    let path = recorded(&place, "memcached", &server, |address| {
        let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
        let (mut rank, mut rng) = (zipf(200, 1.2), kurabe_stats::Rng::new(2));
        for n in 0..3_000 {
            let (key, size) = (session(rank()), if rng.below(2) == 0 { 300 } else { 30 });
            let text = match rng.below(10) {
                0..6 => format!("get {key}\r\n"),
                6..9 => format!("set {key} 0 60 {size}\r\n{n:0size$}\r\n"),
                _ => format!("delete {key}\r\n"),
            };
            ask(&mut stream, &text, &["END", "STORED", "DELETED", "NOT_FOUND"]);
        }
    });
    let recorded: Vec<u64> = count().iter().zip(before).map(|(now, before)| now - before).collect();
    let (text, file) = modelled(&place, &path, "made.toml", &["--made"]);
    assert_planted(&text, 1.2, "30, 300", 0.5);
    let before = commands(&other);
    assert_mix(&place, &file, other.url(), &recorded, &mut || of_keys(&other, &before));
    assert_runs(&place, &file, &["sqlite:", "up:memcached"]);
}

#[test]
fn model_of_documents_has_its_mix_and_runs_on_tables() {
    let Some(server) = testing::own_server("mongodb") else { return };
    let place = Place::that_starts_servers();
    let count = || ["find", "update", "delete"].map(|name| counted(&server).get(name).copied().unwrap_or(0));
    let before = count();
    let path = recorded(&place, "documents", &server, |address| {
        let (mut client, items) = (Client::connect(&server, address), json!("items"));
        let (mut rank, mut rng) = (zipf(200, 1.2), kurabe_stats::Rng::new(3));
        for n in 0..2_000_u64 {
            let id = format!("{:024x}", kurabe_stats::mix(4, rank() as u64));
            let change = json!([{ "q": { "_id": id }, "u": { "$set": { "note": format!("{n:040}") }, "$inc": { "n": 1 } } }]);
            let _ = match rng.below(20) {
                0..10 => client.ask("find", &items, &json!({ "filter": { "_id": id }, "limit": 1 })),
                10..15 => client.ask("update", &items, &json!({ "updates": change })),
                15..17 => {
                    let city = ["Kyoto", "Nara"][usize::from(n % 3 == 0)];
                    client.ask(
                        "find",
                        &items,
                        &json!({ "filter": { "at": 7, "shopCity": city }, "projection": { "note": 1 } }),
                    )
                }
                17 => {
                    client.ask("delete", &items, &json!({ "deletes": [{ "q": { "_id": id }, "limit": 1 }] }))
                }
                18 => {
                    let new = json!({ "_id": format!("new{n:021x}"), "note": "x", "n": 0.5, "at": 7, "shopCity": "Uji" });
                    client.ask("insert", &items, &json!({ "documents": [new] }))
                }
                _ => client.ask("count", &items, &json!({ "query": {} })),
            };
        }
    });
    let since = |before: &[u64]| -> Vec<u64> {
        count().iter().zip(before).map(|(now, before)| now - before).collect()
    };
    let recorded = since(&before);
    let (text, file) = modelled(&place, &path, "made.toml", &["--made"]);
    assert!(
        text.contains("find-equal = \"items\", where = { \"at\" = \":at\", \"shopcity\" = \":shopcity\" }"),
        "{text}"
    );
    assert!(text.contains("insert = \"items\""), "{text}");
    assert!(text.contains("not a find, insert, update or delete"), "{text}");
    let before = count();
    assert_mix(&place, &file, server.url(), &recorded, &mut || since(&before));
    assert_runs(&place, &file, &["sqlite:"]);
}
