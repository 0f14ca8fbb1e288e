//! Statements and commands that change something in ways that no list of words has, each recorded from a client and replayed without
//! `--write` on a server of the user's. Dumps by the servers' own programs are the same before and after.
//!
//! `changes/*` have a capture a line. What begins with `~` is replayed in order: it only reads, or is left out. Requests of one connection stand behind each
//! other, those of commands divided by `|`.

use super::mongodb::{self, recorded_as_read};
use super::*;
use kurabe_capture::file::{self, About};
use kurabe_capture::record::Record;
use kurabe_core::run::{Outcome, RunSpec};
use kurabe_core::target::TargetUrl;
use kurabe_engine::plan::Plan;
use kurabe_engine::prepare::target::Target;
use kurabe_engine::{Conditions, NewRun};
use kurabe_experiments::{registry, replay as replays};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, Permissions};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const POSTGRES: &str = "postgres.sql";
const MYSQL: &str = "mysql.sql";
const REDIS: &str = "redis.txt";
const MEMCACHED: &str = "memcached.txt";
const COUCHDB: &str = "couchdb.txt";
const MONGODB: &str = "mongodb.txt";

/// Captures between two dumps.
const BETWEEN_DUMPS: usize = 60;

/// The lines of a table of this name.
fn lines(table: &str) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/replay/changes");
    let text = fs::read_to_string(Path::new(folder).join(table)).unwrap();
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A line without its mark, and whether it has the mark of what only reads.
fn case(line: &str) -> (&str, bool) {
    line.strip_prefix('~').map_or((line, false), |line| (line, true))
}

#[test]
fn tables_have_four_hundred_different_changes() {
    let tables = [POSTGRES, MYSQL, REDIS, MEMCACHED, COUCHDB, MONGODB];
    let changes = |table: &&str| lines(table).into_iter().filter(|line| !case(line).1).collect::<Vec<_>>();
    let different = |table: &&str| changes(table).into_iter().collect::<BTreeSet<_>>().len();
    assert!(tables.iter().all(|table| different(table) == changes(table).len()));
    assert!(tables.iter().map(different).sum::<usize>() > 400);
}

/// The records of each connection of a capture that a client made after its login, as a capture of its own.
fn connections(path: &str) -> (About, Vec<Vec<Record>>) {
    let (mut statements, mut of): (Vec<Record>, BTreeMap<u64, Vec<Record>>) = Default::default();
    let mut own = |number: u64, record| of.entry(number).or_default().push(record);
    let (about, ending) = file::read(Path::new(path), |_, record| match record {
        Record::Open { connection, at, said } => own(connection, Record::Open { connection: 0, at, said }),
        statement @ Record::Statement { .. } => statements.push(statement),
        Record::Request(mut request) => {
            let number = std::mem::take(&mut request.connection);
            own(number, Record::Request(request));
        }
        Record::Data { connection, length, bytes } => {
            own(connection, Record::Data { connection: 0, length, bytes });
        }
        Record::Made { connection, values } => own(connection, Record::Made { connection: 0, values }),
        Record::Close { connection, at, unreadable } => {
            own(connection, Record::Close { connection: 0, at, unreadable });
        }
        Record::End { .. } => {}
    })
    .unwrap();
    assert!(ending.complete, "{path}");
    let used = |records: &[Record], number: u64| {
        records.iter().any(|record| matches!(record, Record::Request(request) if request.statement == number))
    };
    let alone = |records: Vec<Record>| {
        let requests = records.iter().filter(|record| matches!(record, Record::Request(_))).count();
        let own = statements
            .iter()
            .filter(|record| matches!(record, Record::Statement { number, .. } if used(&records, *number)));
        let end = Record::End { requests: requests as u64 };
        own.cloned().chain(records.clone()).chain([end]).collect::<Vec<_>>()
    };
    (about, of.into_values().map(alone).collect())
}

/// The requests of a capture, for messages.
fn shown(records: &[Record]) -> String {
    let texts: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Statement { template, .. } => Some(template.replace('\0', "¿")),
            _ => None,
        })
        .collect();
    texts.join(" ; ")
}

/// A target of the user's, on which captures are replayed as `kurabe run replay` does it, by the engine's door.
struct Theirs {
    targets: [Target; 1],
    place: Place,
}

impl Theirs {
    fn new(server: &Server) -> Self {
        let driver = kurabe_drivers::registry::open(&TargetUrl::parse(server.url()).unwrap()).unwrap();
        let facts = driver.describe().unwrap();
        Self { targets: [Target::new("theirs", driver, facts)], place: Place::new() }
    }

    /// Why a replay without `--write` ended; `None` if all was sent, and nothing wrote.
    fn replay(&mut self, number: usize, about: &About, records: &[Record]) -> Option<String> {
        let path = self.place.at(&format!("{number}.capture"));
        file::write(Path::new(&path), about, records).unwrap();
        let plan = || {
            let custom = replays::workload(Path::new(&path), replays::Around::default())?;
            let spec = RunSpec { custom: Some(custom), rounds: 1, ..RunSpec::new("replay", ["theirs"]) };
            let experiment = registry::of(&spec)?;
            let axes = experiment.info.baseline(&[])?.alone();
            let operations = experiment.info.operation_names();
            Plan::draft(experiment, RunSpec { axes, operations, ..spec }, &[false])
        };
        let run = plan().and_then(|plan| {
            let new = NewRun::new(plan);
            Ok(kurabe_engine::run(new, &mut self.targets, &Conditions::default(), &mut ())?)
        });
        fs::remove_file(&path).unwrap();
        let run = match run {
            Ok(run) => run.unwrap(),
            Err(error) => return Some(error.to_string()),
        };
        run.trials.iter().find_map(|trial| match &trial.outcome {
            Outcome::Failed { reason, .. } => Some(reason.clone()),
            Outcome::Measured(_) => None,
        })
    }

    /// Replays the capture of each connection, and compares dumps before, between and after.
    fn are_left_alone(&mut self, table: &str, path: &str, dump: &mut dyn FnMut() -> String) {
        let (about, all) = connections(path);
        let table = lines(table);
        assert_eq!(
            all.len(),
            table.len(),
            "each line is a connection: {:?}",
            all.last().map(|one| shown(one))
        );
        let (before, mut wrong) = (dump(), Vec::new());
        for (number, (line, records)) in table.iter().zip(&all).enumerate() {
            let (text, only_reads) = case(line);
            let ended = self.replay(number, &about, records);
            // A read may have another answer than the recorder was told.
            let is_right = if only_reads {
                ended.as_ref().is_none_or(|why| why.contains("differ from the recorded"))
            } else {
                ended.is_some()
            };
            if !is_right {
                wrong.push(format!("{text}\n    as {}\n    {ended:?}", shown(records)));
            }
            if (number + 1) % BETWEEN_DUMPS == 0 || number + 1 == all.len() {
                let last = table[number + 1 - (number % BETWEEN_DUMPS + 1)..=number].join("\n");
                is_same(&before, &dump(), &last);
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
    }
}

/// Fails with the lines that are in one dump alone.
#[track_caller]
fn is_same(before: &str, after: &str, between: &str) {
    if before != after {
        let only = |one: &str, other: &str| {
            let known: HashSet<&str> = other.lines().collect();
            one.lines().filter(|line| !known.contains(line)).take(20).collect::<Vec<_>>().join("\n")
        };
        panic!("gone:\n{}\ncame:\n{}\nafter one of:\n{between}", only(before, after), only(after, before));
    }
}

/// A folder in which servers may make files.
fn open_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("kurabe-changes-").tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    folder
}

fn names(folder: &Path) -> String {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    format!("{names:?}")
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Executes a script by a client program, whatever its statements answer.
fn script(command: &mut Command, script: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

const POSTGRES_MADE: &str = r#"
CREATE TABLE victim (n int PRIMARY KEY, t text);
INSERT INTO victim VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE TABLE spare (n int);
INSERT INTO spare VALUES (2);
CREATE SEQUENCE numbers;
SELECT nextval('numbers');
CREATE VIEW names AS SELECT n, t FROM victim;
CREATE MATERIALIZED VIEW totals AS SELECT count(*) FROM victim;
CREATE TYPE mood AS ENUM ('sad');
SELECT lo_from_bytea(4711, 'a large object');
CREATE EXTENSION tablefunc;
CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE FUNCTION noted_event() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE FUNCTION charge() RETURNS int LANGUAGE sql AS 'UPDATE victim SET t = t || 1 RETURNING n';
CREATE FUNCTION photo() RETURNS bigint LANGUAGE sql AS 'SELECT lo_create(0)::bigint';
CREATE FUNCTION counted() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('numbers')$$;
CREATE FUNCTION unlock() RETURNS text LANGUAGE sql AS $$SELECT set_config('default_transaction_read_only', 'off', false)$$;
CREATE FUNCTION loose() RETURNS text LANGUAGE sql AS $$SELECT set_config('transaction_read_only', 'off', false)$$;
CREATE FUNCTION wide() RETURNS int LANGUAGE plpgsql AS 'BEGIN SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE; RETURN 1; END';
CREATE FUNCTION tried() RETURNS int LANGUAGE plpgsql AS $$BEGIN UPDATE victim SET t = ''; RETURN 1; EXCEPTION WHEN OTHERS THEN
    PERFORM unlock(); RETURN 2; END$$;
CREATE FUNCTION rows_of() RETURNS SETOF text LANGUAGE sql AS 'SELECT unlock()';
CREATE PROCEDURE tidy() LANGUAGE plpgsql AS 'BEGIN SET default_transaction_read_only = off; COMMIT; DELETE FROM victim; END';
CREATE VIEW photos AS SELECT photo();
CREATE FUNCTION two(int, int) RETURNS bigint LANGUAGE sql AS 'SELECT photo()';
CREATE OPERATOR <+> (LEFTARG = int, RIGHTARG = int, FUNCTION = two);
CREATE FUNCTION added(bigint, int) RETURNS bigint LANGUAGE sql AS 'SELECT photo()';
CREATE AGGREGATE summed (int) (SFUNC = added, STYPE = bigint, INITCOND = '0');
CREATE TYPE pair AS (a int);
CREATE FUNCTION pair_of(int) RETURNS pair LANGUAGE sql AS 'SELECT ROW(photo()::int)::pair';
CREATE CAST (int AS pair) WITH FUNCTION pair_of(int);
CREATE FUNCTION is_even(int) RETURNS boolean LANGUAGE sql AS 'SELECT photo() > 0';
CREATE DOMAIN even AS int CHECK (is_even(VALUE));
CREATE FUNCTION "Own Name"() RETURNS bigint LANGUAGE sql AS 'SELECT photo()';
CREATE ROLE other;
"#;

fn psql(server: &Server, port: u16, user: &str) -> Command {
    let mut command = Command::new("psql");
    command.args(["-qXw", "-h", "127.0.0.1", "-U", user, "-d", "kurabe", "-p", &port.to_string()]);
    let password = if user == "kurabe" { server.password().unwrap() } else { "low" };
    command.env("PGPASSWORD", password).env("PGSSLMODE", "disable");
    command
}

/// A session of PostgreSQL that listens, and would be ended by others.
struct Bystander(Child);

impl Bystander {
    fn new(server: &Server) -> Self {
        let mut child = psql(server, server.port(), "kurabe");
        child.env("PGAPPNAME", "bystander");
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"LISTEN heard;\n").unwrap();
        Self(child)
    }

    /// What it was told; its own last statement is answered.
    fn end(mut self) -> String {
        self.0.stdin.take().unwrap().write_all(b"SELECT 'still here';\n").unwrap();
        let output = self.0.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&said).into_owned()
    }
}

#[test]
fn no_capture_changes_postgres_without_write() {
    let (Some(server), Some(source)) = (testing::server("postgres"), testing::server("postgres")) else {
        return;
    };
    if !has_program("psql") {
        return;
    }
    for one in [&server, &source] {
        testing::make_superuser(one);
        let made = script(psql(one, one.port(), "kurabe").args(["-v", "ON_ERROR_STOP=1"]), POSTGRES_MADE);
        assert!(made.status.success(), "{made:?}");
    }
    sql(&source, "", "CREATE ROLE low LOGIN PASSWORD 'low'").unwrap();
    let (place, folder) = (Place::new(), open_folder());
    let at = format!("{}/", folder.path().display());
    let statements: Vec<_> = lines(POSTGRES).iter().map(|line| case(line).0.replace("@/", &at)).collect();
    let (path, _) = recorded_as_read(&place, "postgres.capture", &source, |address| {
        script(&mut psql(&source, address.port(), "low"), &statements.join("\n\\c\n"));
    });
    drop(fs::remove_file(folder.path().join("lo")));
    let dump = || {
        let mut dump = Command::new("pg_dumpall");
        dump.args(["-w", "-h", "127.0.0.1", "-U", "kurabe", "-p", &server.port().to_string()]);
        let dump = text(&dump.env("PGPASSWORD", server.password().unwrap()).output().unwrap());
        let state = "SELECT concat_ws(' ', (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_replication_origin), \
            (SELECT count(*) FROM pg_prepared_xacts), (SELECT string_agg(stats_reset::text, ' ') FROM pg_stat_database), \
            (SELECT stats_reset FROM pg_stat_bgwriter), (SELECT string_agg(stats_reset::text, ' ') FROM pg_stat_slru), \
            pg_conf_load_time(), pg_is_in_recovery(), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), \
            pg_read_file('postgresql.auto.conf'), (SELECT string_agg(name, ' ' ORDER BY name) FROM pg_ls_dir('.') AS name), \
            (SELECT max(checkpoint_lsn) FROM pg_control_checkpoint()))";
        // A key that differs each time.
        let lines: Vec<&str> = dump.lines().filter(|line| !line.contains("restrict")).collect();
        [lines.join("\n"), sql(&server, "", state).unwrap(), names(folder.path())].join("\n")
    };
    let bystander = Bystander::new(&server);
    Theirs::new(&server).are_left_alone(POSTGRES, &path, &mut { dump });
    let said = bystander.end();
    assert!(said.contains("still here") && !said.contains("Asynchronous"), "{said}");
}

const MYSQL_MADE: &str = "
CREATE TABLE victim (n INT PRIMARY KEY, t VARCHAR(20))|
INSERT INTO victim VALUES (1, 'a'), (2, 'b'), (3, 'c')|
CREATE TABLE old (n INT) ENGINE = MyISAM|
INSERT INTO old VALUES (1)|
CREATE TABLE spare (n INT)|
INSERT INTO spare VALUES (2)|
CREATE VIEW names AS SELECT n, t FROM victim|
CREATE EVENT ticking ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO DELETE FROM victim|
CREATE FUNCTION charge() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN UPDATE victim SET t = ''; RETURN 1; END|
CREATE FUNCTION charge_old() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO old VALUES (9); RETURN 1; END|
CREATE FUNCTION unlock_it() RETURNS INT DETERMINISTIC BEGIN SET SESSION SETTING = 0; RETURN 1; END|
CREATE FUNCTION loose_it() RETURNS INT DETERMINISTIC BEGIN SET @@session.SETTING = OFF; RETURN 1; END|
CREATE FUNCTION wide_it() RETURNS INT DETERMINISTIC BEGIN SET SESSION TRANSACTION READ WRITE; RETURN 1; END|
CREATE FUNCTION tried_it() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET SESSION SETTING = 0; DELETE FROM victim; RETURN 1; END|
CREATE FUNCTION hushed() RETURNS INT DETERMINISTIC BEGIN SET SESSION session_track_system_variables = '';
    SET SESSION SETTING = 0; RETURN 1; END|
CREATE FUNCTION once_it() RETURNS INT DETERMINISTIC BEGIN
    DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; SET TRANSACTION READ WRITE; RETURN 1; END|
CREATE VIEW rates AS SELECT unlock_it() AS v|
CREATE VIEW prices AS SELECT charge() AS v|
CREATE PROCEDURE tidy() BEGIN SET SESSION SETTING = 0; COMMIT; DELETE FROM victim; END|
";

#[test]
fn no_capture_changes_mysql_and_mariadb_without_write() {
    for engine in ["mysql", "mariadb"] {
        let (Some(server), Some(source)) = (testing::server(engine), testing::server(engine)) else {
            continue;
        };
        let setting = if engine == "mysql" { "transaction_read_only" } else { "tx_read_only" };
        let numbers = if engine == "mysql" { "" } else { "CREATE SEQUENCE numbers|" };
        let made = format!("DELIMITER |\n{}{numbers}\n", MYSQL_MADE.replace("SETTING", setting));
        for one in [&server, &source] {
            testing::make_superuser(one);
            if sql(one, "", &made).is_none() {
                return;
            }
        }
        sql(&source, "", "CREATE USER low@'%' IDENTIFIED BY 'low'; GRANT SELECT ON kurabe.* TO low@'%'")
            .unwrap();
        let (place, folder) = (Place::new(), open_folder());
        let at = format!("{}/", folder.path().display());
        let statements: Vec<_> = lines(MYSQL).iter().map(|line| case(line).0.replace("@/", &at)).collect();
        let (path, _) = recorded_as_read(&place, engine, &source, |address| {
            let mut client = Command::new("mysql");
            client.args([
                "--no-defaults", "--force", "--batch", "--comments", "--skip-ssl", "--skip-auto-rehash",
            ]);
            client.args(["-h", "127.0.0.1", "-u", "low", "-P", &address.port().to_string(), "kurabe"]);
            script(client.env("MYSQL_PWD", "low"), &statements.join("\n\\r\n"));
        });
        let dump = || {
            let mut dump = Command::new("mysqldump");
            dump.args(["--no-defaults", "--user=root", "--routines", "--events", "--skip-dump-date"]);
            dump.args(["--no-tablespaces", "--socket"]).arg(server.socket().unwrap()).arg("kurabe");
            let dump = text(&dump.env("MYSQL_PWD", server.password().unwrap()).output().unwrap());
            let state = "SHOW GLOBAL VARIABLES; SELECT user, host FROM mysql.user ORDER BY 1, 2; SHOW DATABASES; \
                         SELECT plugin_name, plugin_status FROM information_schema.plugins ORDER BY 1; \
                         SELECT IS_FREE_LOCK('held'); CHECKSUM TABLE victim, old, spare";
            [dump, sql(&server, "", state).unwrap(), names(folder.path())].join("\n")
        };
        Theirs::new(&server).are_left_alone(MYSQL, &path, &mut { dump });
    }
}

/// Sends the requests of each line by a connection of its own, after its login. `answered` says whether an answer is complete.
fn each_line(
    address: SocketAddr,
    table: &[Vec<Vec<u8>>],
    log_in: &dyn Fn(&mut TcpStream),
    answered: &dyn Fn(&[u8]) -> bool,
) {
    for requests in table {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        log_in(&mut stream);
        for request in requests {
            stream.write_all(request).unwrap();
            let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
            while !answered(&answer) {
                let read = stream.read(&mut piece);
                let read = read.unwrap_or_else(|error| panic!("{}: {error}", request.escape_ascii()));
                if read == 0 {
                    break;
                }
                answer.extend_from_slice(&piece[..read]);
            }
        }
    }
}

fn of_resp(words: &[&str]) -> Vec<u8> {
    let words: Vec<String> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}

#[test]
fn no_capture_changes_redis_and_valkey_without_write() {
    for engine in ["redis", "valkey"] {
        let (Some(server), Some(source)) = (testing::server(engine), testing::server(engine)) else {
            continue;
        };
        let asked =
            |words: &str| super::harmless::asked(&server, &format!("{words}\r\nECHO done\r\n"), "done\r\n");
        for made in [
            "MSET a 1 n 5 bits x", "SET ttl 1 EXAT 9999999999", "RPUSH l 3 1 2", "SADD s 1 2 3",
            "HSET h f 1 k 2", "ZADD z 1 m 2 o", "GEOADD g 1 2 x", "PFADD p a b", "XADD x 1-1 f 1",
            "XGROUP CREATE x grp 0",
        ] {
            asked(made);
        }
        super::harmless::asked(
            &source,
            "ACL SETUSER low on >low resetkeys +auth\r\nECHO done\r\n",
            "done\r\n",
        );
        let place = Place::new();
        let command = |text: &str| of_resp(&text.split(' ').collect::<Vec<_>>());
        let requests = |line: &String| case(line).0.split(" | ").map(command).collect();
        let table: Vec<Vec<Vec<u8>>> = lines(REDIS).iter().map(requests).collect();
        let (path, _) = recorded_as_read(&place, engine, &source, |address| {
            // Who may nothing is told so.
            let log_in = |stream: &mut TcpStream| {
                stream.write_all(&of_resp(&["AUTH", "low", "low"])).unwrap();
                let mut answer = [0; 5];
                stream.read_exact(&mut answer).unwrap();
                assert_eq!(&answer, b"+OK\r\n");
            };
            each_line(address, &table, &log_in, &|answer| answer.ends_with(b"\r\n"));
        });
        let dump = || {
            let keys = ["a", "n", "bits", "ttl", "l", "s", "h", "z", "g", "p", "x"];
            let all = keys.map(|key| format!("DUMP {key}\r\nPEXPIRETIME {key}\r\n")).concat();
            asked(&format!(
                "{all}KEYS *\r\nDBSIZE\r\nCONFIG GET *\r\nACL LIST\r\nFUNCTION DUMP\r\nXINFO GROUPS x\r\nROLE"
            ))
        };
        Theirs::new(&server).are_left_alone(REDIS, &path, &mut { dump });
    }
}

#[test]
fn no_capture_changes_memcached_without_write() {
    let (Some(server), Some(source)) = (testing::server("memcached"), testing::server("memcached")) else {
        return;
    };
    let asked = super::harmless::asked;
    asked(&server, "set a 5 0 1\r\nx\r\nset n 0 0 1\r\n7\r\nmn\r\n", "MN\r\n");
    let place = Place::new();
    let requests = |line: &String| {
        let (line, _) = case(line);
        let (line, value) = line.split_once('=').unwrap_or((line, ""));
        let (line, quiet) = if value.ends_with(" noreply") { (line, " noreply") } else { (line, "") };
        let value = value.trim_end_matches(" noreply");
        let value = if value.is_empty() { String::new() } else { format!("{value}\r\n") };
        vec![format!("{line}{quiet}\r\n{value}mn\r\n").into_bytes()]
    };
    let table: Vec<Vec<Vec<u8>>> = lines(MEMCACHED).iter().map(requests).collect();
    let (path, _) = recorded_as_read(&place, "memcached", &source, |address| {
        let log_in = |stream: &mut TcpStream| testing::log_in(&source, stream).unwrap();
        each_line(address, &table, &log_in, &|answer| answer.ends_with(b"MN\r\n"));
    });
    let dump = || {
        let items = asked(&server, "mg a v t f s c\r\nmg n v t f s c\r\nmg made v\r\nmn\r\n", "MN\r\n");
        // What was done, also without an effect.
        let done = [
            "cmd_set", "cmd_flush", "cmd_touch", "curr_items", "total_items", "delete_", "incr_", "decr_",
            "cas_", "touch_", "evictions", "limit_maxbytes",
        ];
        let counts = asked(&server, "stats\r\nmn\r\n", "MN\r\n");
        let is_done = |line: &&str| {
            done.iter().any(|name| line.strip_prefix("STAT ").is_some_and(|rest| rest.starts_with(name)))
        };
        let settings = asked(&server, "stats settings\r\nmn\r\n", "MN\r\n");
        [items, counts.lines().filter(is_done).collect::<Vec<_>>().join("\n"), settings].join("\n")
    };
    Theirs::new(&server).are_left_alone(MEMCACHED, &path, &mut { dump });
}

#[test]
fn no_capture_changes_couchdb_without_write() {
    let (Some(server), Some(source)) = (testing::server("couchdb"), testing::server("couchdb")) else {
        return;
    };
    let request = |of: &Server, line: &str| {
        let mut words = line.splitn(3, ' ');
        let (method, path, body) =
            (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or_default());
        let (login, length) = (testing::authorization(of), body.len());
        let kind = if path == "/_session" { "x-www-form-urlencoded" } else { "json" };
        format!(
            "{method} {path} HTTP/1.1\r\nHost: a\r\n{login}Content-Type: application/{kind}\r\nConnection: close\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    let ask = |of: &Server, line: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", of.port())).unwrap();
        stream.write_all(&request(of, line)).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    let mut revision = String::new();
    for one in [&*server, &*source] {
        ask(one, "PUT /victim");
        let answer = ask(one, "PUT /victim/17 {\"n\":1}");
        revision = answer.split("\"rev\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
        ask(one, "PUT /victim/_design/x {\"views\":{\"v\":{\"map\":\"function (d) { emit(d.n) }\"}}}");
    }
    let place = Place::new();
    let filled = |line: &String| vec![request(&source, &case(line).0.replace("REV", &revision))];
    let table: Vec<Vec<Vec<u8>>> = lines(COUCHDB).iter().map(filled).collect();
    let (path, _) = recorded_as_read(&place, "couchdb", &source, |address| {
        each_line(address, &table, &|_| {}, &|_| false);
    });
    let dump = || {
        let paths = [
            "/_all_dbs",
            "/victim/_all_docs?include_docs=true&attachments=true&conflicts=true",
            "/victim/_changes",
            "/victim/_security",
            "/victim/_revs_limit",
            "/victim/_local_docs",
            "/_config",
        ];
        paths.map(|path| ask(&server, &format!("GET {path}"))).join("\n")
    };
    Theirs::new(&server).are_left_alone(COUCHDB, &path, &mut { dump });
}

#[test]
fn no_capture_changes_mongodb_without_write() {
    let (Some(server), Some(source)) = (testing::server("mongodb"), testing::server("mongodb")) else {
        return;
    };
    let documents = serde_json::json!({"documents": [{"_id": 1, "n": 5}, {"_id": 2, "n": 6}]});
    for one in [&server, &source] {
        mongodb::Client::of(one).ask("insert", &"items".into(), &documents);
    }
    let place = Place::new();
    let (path, _) = recorded_as_read(&place, "mongodb", &source, |address| {
        for line in lines(MONGODB) {
            let (line, _) = case(&line);
            let parts: Vec<&str> = line.split(" | ").collect();
            let [command, first, rest] = parts[..] else { panic!("{line}") };
            let value = serde_json::from_str(first).unwrap_or_else(|_| first.into());
            mongodb::Client::connect(&source, address).ask(
                command,
                &value,
                &serde_json::from_str(rest).unwrap(),
            );
        }
    });
    let dump = || {
        let mut client = mongodb::Client::of(&server);
        let mut ask = |command: &str, value: Json, rest: Json| {
            let answer = client.ask(command, &value, &rest);
            answer["cursor"]["firstBatch"].to_string()
        };
        let none = || serde_json::json!({});
        [
            ask("listCollections", 1.into(), none()),
            ask("find", "items".into(), none()),
            ask("find", "made".into(), none()),
            ask("listIndexes", "items".into(), none()),
        ]
        .join("\n")
    };
    Theirs::new(&server).are_left_alone(MONGODB, &path, &mut { dump });
}
