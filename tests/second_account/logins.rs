//! What a listening socket does for an account that has no password: asked in each protocol by bytes, then by the servers'
//! own clients.

use super::accounts::Account;
use super::intruder::{Address, Attempt, tries};
use super::scene::Listener;
use std::process::{Command, Stdio};

/// Users that a server may have from its start.
const USERS: [&str; 10] =
    ["root", "kurabe", "postgres", "mysql", "sa", "admin", "default", "nobody", "SYSDBA", "couchdb"];
/// Passwords that others could guess.
const GUESSES: [&str; 6] = ["", "kurabe", "root", "admin", "masterkey", "postgres"];

/// A request, and whether an answer to it is a service that everybody gets.
struct Probe {
    what: String,
    bytes: Vec<u8>,
    serves: fn(&[u8]) -> bool,
}

/// All that the intruder is served, one text each: program, address, what was asked, what came.
pub(super) fn served(intruder: &Account, listeners: &[Listener]) -> Vec<String> {
    let probes = probes(&["kurabe", "postgres", "root"]);
    let pairs: Vec<(&Listener, &Probe)> =
        listeners.iter().flat_map(|listener| probes.iter().map(move |probe| (listener, probe))).collect();
    let attempt = |(listener, probe): &(&Listener, &Probe)| {
        Attempt::Talk(listener.address.clone(), probe.bytes.clone())
    };
    let answers = tries(intruder, &pairs.iter().map(attempt).collect::<Vec<_>>());
    let mut found = Vec::new();
    for ((listener, probe), answer) in pairs.iter().zip(&answers) {
        let Some(answer) = answer else { continue };
        if (probe.serves)(answer) {
            let begin = String::from_utf8_lossy(&answer[..answer.len().min(60)]).into_owned();
            found.push(format!("{} answers {}: {begin:?}", shown(listener), probe.what));
        }
    }
    for listener in listeners {
        let Address::Tcp(address) = &listener.address else { continue };
        let (host, port) = address.rsplit_once(':').unwrap();
        let clients = match listener.program.as_str() {
            name if name.starts_with("postgres") => psql(host, port),
            "mysqld" | "mariadbd" => mariadb(host, port),
            name if name.starts_with("redis-server") || name.starts_with("valkey-server") => {
                redis_cli(host, port)
            }
            "node" | "beam.smp" => curl(address),
            _ => continue,
        };
        for (who, mut command) in clients {
            command.run_by(intruder);
            let Ok(output) = command.0.stdin(Stdio::null()).output() else { continue };
            let out = String::from_utf8_lossy(&output.stdout);
            if output.status.success() && out.lines().any(|line| line.trim() == LOGGED_IN) {
                found.push(format!("{} logs in {who}", shown(listener)));
            }
        }
    }
    found
}

/// What a client prints that is logged in.
const LOGGED_IN: &str = "4711";

/// All bytes that the intruder receives from listeners which should have none for it; it says to be these users.
pub(super) fn answered(intruder: &Account, listeners: &[Listener], users: &[&str]) -> Vec<String> {
    let probes = probes(users);
    let pairs: Vec<(&Listener, &Probe)> =
        listeners.iter().flat_map(|listener| probes.iter().map(move |probe| (listener, probe))).collect();
    let attempt = |(listener, probe): &(&Listener, &Probe)| {
        Attempt::Talk(listener.address.clone(), probe.bytes.clone())
    };
    let answers = tries(intruder, &pairs.iter().map(attempt).collect::<Vec<_>>());
    let received = pairs.iter().zip(answers).filter_map(|((listener, probe), answer)| {
        let answer = answer.filter(|answer| !answer.is_empty())?;
        let begin = String::from_utf8_lossy(&answer[..answer.len().min(40)]).into_owned();
        Some(format!("{} relays {}: {begin:?}", shown(listener), probe.what))
    });
    received.collect()
}

fn shown(listener: &Listener) -> String {
    let address = match &listener.address {
        Address::Tcp(address) => address.clone(),
        Address::Path(path) => path.display().to_string(),
        Address::Abstract(name) => format!("@{}", String::from_utf8_lossy(name)),
    };
    format!("{} at {address}", listener.program)
}

/// Requests that need no client. The first says nothing: some servers speak first.
fn probes(users: &[&str]) -> Vec<Probe> {
    let mut all = vec![Probe { what: "a connection".to_owned(), bytes: Vec::new(), serves: |_| false }];
    let mut add =
        |what: &str, bytes: Vec<u8>, serves| all.push(Probe { what: what.to_owned(), bytes, serves });
    for command in [
        "PING", "INFO server", "CONFIG GET dir", "SET intruder 1", "HELLO 3", "CLIENT LIST", "AUTH kurabe",
        "AUTH default ''",
    ] {
        // An error begins with a minus sign.
        let serves: fn(&[u8]) -> bool = |answer| answer.first().is_some_and(|first| b"+$*%:".contains(first));
        add(command, format!("{command}\r\n").into_bytes(), serves);
    }
    for command in ["version", "stats", "set intruder 0 0 1\r\n1", "get intruder", "mn", "flush_all"] {
        let serves: fn(&[u8]) -> bool = |answer| {
            let text = String::from_utf8_lossy(answer);
            let words = ["VERSION", "STAT ", "STORED", "VALUE ", "END\r\n", "MN\r\n", "OK\r\n"];
            words.iter().any(|word| text.starts_with(word))
        };
        add(command, format!("{command}\r\n").into_bytes(), serves);
    }
    for (method, path, body) in [
        ("GET", "/_all_dbs", ""),
        ("PUT", "/intruder", ""),
        ("GET", "/_config", ""),
        ("PUT", "/_config/log/level", "\"debug\""),
        ("GET", "/_log", ""),
        ("GET", "/_stats", ""),
        ("GET", "/_active_tasks", ""),
        ("GET", "/_users/_all_docs", ""),
        ("GET", "/shop", ""),
        ("GET", "/shop/_all_docs?include_docs=true", ""),
        ("GET", "/shop/_changes", ""),
        ("PUT", "/shop/intruder", "{}"),
        ("PUT", "/shop/_security", "{}"),
        ("POST", "/shop/_bulk_docs", "{\"docs\":[{}]}"),
        ("POST", "/_replicate", "{\"source\":\"shop\",\"target\":\"stolen\",\"create_target\":true}"),
        ("GET", "/kv/read", ""),
        ("POST", "/kv/write", ""),
        ("GET", "/kv/count", ""),
        ("GET", "/webapp/request", ""),
        ("GET", "/connect/read", ""),
        ("GET", "/metrics", ""),
        ("GET", "/new/kv", ""),
        ("GET", "/debug/pprof/", ""),
        ("GET", "/server-status", ""),
    ] {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let serves: fn(&[u8]) -> bool =
            |answer| answer.starts_with(b"HTTP/1.1 2") || answer.starts_with(b"HTTP/1.0 2");
        add(&format!("{method} {path}"), request.into_bytes(), serves);
    }
    // The other end of experiment net: the length of the message, and the message.
    let greeting = br#"{"role":"Control","block":0,"token":0}"#;
    let length = u16::try_from(greeting.len()).unwrap().to_le_bytes();
    add("a greeting", [b"KURABE-TCP2\n", &length[..], greeting].concat(), |answer| {
        answer.starts_with(b"KURABE-TCP")
    });
    for user in users {
        let body = [&196_608_u32.to_be_bytes()[..], b"user\0", user.as_bytes(), b"\0database\0postgres\0\0"]
            .concat();
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        // AuthenticationOk.
        let serves: fn(&[u8]) -> bool = |answer| answer.starts_with(&[b'R', 0, 0, 0, 8, 0, 0, 0, 0]);
        add(&format!("the start of PostgreSQL's user {user}"), [&length[..], &body].concat(), serves);
    }
    for command in
        ["listDatabases", "listCollections", "dropDatabase", "serverStatus", "getParameter", "usersInfo"]
    {
        // `ok`: 1.0.
        let serves: fn(&[u8]) -> bool =
            |answer| answer.windows(12).any(|part| part == b"\x01ok\0\0\0\0\0\0\0\xf0\x3f");
        add(command, mongodb(command), serves);
    }
    all
}

/// `OP_MSG` with a command of one number on the database `intruder`.
fn mongodb(command: &str) -> Vec<u8> {
    let database: &[u8] = if command == "listDatabases" { b"admin\0" } else { b"intruder\0" };
    let length = |bytes: usize| i32::try_from(bytes).unwrap().to_le_bytes();
    let fields = [
        &[0x10][..],
        command.as_bytes(),
        &[0],
        &1_i32.to_le_bytes(),
        &[0x02],
        b"$db\0",
        &length(database.len()),
        database,
        &[0],
    ]
    .concat();
    let document = [&length(fields.len() + 4)[..], &fields].concat();
    let body = [&[0; 4][..], &[0], &document].concat();
    // Length, number, what it answers, OP_MSG.
    [
        &length(body.len() + 16)[..],
        &7_i32.to_le_bytes(),
        &0_i32.to_le_bytes(),
        &2_013_i32.to_le_bytes(),
        &body,
    ]
    .concat()
}

/// A client program, run by an account.
struct Client(Command);

impl Client {
    fn new(program: &str, args: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(args);
        Self(command)
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// Becomes the program of this account.
    fn run_by(&mut self, account: &Account) {
        let mut command = account.command(self.0.get_program());
        command.args(self.0.get_args());
        for (name, value) in self.0.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.stderr(Stdio::null());
        self.0 = command;
    }
}

fn psql(host: &str, port: &str) -> Vec<(String, Client)> {
    // The program itself: Debian's script before it takes four times as long.
    let program = super::fixtures::programs().map_or("psql".into(), |folder| folder.join("psql"));
    let program = program.to_str().unwrap();
    let login = |(user, password): (&str, &str)| {
        let database = if user == "kurabe" { "kurabe" } else { "postgres" };
        let args = ["-XAtqw", "-h", host, "-p", port, "-U", user, "-d", database, "-c", "SELECT 4711"];
        (
            format!("as {user}, password '{password}' (psql)"),
            Client::new(program, &args).env("PGPASSWORD", password).env("PGCONNECT_TIMEOUT", "5"),
        )
    };
    let pairs = USERS.iter().map(|user| (*user, "")).chain(GUESSES.iter().map(|guess| ("kurabe", *guess)));
    pairs.map(login).collect()
}

fn mariadb(host: &str, port: &str) -> Vec<(String, Client)> {
    let login = |(user, password): (&str, &str)| {
        let options = [
            "--no-defaults", "--protocol=tcp", "--connect-timeout=5", "-h", host, "-P", port, "-u", user,
            "-NBe", "SELECT 4711",
        ];
        (
            format!("as {user}, password '{password}' (mariadb)"),
            Client::new("mariadb", &options).env("MYSQL_PWD", password),
        )
    };
    let pairs = USERS.iter().chain(&["", "mariadb.sys", "PUBLIC"]).map(|user| (*user, ""));
    pairs.chain(GUESSES.iter().map(|guess| ("root", *guess))).map(login).collect()
}

fn redis_cli(host: &str, port: &str) -> Vec<(String, Client)> {
    let login = |(user, password): (&str, &str)| {
        let args = [
            "--no-auth-warning", "-h", host, "-p", port, "--user", user, "--pass", password, "ECHO",
            LOGGED_IN,
        ];
        (format!("as {user}, password '{password}' (redis-cli)"), Client::new("redis-cli", &args))
    };
    let bare = Client::new("redis-cli", &["-h", host, "-p", port, "ECHO", LOGGED_IN]);
    let guesses = GUESSES.iter().filter(|guess| !guess.is_empty()).map(|guess| ("default", *guess));
    guesses.map(login).chain([("without a user (redis-cli)".to_owned(), bare)]).collect()
}

fn curl(address: &str) -> Vec<(String, Client)> {
    let url = format!("http://{address}/_all_dbs");
    let script = "curl -sf -m 5 -u \"$1:$2\" \"$0\" >/dev/null && echo 4711";
    let login = |(user, password): (&str, &str)| {
        (
            format!("as {user}, password '{password}' (curl)"),
            Client::new("sh", &["-c", script, &url, user, password]),
        )
    };
    let pairs =
        ["kurabe", "admin"].into_iter().flat_map(|user| GUESSES.iter().map(move |guess| (user, *guess)));
    pairs.map(login).collect()
}

/// Whether an account logs in with the URL that it was given, by the server's own client; `None` without such a client. The
/// password is no argument.
pub(super) fn opens(account: &Account, url: &str) -> Option<bool> {
    let (scheme, rest) = url.split_once("://").unwrap();
    let (login, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, port) = place.split(['/', '?']).next().unwrap().split_once(':')?;
    let mut client = match scheme {
        "postgres" => Client::new(
            "psql",
            &["-XAtqw", "-h", host, "-p", port, "-U", user, "-d", "kurabe", "-c", "SELECT 4711"],
        )
        .env("PGPASSWORD", password),
        "mysql" | "mariadb" => {
            let to = [
                "--no-defaults", "--protocol=tcp", "-h", host, "-P", port, "-u", user, "-NBe", "SELECT 4711",
            ];
            Client::new("mariadb", &to).env("MYSQL_PWD", password)
        }
        "redis" | "valkey" => Client::new("redis-cli", &["-h", host, "-p", port, "ECHO", LOGGED_IN])
            .env("REDISCLI_AUTH", password),
        "couchdb" => {
            let script = "echo \"user = $LOGIN\" | curl -sf -m 5 -K - -X PUT \"$0/shop\" >/dev/null && \
                          echo \"user = $LOGIN\" | curl -sf -m 5 -K - -X PUT -d {} \"$0/shop/one\" >/dev/null && echo 4711";
            Client::new("sh", &["-c", script, &format!("http://{host}:{port}")]).env("LOGIN", login)
        }
        _ => return None,
    };
    client.run_by(account);
    let output = client.0.output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).lines().any(|line| line.trim() == LOGGED_IN))
}
