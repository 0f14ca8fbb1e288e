//! Wrong command lines: each is refused, before anything starts, with what to write.

use crate::support::Place;
use kurabe_testbed::testing;

/// The words of command lines, and what the answer to each must contain.
type Lines = &'static [(&'static str, &'static [&'static str])];

/// Errors of usage: exit code 2.
const WRONG: Lines = &[
    // Commands.
    ("rnu session", &["no command 'rnu'", "'run'"]),
    ("session up:postgres", &["kurabe run session"]),
    ("help sesion", &["no command 'sesion'"]),
    ("postgres://me:secret@db/x", &["kurabe run session TARGET"]),
    ("frobnicate", &["there is no command 'frobnicate'"]),
    ("gate", &["kurabe gate browse.sql"]),
    ("gate session up:postgres", &["a suite file or pgbench scripts"]),
    ("runs list", &["'ls'"]),
    ("--versoin", &["--version"]),
    // Experiments and suites.
    ("run sesion", &["did you mean 'session'?"]),
    ("run up:postgres", &["kurabe run session"]),
    ("run -f nofile.toml", &["nofile.toml cannot be read"]),
    // Targets.
    ("up up:postgres", &["write 'kurabe up postgres'"]),
    ("up postgrs", &["up:postgres"]),
    ("up postgres:", &["write 'kurabe up postgres'"]),
    ("run session up:postgres@16", &["where its programs are", "up:postgres@16:FOLDER"]),
    ("run session up:postgrs", &["did you mean up:postgres?"]),
    ("run session postgress://x/y", &["did you mean 'postgres:'?"]),
    ("run session postgres", &["a target is a URL such as"]),
    ("run session mysql://localhost/db?foo=1", &["no option 'foo'"]),
    // Options.
    ("run session --interleave off", &["--interleave=off"]),
    ("run session --interleave 20ms", &["--interleave=20ms"]),
    ("run session --duration 500", &["500ms or 500s"]),
    ("run session --rate max --slo 10", &["10ms or 10s"]),
    ("run session --duration 500s", &["expected to take", " h", "--yes"]),
    ("run session --client 4", &["--clients"]),
    ("run session --clients 0", &["from 1 to"]),
    ("run session --payload 1x", &["write 1000, 4k"]),
    ("run session --layout bolb", &["did you mean 'blob'?"]),
    ("run session --operation reed", &["'read'"]),
    ("run session --rounds 0", &["from 1 to 10,000"]),
    ("run session --rounds many", &["write 1000"]),
    ("run session --durability sync", &["synced"]),
    ("run session --margin 5", &["add --until conclusive"]),
    ("run session --until done", &["conclusive"]),
    ("run session --requests 0", &["at least 1"]),
    ("run session --rate fast", &["a count, or max"]),
    ("run session --budget 0", &["from 1ns to a week"]),
    ("run session --threads x", &["per-client"]),
    ("run session --compare layuot", &["did you mean 'layout'?"]),
    ("run session --compare targets", &["compare one of: payload, layout"]),
    ("run session --cache up:redis", &["--cache"]),
    ("run session --arrivals poisson", &["--rate 5k"]),
    ("run connect --pool 0", &["from 1 to"]),
    ("report last --format yaml", &["openmetrics"]),
    ("claims zz", &["there are: s1"]),
    ("compare a", &["<NEW>"]),
    ("copy sqlite:", &["<TARGET>"]),
    ("agent", &["--stdio"]),
    ("selftest posgres", &["there are: postgres"]),
    ("selftest redis --kind nonsense", &["there are: nothing"]),
    // More targets.
    ("up nosuch", &["cannot start 'nosuch'", "there are: up:mysql"]),
    ("run session foo:", &["no driver for 'foo:'"]),
    ("run point-read up:memcached up:memcachd", &["did you mean up:memcached?"]),
    ("run point-read sqlite:?observe", &["reached by TCP"]),
    ("run kv --via stack:php/mysqli", &["add one: --db up:mysql"]),
    ("run kv up:mysql --db up:postgres", &["no target is an application stack"]),
    ("run kv --via stack:cobol --db up:mysql", &["there is no stack 'cobol'"]),
    ("up stack php --db mysql://a:secret@h/d", &["MYSQL_PWD"]),
    (
        "run cache-aside sqlite: --cache up:postgres",
        &["postgres is not a cache; there are: memcached, redis"],
    ),
    ("run cache-aside sqlite: --cache up:memcachd", &["did you mean up:memcached?"]),
    ("run cache-aside sqlite: --cache nonsense", &["is not a target"]),
    // Numbers and rules.
    ("selftest --rounds 0", &["--rounds 0 is out of range"]),
    ("selftest --duration 0", &["--duration 0 is out of range"]),
    ("run session --payload 10TB", &["out of range"]),
    ("run point-read sqlite: --rounds -1", &["--rounds: '-1' is not a count"]),
    ("run point-read sqlite: --clients -4", &["--clients: '-4' is not a count"]),
    ("run point-read sqlite: --duration -1s", &["--duration: '-1s' is not a time"]),
    ("up app sqlite: --workers -1", &["--workers", "'-1' is not a count"]),
    ("run point-read null: --restarts 1", &["no target is a throwaway server"]),
    ("run point-read up:redis --restarts 3 --rounds 6", &["4 blocks of equal length"]),
    ("run point-read --interleave=0s", &["slice length is out of range"]),
    ("run point-read --interleave=1h", &["slice length is out of range"]),
    ("run point-read --interleave=soon", &["--interleave"]),
    ("run point-read --interleave --rounds 2", &["needs at least 3 rounds"]),
    ("run point-read --interleave --rate 100", &["cannot be combined with --rate"]),
    ("run point-read null: --max-rounds 9", &["require --until"]),
    ("run point-read null: --until conclusive --margin 0", &["is not a margin"]),
    ("run point-read null: --until conclusive --margin 200%", &["is not a margin"]),
    ("run point-read null: --until conclusive --margin much", &["is not a margin"]),
    ("run point-read null: --until conclusive --margin -5", &["'-5' is not a margin"]),
    ("run point-read null: --until conclusive --max-rounds 2", &["less than the initial 6 rounds"]),
    ("run point-read sqlite: --cpu-placement pinned", &["requires --cpus"]),
    ("run point-write sqlite: --durability sinced", &["did you mean 'synced'?"]),
    ("run point-read up:memcached?programs=relative", &["is not the path of a folder"]),
    ("run point-read --dry-run up:memcached:/nowhere", &["is not the path of a folder"]),
    ("report --anonymise --published", &["cannot be used with"]),
    ("run webapp sqlite: --postal-codes /nowhere/at/all.csv", &["cannot be read"]),
    ("run webapp sqlite: --postal-codes 0", &["out of range"]),
    ("run pgbench sqlite: -b tpcb-lyk", &["did you mean 'tpcb-like'?"]),
    ("run pgbench sqlite: -f a.sql@x", &["'x' is not a script weight"]),
    // Fleets.
    #[cfg(feature = "full")]
    ("run point-read sqlite: --agents 2", &["--agents needs --fleet"]),
    #[cfg(feature = "full")]
    ("run point-read sqlite: --agent-label a=b", &["--agent-label needs --fleet"]),
    #[cfg(feature = "full")]
    ("run point-read sqlite: --on-lost-agent fail", &["--on-lost-agent needs --fleet"]),
    #[cfg(feature = "full")]
    ("run point-read sqlite: --fleet nats://h --on-lost-agent retry", &["write fail or continue"]),
    #[cfg(feature = "full")]
    ("run point-read sqlite: --fleet http://h", &["no address of a broker"]),
    #[cfg(feature = "full")]
    ("run point-read sqlite: --fleet nats://h --interleave=5ms", &["--interleave cannot be combined"]),
    // Servers of ours.
    ("serve --listen nowhere", &["nowhere"]),
    ("serve --token short", &["token"]),
    ("up tcp nowhere.example", &["nowhere.example"]),
    ("up tcp 0.0.0.0:0", &["--allow-remote"]),
    ("up tcp [::]:0", &["--allow-remote"]),
    ("up tcp 192.0.2.1", &["--allow-remote"]),
    ("up app", &["required"]),
    ("up app null: --listen 0.0.0.0:0", &["--allow-remote"]),
    ("up app null: --listen [::]:0", &["--allow-remote"]),
    ("up app null: --listen localhost", &["is not an address"]),
    ("up app null: --workers 0", &["out of range"]),
    ("up app null: --pool 3", &["--connection pool"]),
    ("up app null: --connection pool --pool 17", &["out of range"]),
    ("up app null: --set session.paylod=1k", &["did you mean 'payload'?"]),
    ("up app null: --set session.payload=1x", &["not a size"]),
    ("up app null: --set kv.clients=3", &["--workers"]),
    ("up app null: --set kv.connection=per-request", &["write --connection per-request"]),
];

/// Targets that cannot be used as asked: exit code 3.
const UNUSABLE: Lines = &[
    ("run session postgres://127.0.0.1:1/x", &["nothing listens at 127.0.0.1:1"]),
    ("run session mysql://root@127.0.0.1:1/x", &["nothing listens at 127.0.0.1:1"]),
    ("run session memcached://127.0.0.1:1", &["nothing listens at 127.0.0.1:1"]),
    ("run session sqlite:/no/such/folder/x.db", &["there is no folder"]),
    ("run kv --via stack:php/mysqli --db up:postgres", &["for postgres there are"]),
    ("up app postgres://127.0.0.1:1/x", &["nothing listens at 127.0.0.1:1"]),
    #[cfg(feature = "full")]
    ("run point-read sqlite: --fleet nats://127.0.0.1:1 --dry-run", &["within the coordinator's process"]),
    #[cfg(feature = "full")]
    ("run cache-aside null: --fleet nats://127.0.0.1:1 --dry-run", &["run it without --fleet"]),
    #[cfg(feature = "full")]
    ("run net null: --fleet nats://127.0.0.1:1 --dry-run", &["run it without --fleet"]),
    ("run webapp sqlite: --clients 201 --records 200", &["are too few for 201 clients"]),
    ("run net sqlite:", &["takes a listener"]),
    ("run net null:", &["no connections to carry bytes"]),
    ("run estimate sqlite:", &["no row estimates"]),
    ("run point-read sqlite: --cpus 1", &["only throwaway servers"]),
    ("run point-read sqlite: --threads 2", &["cannot share threads"]),
    ("run point-write sqlite: --durability replicated", &["SQLite has no replicas"]),
];

/// Runs that there are not: exit code 5.
const NO_RUNS: Lines = &[
    ("report", &["contains no runs"]),
    ("report nosuch", &["no runs yet", "kurabe run"]),
    ("run --again", &["no runs yet"]),
    ("run --resume last", &["contains no runs"]),
];

#[test]
fn engine_that_is_not_installed_does_not_stop_the_others() {
    let folder = Place::new();
    // No program is there.
    let missing = format!("up:memcached?programs={}", folder.path().display());
    let args =
        ["run", "point-read", "sqlite:", &missing, "--records", "20", "--requests", "40", "--rounds", "1"];
    Place::new().run(&args).success().err_has("left out: ").out_has("SQLite");
    // A gate needs both of its targets.
    let gate = Place::new().run(&[&args[..], &["--fail-on", "slower"]].concat());
    assert!(gate.code.is_some_and(|code| code != 0) && !gate.err.contains("left out"), "{gate:?}");
}

#[test]
fn wrong_command_line_is_refused_with_what_to_write() {
    let place = Place::new();
    let all = [(2, WRONG), (3, UNUSABLE), (5, NO_RUNS)];
    for (code, (line, parts)) in
        all.into_iter().flat_map(|(code, lines)| lines.iter().map(move |one| (code, one)))
    {
        let words: Vec<&str> = line.split(' ').collect();
        let answer = place.run(&words);
        assert!(answer.code == Some(code) && answer.out.is_empty(), "{line}: {answer:?}");
        for part in *parts {
            assert!(answer.err.contains(part), "{line}: '{part}' is not in: {}", answer.err);
        }
        for part in ["secret", "trial 1", "starting throwaway", "panicked"] {
            assert!(!answer.err.contains(part), "{line}: {answer:?}");
        }
        // What it suggests is a command that the program understands.
        for suggested in answer.err.split('\'').filter_map(|part| part.strip_prefix("kurabe ")) {
            let words: Vec<&str> = suggested.split_whitespace().chain(["--help"]).collect();
            assert_eq!(place.run(&words).code, Some(0), "{line} suggests kurabe {suggested}");
        }
    }
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "an error left a run behind");
}

#[test]
fn misspelt_or_misplaced_statement_is_refused_before_a_server_starts() {
    let place = Place::new();
    let file = place.file("a.sql", "SELEC 1;\n");
    for (args, part) in [
        (&["run", "pgbench", "-f", &file, "up:postgres"][..], "did you mean SELECT?"),
        (&["run", "-f", &file, "up:postgres"], "kurabe run pgbench -f"),
        (&["run", "pgbench", &file, "up:postgres"], "a script follows -f"),
        (&["run", "SELEC 1", "up:postgres"], "kurabe run pgbench -f FILE.sql"),
    ] {
        let answer = place.run(args).exit_code(2).err_has(part);
        assert!(!answer.err.contains("starting throwaway"), "{args:?}: {answer:?}");
    }
}

#[test]
fn help_and_list_are_short_and_have_the_rest_on_request() {
    let place = Place::new();
    for (brief, all, part) in [
        (&["--help"][..], &["help", "--all"][..], "selftest"),
        (&["run", "session", "--help"], &["run", "session", "--help", "--all"], "--arrivals"),
        (&["list"], &["list", "--all"], "--layout"),
    ] {
        let (brief, all) = (place.run(brief), place.run(all));
        assert_eq!((brief.code, all.code), (Some(0), Some(0)), "{brief:?}");
        assert!(brief.out.lines().count() <= 30, "{}", brief.out);
        assert!(!brief.out.contains(part) && all.out.contains(part), "{part}: {}", brief.out);
    }
    for command in ["up", "wire", "capture"] {
        place.run(&[command, "--help"]).success().out_has("Usage: kurabe");
    }
}

#[test]
fn doctor_examines_a_target_in_thirty_lines() {
    let servers = ["postgres", "mariadb", "redis"].map(testing::server);
    let place = Place::new();
    for url in servers.iter().flatten().map(|server| server.url()).chain(["sqlite:"]) {
        let lines = place.run(&["doctor", url]).success().out;
        assert!(lines.lines().count() <= 30, "{lines}");
    }
}

/// What names a database in some program, each with a password in it.
const DATABASES: [&str; 9] = [
    "postgres://me:hunter2@db/x",
    "jdbc:mysql://db/x?user=me&password=hunter2",
    "mysql+pymysql://me:hunter2@db/x",
    "host=db user=me password=hunter2",
    "Server=db;Uid=me;Pwd=hunter2",
    "me:hunter2@tcp(db:3306)/x",
    "me/hunter2@db:1521/x",
    "db:6379,password=hunter2,ssl=False",
    "me:hunter2",
];

#[test]
fn what_names_a_database_in_place_of_a_run_is_not_repeated() {
    let place = Place::new();
    let brief = ["run", "point-read", "null:", "--records", "100", "--requests", "100", "--rounds", "1"];
    place.run(&brief).success();
    place.run(&brief).success();
    let against = [&brief[..], &["--against"]].concat();
    for given in DATABASES {
        for before in [
            &["report"][..],
            &["report", "--log-format", "json"],
            &["compare", "last"],
            &["run", "--again"],
            &["run", "--resume"],
            &["runs", "rm"],
            &["runs", "note"],
            &["runs", "export"],
            &["runs", "import"],
            &against,
        ] {
            let answer = place.run(&[before, &[given]].concat());
            let said = format!("{}{}", answer.out, answer.err);
            assert!(answer.code != Some(0) && !said.contains("hunter2"), "{before:?} {given}: {said}");
        }
    }
    place.run(&["report", "nowhere"]).err_has("run 'nowhere' not found");
}
