//! `kurabe wire` between real clients and real servers.

mod connector_j;

use crate::servers::common::{SERVERS, sql, tell};
use crate::support::{Answer, KURABE, Place, eventually, piped, signal, with};
use kurabe_testbed::{Server, StartOptions, testing};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};

/// What a relay saw of a command, as JSON. The command's output is on standard error.
fn relayed(place: &Place, options: &[&str], url: &str, command: &[&str]) -> (Value, Answer) {
    let args = [&["wire", "--format", "json"], options, &[url, "--"], command].concat();
    let answer = place.run(&args).success();
    (answer.json(), answer)
}

fn texts(statements: &Value) -> Vec<&str> {
    statements.as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

fn installed(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        tell(&format!("{program} is not installed"));
    }
    there
}

/// A shell's command for the client of MySQL and MariaDB.
const MARIADB: &str =
    "mariadb -h $KURABE_HOST -P $KURABE_PORT -u $KURABE_USER --skip-auto-rehash $KURABE_DATABASE -e";

#[test]
fn statements_of_psql_are_shown_with_round_trips_before_them() {
    let Some(server) = testing::server_with("postgres", StartOptions::with_tls) else {
        return;
    };
    if !installed("psql") {
        return;
    }
    let place = Place::new();
    let command =
        ["psql", "-wXAtc", "SET application_name = 'x'", "-c", "SELECT 6 * 7", "-c", "SELECT 6 * 7"];
    let (report, answer) = relayed(&place, &[], server.url(), &command);
    assert!(answer.err.contains("42\n42"), "{answer:?}");
    let connection = &report["connections"][0];
    assert_eq!(report["connections"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!((&connection["client"], &connection["end"]), (&"psql".into(), &"client".into()));
    // libpq asks for TLS first, and connects without when it is refused.
    assert_eq!(connection["encryption"], "refused");
    let connecting = &connection["connecting"];
    // The refusal, the login by SCRAM, which takes three, and SET.
    assert_eq!(connecting["traffic"]["round_trips"], 5, "{connection:#}");
    assert_eq!(texts(&connecting["statements"]), ["SET application_name = 'x'"]);
    assert_eq!(connecting["first_own"], "SELECT 6 * 7");
    assert_eq!(connection["traffic"]["round_trips"], 7, "{connection:#}");
    let own = &connection["statements"][1];
    assert_eq!((&own["as_text"], &own["prepared"], &own["setup"]), (&2.into(), &0.into(), &false.into()));
    // The server has TLS, and a relay that changes no byte lets it pass.
    let (report, answer) = relayed(&place, &["--tls", "pass"], server.url(), &command);
    assert!(answer.err.contains("42\n42"), "{answer:?}");
    let connection = &report["connections"][0];
    assert_eq!((&connection["encryption"], &connection["connecting"]), (&"tls".into(), &Value::Null));
    assert!(connection["traffic"]["round_trips"].as_u64().unwrap() >= 5, "{connection:#}");
}

#[test]
fn statements_of_mariadb_are_shown_and_passwords_are_not() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server_with(engine, StartOptions::with_tls) else {
            continue;
        };
        if !installed("mariadb") {
            return;
        }
        testing::make_superuser(&server);
        let place = Place::new();
        let script = format!(
            "{MARIADB} \"SET @a = 1; CREATE USER eve IDENTIFIED BY 'hunter2'; SELECT 6 * 7; DROP USER eve\""
        );
        let (report, answer) = relayed(&place, &[], server.url(), &["sh", "-c", &script]);
        assert!(answer.err.contains("42"), "{answer:?}");
        assert!(!answer.out.contains("hunter2"), "{answer:?}");
        let connection = &report["connections"][0];
        assert_eq!(connection["encryption"], "refused", "{connection:#}");
        let found = texts(&connection["statements"]);
        assert!(found.contains(&"SET @a = 1") && found.contains(&"SELECT 6 * 7"), "{found:?}");
        let concealed = connection["connecting"]["first_own"].as_str().unwrap();
        assert!(concealed.starts_with("CREATE USER … (not shown"), "{concealed}");
        let (pass, _) = relayed(
            &place,
            &["--tls", "pass"],
            server.url(),
            &["sh", "-c", &format!("{MARIADB} 'SELECT 1'")],
        );
        assert!(
            ["plain", "tls"].contains(&pass["connections"][0]["encryption"].as_str().unwrap()),
            "{pass:#}"
        );
    }
}

#[test]
fn password_of_the_url_reaches_the_command_and_no_output() {
    let Some(server) = testing::server("postgres") else { return };
    let place = Place::new();
    let url = format!("postgres://bob:hunter2@127.0.0.1:{}/shop", server.port());
    let script = "test \"$PGPASSWORD\" = hunter2 && test \"$PGUSER$PGDATABASE\" = bobshop && env | grep URL";
    for format in ["text", "json", "md"] {
        let answer = place.run(&["wire", "--format", format, &url, "--", "sh", "-c", script]).success();
        assert!(answer.err.contains("KURABE_URL=postgres://bob@127.0.0.1:"), "{answer:?}");
        assert!(!format!("{answer:?}").contains("hunter2"), "{answer:?}");
        assert!(answer.err.contains("did not connect to the relay"), "{answer:?}");
    }
}

#[test]
fn verified_run_through_a_relay_is_decoded_on_every_engine() {
    for engine in SERVERS {
        let Some(server) = testing::server(engine) else { continue };
        let place = Place::new();
        let script = format!(
            "'{KURABE}' run kv \"$KURABE_URL\" --clients 2 --requests 200 --records 50 --rounds 1 --no-html --interleave=off --verbose"
        );
        let (report, answer) = relayed(&place, &[], server.url(), &["sh", "-c", &script]);
        assert!(answer.err.contains("Verified:"), "{engine}: {answer:?}");
        let connections = report["connections"].as_array().unwrap();
        // Clients of 200 requests each read and write; all of that was seen, and every byte was forwarded.
        let executed = |connection: &Value| {
            let own = connection["statements"].as_array().unwrap().iter().filter(|one| one["setup"] == false);
            let counts =
                own.map(|one| ["as_text", "executed", "bound"].map(|way| one[way].as_u64().unwrap()));
            counts.flatten().sum::<u64>() + connection["not_listed"].as_u64().unwrap()
        };
        assert!(connections.iter().map(executed).sum::<u64>() >= 400, "{engine}: {report:#}");
        for connection in connections {
            assert_eq!(connection["unreadable"], Value::Null, "{engine}: {connection:#}");
            assert_ne!(connection["encryption"], "tls", "{engine}: {connection:#}");
        }
    }
}

#[test]
fn long_answer_passes_unchanged() {
    let Some(server) = testing::server("postgres") else { return };
    if !installed("psql") {
        return;
    }
    let place = Place::new();
    let query = "SELECT string_agg(md5(i::text), '') FROM generate_series(1, 100000) i";
    let script = format!("psql -wXAtc \"{query}\" | md5sum");
    let (report, answer) = relayed(&place, &[], server.url(), &["sh", "-c", &script]);
    let direct = sql(&server, "", query).unwrap();
    let mut sum = Command::new("md5sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    sum.stdin.take().unwrap().write_all(format!("{}\n", direct.trim()).as_bytes()).unwrap();
    let expected = String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap();
    assert!(answer.err.contains(expected.split(' ').next().unwrap()), "{answer:?} {expected}");
    assert!(report["traffic"]["received_bytes"].as_u64().unwrap() > 3_200_000, "{report:#}");
}

/// `kurabe wire` without a command.
struct Relay {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    port: u16,
}

impl Relay {
    fn start(place: &Place, args: &[&str]) -> Self {
        Self::of("wire", place, args)
    }

    /// That of `wire` or `capture`.
    fn of(command: &str, place: &Place, args: &[&str]) -> Self {
        let mut child = piped(&mut place.command(&[&[command], args].concat()));
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        out.read_line(&mut url).unwrap();
        let address = url.trim().split("://").nth(1).unwrap_or_else(|| panic!("{url}"));
        let port = address.split('/').next().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        Self { child, out, port }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Lines up to the one that ends a connection's account.
    fn account(&mut self) -> String {
        let mut text = String::new();
        while !text.contains("in all: ") {
            assert!(self.out.read_line(&mut text).unwrap() > 0, "{text}");
        }
        text
    }

    /// What a client of another account receives for these bytes, in a second.
    fn of_another_account(&self, request: &str) -> String {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{}; printf '%b' '{request}' >&3; timeout 1 cat <&3; true",
            self.port
        );
        let mut command = Command::new("bash");
        let command = command.args(["-c", &script]).uid(54_321).gid(54_321).current_dir("/");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// Ends it by Ctrl-C, and returns its exit code and what it still printed.
    fn end(self) -> (Option<i32>, String) {
        let (code, rest, _) = self.end_with_errors();
        (code, rest)
    }

    /// The same, and what it said on standard error.
    fn end_with_errors(mut self) -> (Option<i32>, String, String) {
        signal(&self.child, "-INT");
        let (mut rest, mut errors) = (String::new(), String::new());
        self.out.read_to_string(&mut rest).unwrap();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut errors).unwrap();
        }
        (self.child.wait().unwrap().code(), rest, errors)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request and reads until this many bytes of an answer are there.
fn exchange(stream: &mut TcpStream, request: &str, answer: usize) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = vec![0; answer];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn accounts_are_shown_as_connections_end_until_ctrl_c() {
    let open = |options: StartOptions| options.set("login", "none");
    let Some(server) = testing::server_with("memcached", open) else { return };
    let place = Place::new();
    let mut relay = Relay::start(&place, &[server.url()]);
    let mut client = relay.connect();
    assert_eq!(exchange(&mut client, "set a 0 0 2\r\nxy\r\n", 8), "STORED\r\n");
    assert_eq!(exchange(&mut client, "mg a v\r\nmn\r\n", 14), "VA 2\r\nxy\r\nMN\r\n");
    drop(client);
    let text = relay.account();
    assert!(text.starts_with("connection 1: plain; closed by the client"), "{text}");
    assert!(text.contains("first own statement: set a\n"), "{text}");
    assert!(text.contains("in all: 2 round trips, 29 bytes sent, 22 received"), "{text}");
    // A client that does not speak the protocol, and one that dies with an answer unread.
    let mut stranger = relay.connect();
    assert!(exchange(&mut stranger, "\u{1}\u{2}GET\r\n", 5).starts_with("ERROR"));
    drop(stranger);
    let text = relay.account();
    assert!(text.contains("statements could not be read"), "{text}");
    let mut dying = relay.connect();
    dying.write_all(b"stats\r\n").unwrap();
    dying.peek(&mut [0]).unwrap();
    drop(dying);
    let text = relay.account();
    assert!(text.contains("the client died or did not read all"), "{text}");
    let open = relay.connect();
    let mut open = open;
    exchange(&mut open, "mn\r\n", 4);
    let (code, rest) = relay.end();
    assert_eq!(code, Some(0), "{rest}");
    assert!(rest.contains("closed by the relay at its end") && rest.contains("4 connections: "), "{rest}");
}

#[test]
fn other_account_reaches_no_server_through_a_relay_and_is_told_of() {
    if !rustix::process::geteuid().is_root() {
        return tell("another account needs root");
    }
    let request = r"set theirs 0 0 2\r\nxy\r\n";
    for command in ["wire", "capture"] {
        let open = |options: StartOptions| options.set("login", "none");
        let Some(server) = testing::server_with("memcached", open) else { return };
        let place = Place::new();
        let options = |name: &str| {
            let file = place.home().join(name).display().to_string();
            if command == "capture" { vec!["-o".to_owned(), file] } else { Vec::new() }
        };
        let start = |name: &str, more: &[&str]| {
            let options = options(name);
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            Relay::of(command, &place, &[&options, more, &[server.url()]].concat())
        };
        let relay = start("own", &[]);
        assert_eq!(relay.of_another_account(request), "", "{command}");
        let mut own = relay.connect();
        assert_eq!(
            exchange(&mut own, "mg theirs v\r\nset a 0 0 1\r\nz\r\n", 12),
            "EN\r\nSTORED\r\n",
            "{command}"
        );
        drop(own);
        let (code, out, err) = relay.end_with_errors();
        assert_eq!(code, Some(0), "{command}: {err}");
        assert!(out.contains("1 connection of other accounts was refused"), "{command}: {out}");
        assert_eq!(err.matches("(uid 54321) was refused").count(), 1, "{command}: {err}");
        assert!(err.contains("--allow-other-users"), "{command}: {err}");
        let relay = start("all", &["--allow-other-users"]);
        assert_eq!(relay.of_another_account(request), "STORED\r\n", "{command}");
        let (code, out, err) = relay.end_with_errors();
        assert_eq!(
            (code, out.contains("refused"), err.contains("refused")),
            (Some(0), false, false),
            "{command}"
        );
    }
}

#[test]
fn client_that_begins_with_tls_is_named() {
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let mut relay = Relay::start(&place, &[server.url()]);
    let mut client = relay.connect();
    client.write_all(b"\x16\x03\x01\x00\x05\x01hello\r\n").unwrap();
    // Whose a connection is that has ended already is not known.
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let _ = client.read_to_end(&mut Vec::new());
    let text = relay.account();
    assert!(text.starts_with("connection 1: TLS;"), "{text}");
    assert!(text.contains("its statements are encrypted"), "{text}");
    assert_eq!(relay.end().0, Some(0));
}

#[test]
fn unix_socket_of_the_server_is_relayed() {
    let Some(server) = testing::server("mariadb") else { return };
    if !installed("mariadb") {
        return;
    }
    let place = Place::new();
    let url = with(server.url(), &format!("socket={}", server.socket().unwrap().display()));
    let (report, answer) = relayed(&place, &[], &url, &["sh", "-c", &format!("{MARIADB} 'SELECT 6 * 7'")]);
    assert!(answer.err.contains("42"), "{answer:?}");
    assert_eq!(report["connections"][0]["connecting"]["first_own"], "SELECT 6 * 7");
    // As libpq's URLs name it.
    let Some(server) = testing::server("postgres") else { return };
    let (socket, port) = (server.socket().unwrap().to_owned(), server.port());
    let folder = if socket.is_dir() { socket.as_path() } else { socket.parent().unwrap() };
    let url = format!("postgres://kurabe@/kurabe?host={}&port={port}", folder.display());
    let ask = "psql -wXAtc 'SELECT inet_client_addr() IS NULL'";
    let (_, answer) = relayed(&place, &[], &url, &["sh", "-c", ask]);
    assert!(answer.err.lines().any(|line| line == "t"), "{answer:?}");
}

/// The URL of a server that is not there.
fn down() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("postgres://kurabe@127.0.0.1:{free}/x")
}

#[test]
fn failures_have_documented_exit_codes() {
    let place = Place::new();
    let url = down();
    for (args, code, part) in [
        (vec!["wire", &url, "--", "true"], 3, "nothing answers at 127.0.0.1:"),
        (vec!["wire", "sqlite:x", "--", "true"], 2, "is no protocol that can be decoded"),
        (vec!["wire", "up:tcp", "--", "true"], 2, "is no protocol that can be decoded"),
        (vec!["wire", "rediss://h", "--", "true"], 2, "redis://host:port"),
        (vec!["wire", "--listen", "0.0.0.0:0", &url], 2, "--allow-remote"),
        (vec!["wire", "--listen", "nonsense", &url], 2, "is not an address"),
    ] {
        let answer = place.run(&args);
        assert_eq!(answer.code, Some(code), "{args:?}: {answer:?}");
        assert!(answer.err.contains(part), "{args:?}: {answer:?}");
        assert!(!answer.err.contains("starting throwaway"), "{answer:?}");
    }
    let Some(server) = testing::server("redis") else { return };
    let answer = place.run(&["wire", server.url(), "--", "/nonexistent/program"]).exit_code(2);
    assert!(answer.err.contains("'/nonexistent/program' cannot be started"), "{answer:?}");
    place.run(&["wire", server.url(), "--", "sh", "-c", "exit 3"]).exit_code(4).err_has("exit status: 3");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    place.run(&["wire", "--listen", &address, server.url(), "--", "true"]).exit_code(5);
}

#[test]
fn server_that_dies_is_named_and_the_relay_goes_on() {
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let mut relay = Relay::start(&place, &[server.url()]);
    let mut client = relay.connect();
    let refused = "-NOAUTH Authentication required.\r\n";
    assert_eq!(exchange(&mut client, "PING\r\n", refused.len()), refused);
    server.kill_hard().unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
    drop(client);
    let text = relay.account();
    assert!(text.contains("closed by the server") || text.contains("the server died"), "{text}");
    let mut late = relay.connect();
    assert_eq!(late.read(&mut [0]).unwrap_or(0), 0);
    let text = relay.account();
    assert!(text.contains("the server could not be reached: "), "{text}");
    assert_eq!(relay.end().0, Some(0));
}

#[test]
fn ctrl_c_ends_the_command_and_shows_what_was_seen() {
    let Some(server) = testing::server("redis") else { return };
    let place = Place::new();
    let file = place.at("pid");
    // It ignores Ctrl-C, as some shells' children do.
    let script = format!(
        "trap '' INT; echo $$ > '{file}.new' && mv '{file}.new' '{file}'; while :; do sleep 0.1; done"
    );
    let child = place.spawn(&["wire", server.url(), "--", "sh", "-c", &script]);
    let pid = eventually(30, || std::fs::read_to_string(&file).ok()).unwrap();
    signal(&child, "-INT");
    Answer::at_end_of(child).exit_code(130).out_has("0 connections: ");
    let gone = || (!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()).then_some(());
    assert!(eventually(10, gone).is_some(), "the command still runs");
}
