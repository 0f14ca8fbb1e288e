//! `kurabe advise`: what is planted is found, on servers that it starts; what is the user's is left alone.

use crate::capture::captured;
use crate::servers::common::sql;
use crate::support::Place;
use kurabe_testbed::testing;
use serde_json::Value as Json;

/// An application's tables. No index serves `item.order_id` or lower names, and none needs `item.note`.
const SHOP: &str = "CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, total int NOT NULL);\
    CREATE TABLE item (id int PRIMARY KEY, order_id int NOT NULL, price int NOT NULL, note text);\
    CREATE INDEX orders_customer ON orders (customer);\
    CREATE INDEX item_note ON item (note);\
    INSERT INTO orders SELECT n, n % 500, n % 97 FROM generate_series(1, 5000) n;\
    INSERT INTO item SELECT n, n % 20000, n % 31, md5(n::text) FROM generate_series(1, 100000) n;\
    ANALYZE;";

/// What the application asks: orders of a customer, their items, and now and then a new item.
fn traffic(times: u32) -> String {
    let one = |n: u32| {
        let read =
            format!("SELECT * FROM orders WHERE customer = {n};\nSELECT * FROM item WHERE order_id = {n};\n");
        let write = format!("INSERT INTO item VALUES ({}, {n}, 1, 'new {n}');\n", 1_000_000 + n);
        if n.is_multiple_of(20) { read + &write } else { read }
    };
    (1..=times).map(one).collect()
}

fn labels<'a>(advice: &'a Json, list: &str) -> Vec<&'a str> {
    advice[list].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap()).collect()
}

#[test]
fn missing_index_is_proposed_confirmed_and_serves_the_statement_when_it_is_made() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::that_starts_servers();
    let data = place.file("shop.sql", SHOP);
    sql(&server, "", SHOP).unwrap();
    let script = place.file("traffic.sql", traffic(80));
    let capture = captured(&place, "shop.capture", &[], server.url(), &format!("psql -qXf {script}"));
    let (file, page) = (place.at("advice.sql"), place.at("advice.html"));
    let answer = place.run(&[
        "advise", &capture, "up:postgres", "--data", &data, "--try", "indexes", "--budget", "30s",
        "--report", "json", "-o", &file, "--export-html", &page,
    ]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let advice: Json = serde_json::from_str(&answer.out).unwrap();
    let gain = &advice["gains"][0];
    assert!(gain["label"].as_str().unwrap().starts_with("CREATE INDEX ON item (order_id"), "{advice:#}");
    let band = advice["unchanged"].as_f64().unwrap();
    assert!(gain["faster"]["low"].as_f64().unwrap() > band, "{advice:#}");
    assert!(gain["most"]["statement"].as_str().unwrap().contains("FROM item WHERE order_id"), "{advice:#}");
    assert!(gain["index_bytes"].as_i64().unwrap() > 100_000, "{advice:#}");
    // What serves already is not proposed, nor an index for a small share of the time.
    assert!(!answer.out.contains("ON orders (customer)"), "{advice:#}");
    // Each proposal is a gain or has a reason why it is none.
    let others = labels(&advice, "others");
    assert!(
        others.contains(&"DROP INDEX item_note ON item (note)") || answer.out.contains("DROP INDEX"),
        "{advice:#}"
    );
    // The user's server has no index more, until its administrator makes it, and then the server's own planner uses it.
    let count = "SELECT count(*) FROM pg_indexes WHERE tablename = 'item'";
    assert_eq!(sql(&server, "", count).unwrap().trim(), "2");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("CREATE INDEX ON item (order_id") && page.contains("DROP INDEX"), "{page}");
    let script = std::fs::read_to_string(&file).unwrap();
    let create = script.lines().find(|line| line.starts_with("CREATE INDEX")).unwrap();
    sql(&server, "", create).unwrap();
    let plan = sql(&server, "", "EXPLAIN SELECT * FROM item WHERE order_id = 7").unwrap();
    assert!(plan.contains("item_order_id_idx"), "{plan}");
}

#[test]
fn server_of_the_user_and_server_without_data_are_refused_before_anything_is_done() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    sql(&server, "", "CREATE TABLE a (k int PRIMARY KEY)").unwrap();
    let capture = captured(&place, "a.capture", &[], server.url(), "psql -qXc 'SELECT * FROM a WHERE k = 1'");
    let data = place.file("a.sql", "CREATE TABLE a (k int PRIMARY KEY)");
    let on = |target: &str, rest: &[&str]| place.run(&[&["advise", &capture, target], rest].concat());
    on(server.url(), &["--data", &data]).exit_code(2).err_has("never on a server of yours");
    on("up:postgres", &[]).exit_code(2).err_has("has no data");
    on("up:mariadb", &["--data", &data]).exit_code(2).err_has("cannot replay");
    on("up:postgres", &["--data", &data, "--try", "indices"]).exit_code(2).err_has("indexes");
    let kept = place.file("kept.sql", "");
    on("up:postgres", &["--data", &data, "-o", &kept]).exit_code(2).err_has("exists already");
    on("up:postgres", &["--data", &data, "--export-html", &kept]).exit_code(2).err_has("exists already");
    let new = place.at("new");
    on("up:postgres", &["--data", &data, "-o", &new, "--export-html", &new])
        .exit_code(2)
        .err_has("for two things");
    let other = place.at("./new");
    on("up:postgres", &["--data", &data, "-o", &new, "--export-html", &other])
        .exit_code(2)
        .err_has("for two things");
}

#[test]
fn long_text_column_of_mariadb_gets_an_index_of_its_beginning() {
    let Some(server) = testing::server("mariadb") else { return };
    let place = Place::that_starts_servers();
    let tables = "CREATE TABLE page (id int PRIMARY KEY, path text NOT NULL, body varchar(100) NOT NULL);\
        INSERT INTO page SELECT seq, concat('/', md5(seq)), md5(seq + 1) FROM seq_1_to_100000;";
    let data = place.file("pages.sql", tables);
    sql(&server, "", tables).unwrap();
    let one = |n: u32| format!("SELECT body FROM page WHERE path = '/{n:032x}';\n");
    let script = place.file("traffic.sql", (0..30).map(one).collect::<String>());
    let client = "mysql --no-defaults --protocol=tcp --user=root kurabe";
    let capture =
        captured(&place, "pages.capture", &[], server.url(), &format!("{client} < {script} >/dev/null"));
    let answer = place
        .run(&["advise", &capture, "up:mariadb", "--data", &data, "--try", "indexes", "--budget", "40s"])
        .success();
    assert!(answer.out.contains("CREATE INDEX `page_path_idx` ON `page` (`path`(32));"), "{answer:?}");
    assert!(answer.out.lines().count() <= 20, "{answer:?}");
}

/// What `kurabe advise` says of a capture of `command` on tables, as JSON.
fn advised(engine: &str, tables: &str, command: &str, kinds: &str) -> Option<Json> {
    let server = testing::server(engine)?;
    let place = Place::that_starts_servers();
    let data = place.file("tables.sql", tables);
    sql(&server, "", tables).unwrap();
    let script = place.file("traffic.sh", command);
    let capture = captured(&place, "a.capture", &[], server.url(), &format!("sh {script} >/dev/null"));
    let target = format!("up:{engine}");
    let answer = place
        .run(&[
            "advise", &capture, &target, "--data", &data, "--try", kinds, "--budget", "30s", "--report",
            "json",
        ])
        .success();
    Some(serde_json::from_str(&answer.out).unwrap())
}

/// A line for each number up to this one.
fn lines(times: u32, line: impl Fn(u32) -> String) -> String {
    (1..=times).map(|n| line(n) + "\n").collect()
}

#[test]
fn pool_gains_where_each_request_opens_a_connection() {
    let psql = |n: u32| format!("psql -qXAtc 'SELECT note FROM item WHERE id = {n}'");
    let tables = "CREATE TABLE item (id int PRIMARY KEY, note varchar(40)); INSERT INTO item VALUES (1, 'a'), (2, 'b');";
    let Some(advice) = advised("postgres", tables, &lines(60, psql), "pool") else { return };
    // Beside other load a small server's answers vary more than connections cost: the factor is told all the same.
    let (gain, other) = (&advice["gains"][0], &advice["others"][0]);
    let one = if gain.is_null() { other } else { gain };
    assert!(one["label"].as_str().unwrap().starts_with("keep connections open"), "{advice:#}");
    let factor = gain["faster"]["value"].as_f64().or(other["why"]["not-confirmed"]["value"].as_f64());
    assert!(factor > Some(1.3), "{advice:#}");
    assert!(one["sql"].as_str().unwrap().starts_with("-- in the application"), "{advice:#}");
}

#[test]
fn cache_of_a_hot_read_gains_with_its_hit_ratio() {
    let tables = "CREATE TABLE item (id int PRIMARY KEY, price int NOT NULL); CREATE TABLE log (id int PRIMARY KEY);\
        INSERT INTO item SELECT n, n % 31 FROM generate_series(1, 100000) n;";
    let read = "SELECT price, count(*) FROM item GROUP BY price ORDER BY price";
    let statements = lines(40, |n| format!("{read};\nINSERT INTO log VALUES ({n});"));
    let Some(advice) = advised("postgres", tables, &format!("psql -qX <<'E'\n{statements}E\n"), "cache")
    else {
        return;
    };
    let gain = &advice["gains"][0];
    assert!(gain["faster"]["low"].as_f64() > advice["unchanged"].as_f64(), "{advice:#}");
    // The first of 40 reads is none, and no commit changes its table.
    assert!((gain["hit_ratio"].as_f64().unwrap() - 39.0 / 40.0).abs() < 1e-9, "{advice:#}");
}
