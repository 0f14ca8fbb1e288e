//! Other accounts of this machine, and the OS user of a server, gain nothing by a throwaway server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use kurabe_testbed::{Server, testing};

/// An account that this machine need not have.
const OTHER: u32 = 4_711;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The accounts that try: this one, and another one if this one may become it.
fn accounts() -> Vec<Option<u32>> {
    [None].into_iter().chain(is_root().then_some(Some(OTHER))).collect()
}

/// Runs a program as an account, without this one's environment; `None` if there is no such program.
fn run(account: Option<u32>, program: &str, args: &[&str], variables: &[(&str, &str)]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).current_dir("/").env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(variables.iter().copied());
    if let Some(account) = account {
        command.uid(account).gid(account);
    }
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            testing::skipped(&format!("{program}: {error}"));
            None
        }
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Asks a server over TCP with a password, or without one if it is empty: whether it let the client in, and what was said.
fn log_in(server: &Server, account: Option<u32>, password: &str) -> Option<(bool, String)> {
    let port = server.port().to_string();
    let scheme = server.url().split(':').next().unwrap();
    if scheme == "memcached" {
        // Whoever connects, the server sees the same.
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let user = format!("kurabe {password}");
        let login = if password.is_empty() {
            String::new()
        } else {
            format!("set a 0 0 {}\r\n{user}\r\n", user.len())
        };
        stream.write_all(format!("{login}stats\r\nquit\r\n").as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        return Some((answer.contains("STAT "), answer));
    }
    let url = format!("http://127.0.0.1:{port}/_all_dbs");
    let user = format!("kurabe:{password}");
    let port_option = format!("--port={port}");
    let output = match scheme {
        "postgres" => run(
            account,
            "psql",
            &[
                "-h", "127.0.0.1", "-p", &port, "-U", "kurabe", "-d", "kurabe", "-wXAtc",
                "SELECT 'in' || 'side'",
            ],
            &[("PGPASSWORD", password)],
        ),
        "mysql" | "mariadb" => run(
            account,
            "mariadb",
            &[
                "--no-defaults", "--protocol=TCP", "--host=127.0.0.1", &port_option, "--user=root", "-BN",
                "-e", "SELECT CONCAT('in', 'side')",
            ],
            &[("MYSQL_PWD", password)],
        ),
        "redis" | "valkey" => {
            let variables = [("REDISCLI_AUTH", password)];
            let variables = if password.is_empty() { &[][..] } else { &variables[..] };
            run(account, "redis-cli", &["-p", &port, "ECHO", "inside"], variables)
        }
        "couchdb" if password.is_empty() => run(account, "curl", &["-sS", &url], &[]),
        "couchdb" => run(account, "curl", &["-sS", "-u", &user, &url], &[]),
        other => panic!("{other}"),
    }?;
    let said = text(&output);
    let inside = if scheme == "couchdb" { said.starts_with('[') } else { said.contains("inside") };
    Some((inside, said))
}

#[test]
fn nobody_logs_in_without_the_password() {
    for engine in ["postgres", "mysql", "mariadb", "redis", "valkey", "couchdb", "memcached"] {
        let Some(server) = testing::own_server(engine) else { continue };
        let password = server.password().unwrap();
        assert!(server.url().contains(password) && password.len() >= 32, "{engine}");
        for account in accounts() {
            for wrong in ["", "wrong", &password[1..]] {
                let Some((inside, said)) = log_in(&server, account, wrong) else { continue };
                assert!(!inside, "{engine}: account {account:?} is let in with '{wrong}': {said}");
            }
            // With the password the same works.
            let Some((inside, said)) = log_in(&server, account, password) else { continue };
            assert!(inside, "{engine}: account {account:?} is refused: {said}");
        }
        // A restarted server has it, too.
        server.restart().unwrap();
        let Some((inside, said)) = log_in(&server, None, "") else { continue };
        assert!(!inside, "{engine}: {said}");
        let Some((inside, said)) = log_in(&server, None, password) else { continue };
        assert!(inside, "{engine}: {said}");
    }
}

#[test]
fn users_that_the_installation_makes_cannot_log_in() {
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let port = format!("--port={}", server.port());
        for user in ["", "mysql", "anybody", "mariadb.sys", "mysql.sys", "mysql.infoschema", "mysql.session"]
        {
            let user = format!("--user={user}");
            let args = [
                "--no-defaults", "--protocol=TCP", "--host=127.0.0.1", &port, &user, "-BN", "-e",
                "SELECT 6*7",
            ];
            let Some(output) = run(None, "mariadb", &args, &[]) else { return };
            assert!(!output.status.success(), "{engine} {user}: {output:?}");
        }
    }
}

#[test]
fn password_is_random_and_in_no_argument_environment_log_or_file() {
    for engine in ["postgres", "mysql", "mariadb", "redis", "couchdb"] {
        let (Some(server), Some(other)) = (testing::own_server(engine), testing::own_server(engine)) else {
            continue;
        };
        let password = server.password().unwrap();
        assert_ne!(Some(password), other.password());
        assert!(!format!("{server:?}").contains(password));
        for pid in [server.pid(), server.supervisor_pid()] {
            for name in ["cmdline", "environ"] {
                let bytes = std::fs::read(format!("/proc/{pid}/{name}")).unwrap();
                assert!(!holds(&bytes, password), "{engine}: /proc/{pid}/{name}");
            }
        }
        // memcached reads its own from a file.
        assert_absent_below(server.dir(), password);
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn assert_absent_below(folder: &Path, text: &str) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            assert_absent_below(&entry.path(), text);
        } else if kind.is_file() && entry.metadata().is_ok_and(|meta| meta.len() < 4 << 20) {
            assert!(!holds(&std::fs::read(entry.path()).unwrap(), text), "{}", entry.path().display());
        }
    }
}

#[test]
fn statements_reach_no_file_outside_of_the_folder() {
    let folder = crate::common::base();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let target = folder.path().join("written");
    let shown = target.display().to_string();
    for engine in ["mysql", "mariadb"] {
        let Some(server) = testing::server(engine) else { continue };
        let socket = format!("--socket={}", server.socket().unwrap().display());
        let ask = |statement: &str| {
            let args = ["--no-defaults", "--user=kurabe", &socket, "-BN", "-e", statement];
            run(None, "mariadb", &args, &[("MYSQL_PWD", server.password().unwrap())])
        };
        let Some(written) = ask(&format!("SELECT 1 INTO OUTFILE '{shown}'")) else { return };
        assert!(!written.status.success() && !target.exists(), "{engine}: {}", text(&written));
        let read = ask("SELECT LOAD_FILE('/etc/passwd') IS NULL").unwrap();
        assert_eq!(text(&read).trim(), "1", "{engine}");
        let grants = ask("SHOW GRANTS").unwrap();
        // Everything in its own database, and nothing else that changes something.
        let grants = text(&grants);
        let global: Vec<&str> = grants.lines().filter(|line| line.contains(" ON *.* ")).collect();
        let much = ["FILE", "GRANT ALL ", "SUPER", "GRANT OPTION", "CREATE USER", "SHUTDOWN"];
        assert!(!global.iter().any(|line| much.iter().any(|one| line.contains(one))), "{engine}: {grants}");
    }
    if let Some(server) = testing::server("postgres") {
        let port = server.port().to_string();
        let ask = |statement: &str| {
            let args = ["-h", "127.0.0.1", "-p", &port, "-U", "kurabe", "-d", "kurabe", "-wXAtc", statement];
            run(None, "psql", &args, &[("PGPASSWORD", server.password().unwrap())])
        };
        for statement in [
            &format!("COPY (SELECT 1) TO '{shown}'")[..],
            &format!("COPY (SELECT 1) TO PROGRAM 'cat > {shown}'"),
            "SELECT pg_catalog.pg_read_file('PG_VERSION')",
            "SELECT pg_catalog.lo_import('/etc/passwd')",
            "ALTER SYSTEM SET archive_command = 'true'",
            "CREATE ROLE other SUPERUSER",
            "SET ROLE postgres",
        ] {
            let Some(output) = ask(statement) else { return };
            let refused = text(&output);
            assert!(
                (refused.contains("ermission denied") || refused.contains("must be superuser"))
                    && !target.exists(),
                "{statement}: {}",
                text(&output)
            );
        }
        // What measurements need of it.
        let sees = ask(
            "SELECT current_setting('data_directory') <> '' AND pg_has_role('pg_read_all_stats', 'member')",
        );
        assert_eq!(text(&sees.unwrap()).trim(), "t");
    }
    for engine in ["redis", "valkey"] {
        let Some(server) = testing::server(engine) else { continue };
        let port = server.port().to_string();
        let ask = |words: &[&str]| {
            let args = [&["-p", &port][..], words].concat();
            run(None, "redis-cli", &args, &[("REDISCLI_AUTH", server.password().unwrap())])
        };
        for words in [
            &["CONFIG", "SET", "dir", &shown][..],
            &["CONFIG", "SET", "dbfilename", "x"],
            &["MODULE", "LOAD", "/tmp/x.so"],
            &["DEBUG", "SLEEP", "0"],
        ] {
            let Some(output) = ask(words) else { return };
            assert!(text(&output).contains("ERR"), "{engine} {words:?}: {}", text(&output));
        }
    }
}

/// What a listener of experiment net answers to an account: one greeting that is right.
fn greeted(server: &Server, account: Option<u32>) -> Option<String> {
    let place = server.url().trim_start_matches("tcp://").replace(':', "/");
    let script = format!(
        "exec 3<>/dev/tcp/{place} && printf 'KURABE-TCP2\\n\\x26\\0{{\"role\":\"Control\",\"block\":0,\"token\":0}}' >&3 \
         && timeout 5 head -c 10 <&3"
    );
    run(account, "bash", &["-c", &script], &[])
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn listener_closes_connections_of_other_accounts_on_this_host_and_on_its_own() {
    if !is_root() {
        return;
    }
    for mtu in [None, Some("1500")] {
        let server = testing::own_server_with("tcp", |options| match mtu {
            Some(mtu) => options.set("mtu", mtu),
            None => options,
        });
        let Some(server) = server else { continue };
        assert_eq!(greeted(&server, None).as_deref(), Some("KURABE-TCP"), "{mtu:?}");
        assert_eq!(greeted(&server, Some(OTHER)).as_deref(), Some(""), "{mtu:?}");
    }
}

#[test]
fn another_account_reaches_no_file_and_no_socket_of_a_server() {
    if !is_root() {
        return;
    }
    for engine in ["postgres", "mysql", "redis", "memcached", "couchdb", "mongodb"] {
        let Some(server) = testing::own_server(engine) else { continue };
        // `nobody` is a user of many services.
        for account in [OTHER, 65_534] {
            for path in [server.dir(), &server.dir().join("data"), server.log_path()] {
                let Some(output) = run(Some(account), "ls", &["-l", &path.display().to_string()], &[]) else {
                    return;
                };
                assert!(!output.status.success(), "{engine}: {account} lists {}", path.display());
            }
            let output = run(Some(account), "kill", &["-0", &server.pid().to_string()], &[]).unwrap();
            assert!(!output.status.success(), "{engine}: {account} signals its process");
        }
    }
}

/// What a process of the server's OS user may try in the folder.
fn as_server(server: &Server, script: &str) -> Output {
    let status = std::fs::metadata(format!("/proc/{}", server.pid())).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir("/").uid(status.uid()).gid(status.gid());
    command.output().unwrap()
}

#[test]
fn link_of_the_servers_user_is_not_followed_at_a_restart() {
    if !is_root() {
        return;
    }
    let private = tempfile::tempdir().unwrap();
    let target = private.path().join("target");
    std::fs::write(&target, "kept").unwrap();
    for engine in ["postgres", "memcached"] {
        let Some(server) = testing::own_server_with(engine, kurabe_testbed::StartOptions::with_tls) else {
            continue;
        };
        let (dir, shown) = (server.dir().display(), target.display());
        // It may not replace what this account opens.
        for name in ["server.log", ".server.json", ".kurabe-testbed", "server.pem", "data", "tmp"] {
            let script =
                format!("rm -rf {dir}/{name}; mv {dir}/{name} {dir}/tmp/x; ln -sfn {shown} {dir}/{name}");
            as_server(&server, &script);
            let kind = server.dir().join(name).symlink_metadata().map(|meta| meta.file_type().is_symlink());
            assert!(!kind.unwrap_or(false), "{engine}: {name} was replaced");
        }
        // In its own folders it may, and then nothing is read there.
        let script =
            format!("ln -s {shown} {dir}/data/link; ln -s /etc {dir}/tmp/link; ln -s {shown} {dir}/run/link");
        assert!(as_server(&server, &script).status.success(), "{engine}");
        if engine != "memcached" {
            assert!(server.keep_data().is_err(), "{engine}: a link was copied");
        }
        let owner = target.metadata().unwrap();
        assert_eq!((owner.uid(), owner.mode() & 0o777), (0, 0o644), "{engine}");
        let folder = server.dir().to_owned();
        server.stop().unwrap();
        assert!(!folder.exists(), "{engine}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept", "{engine}");
        assert!(Path::new("/etc/passwd").exists());
    }
}

#[test]
fn sockets_of_a_server_that_a_link_replaces_are_not_asked() {
    if !is_root() {
        return;
    }
    let Some(server) = testing::own_server("postgres") else { return };
    let other = tempfile::tempdir().unwrap();
    let listener = std::os::unix::net::UnixListener::bind(other.path().join("socket")).unwrap();
    let socket = server.socket().unwrap().to_owned();
    server.kill_hard().unwrap();
    std::fs::remove_file(&socket).unwrap();
    symlink(other.path().join("socket"), &socket).unwrap();
    // The server removes the link, and listens itself.
    server.restart().unwrap();
    listener.set_nonblocking(true).unwrap();
    let received = listener.accept().ok().map(|(mut stream, _)| {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        bytes
    });
    assert!(received.unwrap_or_default().is_empty(), "root wrote to a socket that is another's");
}
