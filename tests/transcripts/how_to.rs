//! What a reader of the other how-to pages types. It takes minutes.

use super::{block, commands, files, shell};
use crate::support::Place;
use kurabe_testbed::testing;

/// The other pages whose commands run on the servers of the tests.
const HOW_TO: [&str; 12] = [
    "bulk", "capture", "connection-pool", "estimates", "export", "link", "pipeline", "processors", "rate",
    "schema", "suite", "wire",
];

/// Parts of their commands, and what a test has in their place: the reader's databases and application, and less work.
const SHORTER: [(&str, &str); 21] = [
    ("postgres://app@db.example/shop_old", "OWN"),
    ("postgres://app@db.example/shop_new", "OWN"),
    ("postgres://app@db.example/shop", "OWN"),
    ("postgres://app@test.example/shop", "OWN"),
    ("postgres://app@near.example/shop", "OWN"),
    ("postgres://app@far.example/shop", "OWN"),
    ("python3 app.py", "psql -qXf app.sql"),
    ("up:postgres up:mariadb up:mysql", "up:postgres up:mariadb"),
    ("up:mysql", "up:mariadb"),
    ("up:postgres up:mariadb --setup", "up:postgres --setup"),
    ("mongodb://db.example", "sqlite:"),
    ("--rows 100k", "--rows 1k"),
    ("--fetch default,1k,10k", "--fetch default,10k"),
    ("--cpus 1,2,4,8", "--cpus 1,2"),
    ("--clients 64", "--clients 4"),
    ("--clients 1,8,64", "--clients 1,8"),
    ("--rate 500,1000,2000,4000", "--rate 200"),
    ("--rate 1000", "--rate 100"),
    ("--where second,host,host-9000", "--where second"),
    ("orders WHERE created > '2026-01-01' AND customer = 17", "orders WHERE customer = 17"),
    ("-D scale=10", "-D scale=1"),
];

/// Commands that no server of the tests can answer, by a part of them.
const ELSEWHERE: [&str; 8] = [
    "--tls terminate", "--from ", "rediss:", "runs rm ", "--label main", "suites/mission.toml", "cache.toml",
    "cache.capture",
];

#[test]
fn commands_of_other_how_to_pages_do_what_the_pages_say() {
    let (Some(server), Some(_)) = (testing::server("postgres"), testing::server("mariadb")) else { return };
    let table =
        "CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, customer int NOT NULL, status text NOT NULL)";
    let rows =
        "INSERT INTO orders SELECT n, n % 40, 'open' FROM generate_series(1, 400) n ON CONFLICT DO NOTHING";
    let mut shop = crate::copy::side(server.url());
    for statement in [table, rows, "ANALYZE orders"] {
        shop.run(statement).unwrap();
    }
    for page in HOW_TO {
        let place = Place::that_starts_servers();
        files(&place);
        place.file("shop.sql", format!("{table};\n{rows};\n"));
        place.file("main.sql", format!("{table};\n{rows};\n"));
        place.file("branch.sql", format!("{table};\n{rows};\nCREATE INDEX ON orders (customer);\n"));
        place.file("app.sql", "SELECT id FROM orders WHERE customer = 7;\n".repeat(20));
        for name in ["browse.sql", "one.sql"] {
            place.file(name, "SELECT id FROM orders WHERE customer = 7;\n");
        }
        place.file("mine.toml", block("docs/custom-workloads.md", "toml"));
        if page == "export" {
            assert_eq!(
                shell(
                    &place,
                    "kurabe run session sqlite: --rounds 2 --requests 20 --records 50 --payload 1k"
                )
                .code,
                Some(0)
            );
        }
        let commands = commands(&format!("docs/how-to/{page}.md"));
        assert!(!commands.is_empty(), "{page}");
        for command in commands.iter().filter(|one| !ELSEWHERE.iter().any(|part| one.contains(part))) {
            let short = SHORTER.iter().fold(command.clone(), |line, (part, own)| line.replace(part, own));
            let typed = short.replace("OWN", &format!("'{}'", server.url())).replace("copy:'", "'copy:");
            let (own, program) = typed.split_once(" -- ").unwrap_or((&typed, ""));
            let is_run = own.starts_with("kurabe run ");
            let more = [("--rounds", "2"), ("--budget", "2s")];
            let more = more
                .iter()
                .filter(|(option, _)| is_run && !own.contains(option) && !own.contains("--dry-run"));
            let own = more.fold(own.to_owned(), |line, (option, value)| format!("{line} {option} {value}"));
            let typed = if program.is_empty() { own } else { format!("{own} -- {program}") };
            // A recording is not overwritten, and a page names its file more than once.
            if let Some((_, file)) = typed.split_once(" -o ") {
                let _ = std::fs::remove_file(place.home().join(file.split(' ').next().unwrap()));
            }
            let answer = shell(&place, &typed);
            let codes: &[i32] = if typed.starts_with("kurabe gate ") { &[0, 6, 7] } else { &[0] };
            assert!(answer.code.is_some_and(|code| codes.contains(&code)), "{page}: {typed}: {answer:?}");
            let lines = answer.out.lines().count();
            assert!(
                !is_run || own_lines(&typed) || lines <= 20,
                "{page}: {typed} has {lines} lines:\n{}",
                answer.out
            );
        }
    }
}

/// Whether a command answers with a table for each of its runs.
fn own_lines(command: &str) -> bool {
    command.contains("suites/")
}
