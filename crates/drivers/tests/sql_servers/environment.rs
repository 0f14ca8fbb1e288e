//! The environment matrix: every variable and every key of an option file that is read, with a URL that names the same, one
//! that leaves it open, and the one of a throwaway server; beside what psql and mariadb do in the same place.

use super::common::{connect, once};
use super::tables::raw;
use kurabe_core::target::TargetUrl;
use kurabe_testbed::{StartOptions, testing};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// Prints what a target answers to a statement in the environment of this process.
fn answer(url: &str, sql: &str) {
    let asked = connect(url).and_then(|mut session| once(&mut *session, &raw(&[sql]), &[]));
    let said = match asked {
        Ok(reply) => {
            let field = reply.field_bytes(0, 0).unwrap_or_default();
            format!("\nanswer: {}\n", String::from_utf8_lossy(field))
        }
        Err(error) => format!("\nrefused: {error}\n"),
    };
    std::io::stdout().write_all(said.as_bytes()).unwrap();
}

fn in_environment(program: &Path, environment: &[(&str, String)]) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", "/nonexistent");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command
}

/// What Kurabe's driver gets: the answer, or `refused` with the reason.
fn by_kurabe(url: &str, sql: &str, environment: &[(&str, String)]) -> String {
    let mut command = in_environment(&std::env::current_exe().unwrap(), environment);
    let test = "sql_servers::environment::environment_of_postgres_fills_what_a_url_leaves_open_and_never_reaches_a_throwaway_server";
    let output = testing::rerun(&mut command, test, &format!("{url} {sql}")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("answer: ").map(str::to_owned));
    line.unwrap_or_else(|| {
        said.lines().find(|line| line.starts_with("refused: ")).unwrap_or(&said).to_owned()
    })
}

/// What another client gets: the answer, or `refused` with the reason.
fn said(output: &Output) -> String {
    if output.status.success() {
        return String::from_utf8_lossy(&output.stdout).trim().to_owned();
    }
    format!("refused: {}", String::from_utf8_lossy(&output.stderr).trim())
}

fn without_environment(url: &str) -> String {
    super::common::with(url, "environment=ignore")
}

/// A row of the matrix.
struct Row {
    set: Vec<(&'static str, String)>,
    /// A URL that names what is set, or for another client what it is told; and one that leaves it open.
    named: String,
    open: String,
    /// What both answer: `ok`, `refused`, or a part of the answer.
    expected: [&'static str; 2],
    /// Where the engine's own client does something else, with the reason.
    differs: Option<([&'static str; 2], &'static str)>,
}

fn fits(found: &str, expected: &str) -> bool {
    match expected {
        "unknown" => found.contains("environment"),
        "ok" => !found.starts_with("refused"),
        "refused" => found.starts_with("refused"),
        part => !found.starts_with("refused") && found.split(' ').any(|word| word == part),
    }
}

fn check(rows: &[Row], up: &str, sql: &str, usual: &str, theirs: &dyn Fn(&str, &Row) -> String) {
    let mut wrong = Vec::new();
    for row in rows {
        let what = &row.set;
        for (n, url) in [&row.named, &row.open].into_iter().enumerate() {
            let found = by_kurabe(url, sql, &row.set);
            if !fits(&found, row.expected[n]) {
                wrong.push(format!("{what:?} {url}: Kurabe {found}, expected {}", row.expected[n]));
            }
            let expected = row.differs.map_or(row.expected[n], |(differs, _)| differs[n]);
            let found = theirs(url, row);
            if !fits(&found, expected) {
                wrong.push(format!("{what:?} {url}: the engine's client {found}, expected {expected}"));
            }
        }
        let found = by_kurabe(up, sql, &row.set);
        if found != usual {
            wrong.push(format!("{what:?} up: {found}, not {usual}"));
        }
    }
    // All at once.
    let all: Vec<(&str, String)> = rows.iter().flat_map(|row| row.set.clone()).collect();
    assert_eq!(by_kurabe(up, sql, &all), usual, "all variables");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn private(path: &Path, text: impl AsRef<[u8]>) -> String {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn administer(url: &str, statements: &[&str]) {
    let mut session = connect(url).unwrap();
    for statement in statements {
        once(&mut *session, &raw(&[statement]), &[]).unwrap();
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one server, and what each variable does to a URL of it")]
fn environment_of_postgres_fills_what_a_url_leaves_open_and_never_reaches_a_throwaway_server() {
    if let Some((url, sql)) = testing::rerun_input().as_deref().and_then(|input| input.split_once(' ')) {
        return answer(url, sql);
    }
    let choose = |options: StartOptions| options.with_tls().with_password("secret");
    let Some(server) = testing::server_with("postgres", choose) else { return };
    let Ok(psql) = kurabe_driver_common::program::find(&["psql"], "") else { return };
    testing::make_superuser(&server);
    let port = server.port();
    let full = format!("postgres://kurabe:secret@127.0.0.1:{port}/kurabe");
    administer(&full, &["CREATE ROLE other LOGIN PASSWORD 'secret'", "CREATE DATABASE other"]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let right = private(&at("right"), b"# s\xe9curit\xe9\n*:*:*:*:secret\n");
    let wrong = private(&at("wrong"), "*:*:*:*:wrong\n");
    let service = format!(
        "# \u{fc}\n[shop]\nhost=127.0.0.1\nport={port}\nuser=other\npassword=secret\ndbname=other\noptions=-c work_mem=9MB\nkeepalives_idle=60\n"
    );
    let services = private(&at("etc/pg_service.conf"), service);
    let system = at("etc").display().to_string();
    private(&at("home/.pgpass"), b"# \xe9\n*:*:*:*:secret\n");
    let home = at("home").display().to_string();
    let sql = "SELECT concat_ws(' ', current_user, 'db=' || current_database(), current_setting('application_name'), \
               current_setting('work_mem'), CASE WHEN ssl THEN 'tls' ELSE 'plain' END) FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let ok = |set: &[(&'static str, &str)], named: &str, open: &str, expected: [&'static str; 2]| Row {
        set: set.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        named: named.to_owned(),
        open: open.to_owned(),
        expected,
        differs: None,
    };
    let other = |row: Row, differs: [&'static str; 2], why: &'static str| Row {
        differs: Some((differs, why)),
        ..row
    };
    let with = |option: &str| super::common::with(&full, option);
    let no_host = format!("postgres://kurabe:secret@:{port}/kurabe");
    let no_password = format!("postgres://kurabe@127.0.0.1:{port}/kurabe");
    let by_service = "postgres://?service=shop";
    let by_socket = format!(
        "postgres://kurabe:secret@/kurabe?host={}&port={port}",
        server.socket().unwrap().parent().unwrap().display()
    );
    let rows = [
        ok(&[("PGHOST", "127.0.0.9")], &full, &no_host, ["ok", "refused"]),
        other(
            ok(&[("PGHOSTADDR", "127.0.0.9")], &full, &no_host, ["ok", "refused"]),
            ["refused", "refused"],
            "libpq leads a host of the URL to another address",
        ),
        ok(&[("PGPORT", "1")], &full, "postgres://kurabe:secret@127.0.0.1/kurabe", ["ok", "refused"]),
        ok(
            &[("PGUSER", "other")],
            &full,
            &format!("postgres://:secret@127.0.0.1:{port}/kurabe"),
            ["kurabe", "other"],
        ),
        ok(
            &[("PGDATABASE", "other")],
            &full,
            &format!("postgres://kurabe:secret@127.0.0.1:{port}"),
            ["db=kurabe", "db=other"],
        ),
        ok(&[("PGPASSWORD", "wrong")], &full, &no_password, ["ok", "refused"]),
        ok(&[("PGPASSWORD", "secret")], &full, &no_password, ["ok", "ok"]),
        ok(&[("PGPASSFILE", &wrong)], &full, &no_password, ["ok", "refused"]),
        ok(&[("PGPASSFILE", &right)], &format!("{no_password}?passfile={right}"), &no_password, ["ok", "ok"]),
        ok(
            &[("PGPASSFILE", &wrong)],
            &format!("{no_password}?passfile={right}"),
            &no_password,
            ["ok", "refused"],
        ),
        ok(&[("HOME", &home)], &full, &no_password, ["ok", "ok"]),
        ok(&[("PGSERVICE", "none"), ("PGSERVICEFILE", &services)], by_service, &full, ["other", "refused"]),
        ok(
            &[("PGSERVICE", "shop"), ("PGSERVICEFILE", &services)],
            &full,
            "postgres://",
            ["db=kurabe", "9MB"],
        ),
        ok(&[("PGSERVICEFILE", "/nonexistent")], &full, by_service, ["ok", "refused"]),
        ok(&[("PGSYSCONFDIR", &system)], &full, by_service, ["ok", "db=other"]),
        other(
            ok(
                &[("PGOPTIONS", "-c work_mem=7MB")],
                &with("options=-c%20work_mem%3D6MB"),
                &full,
                ["6MB", "4MB"],
            ),
            ["6MB", "7MB"],
            "settings that affect results are in the target",
        ),
        ok(&[("PGAPPNAME", "mine")], &with("application_name=own"), &full, ["own", "mine"]),
        ok(
            &[("PGTARGETSESSIONATTRS", "standby")],
            &with("target_session_attrs=any"),
            &full,
            ["ok", "refused"],
        ),
        ok(&[("PGCONNECT_TIMEOUT", "x")], &with("connect_timeout=5"), &full, ["ok", "refused"]),
        ok(
            &[("PGCHANNELBINDING", "require"), ("PGSSLMODE", "disable")],
            &with("channel_binding=disable"),
            &full,
            ["ok", "refused"],
        ),
        ok(&[("PGSSLMODE", "require")], &with("sslmode=disable"), &full, ["plain", "tls"]),
        ok(&[("PGSSLMODE", "verify-ca")], &with("sslmode=disable"), &full, ["plain", "refused"]),
        ok(
            &[("PGSSLMODE", "verify-ca"), ("PGSSLROOTCERT", &server.ca().unwrap().display().to_string())],
            &with("sslmode=disable"),
            &full,
            ["plain", "tls"],
        ),
        ok(
            &[("PGSSLMODE", "verify-ca"), ("PGSSLROOTCERT", "/nonexistent")],
            &with("sslmode=disable"),
            &full,
            ["plain", "refused"],
        ),
        ok(
            &[("PGSSLMODE", "require"), ("PGSSLCERT", &right), ("PGSSLKEY", &right)],
            &with("sslmode=disable"),
            &full,
            ["plain", "refused"],
        ),
        other(
            ok(
                &[
                    ("PGSSLMODE", "verify-ca"),
                    ("PGSSLROOTCERT", &server.ca().unwrap().display().to_string()),
                    ("PGSSLCRL", &right),
                ],
                &with("sslmode=disable"),
                &full,
                ["plain", "refused"],
            ),
            ["plain", "tls"],
            "libpq ignores a list of revoked certificates that it cannot read",
        ),
        other(
            ok(&[("PGREQUIREPEER", "nobody")], &full, &by_socket, ["ok", "refused"]),
            ["ok", "refused"],
            "the same",
        ),
        other(
            ok(&[("PGREQUIREAUTH", "none")], &without_environment(&full), &full, ["ok", "refused"]),
            ["unknown", "ok"],
            "libpq knows it from version 16 on",
        ),
        other(
            ok(&[("PGGSSENCMODE", "require")], &without_environment(&full), &full, ["ok", "refused"]),
            ["unknown", "refused"],
            "libpq has no environment=ignore",
        ),
        ok(&[("PGGSSENCMODE", "disable")], &full, &full, ["ok", "ok"]),
        ok(&[("PGREQUIRESSL", "1")], &with("sslmode=disable"), &with("sslmode=require"), ["plain", "tls"]),
        other(
            ok(&[("PGREQUIRESSL", "1")], &with("sslmode=disable"), &full, ["plain", "refused"]),
            ["plain", "tls"],
            "how a connection is encrypted is in the target",
        ),
        other(
            ok(
                &[("PGSSLMINPROTOCOLVERSION", "TLSv1.3")],
                &full,
                &with("sslmode=require"),
                ["plain", "refused"],
            ),
            ["tls", "tls"],
            "this driver has no such limit",
        ),
        other(
            ok(&[("PGSSLCRLDIR", "/nonexistent")], &full, &with("sslmode=require"), ["plain", "refused"]),
            ["tls", "tls"],
            "libpq ignores a folder that is not there",
        ),
        // What counts for nothing here, or is of other programs.
        ok(
            &[
                ("PGSSLSNI", "0"),
                ("PGSSLCOMPRESSION", "0"),
                ("PGKRBSRVNAME", "x"),
                ("PGGSSLIB", "x"),
                ("PGLOCALEDIR", "/x"),
            ],
            &with("sslmode=require"),
            &full,
            ["tls", "ok"],
        ),
        other(
            ok(&[("PGTZ", "Mars"), ("PGCLIENTENCODING", "LATIN1")], &full, &full, ["ok", "ok"]),
            ["refused", "refused"],
            "settings that affect results are in the target",
        ),
        ok(&[("PGDATESTYLE", "German"), ("PGGEQO", "off")], &full, &full, ["ok", "ok"]),
    ];
    let psql = |url: &str, row: &Row| {
        let mut command = in_environment(&psql, &row.set);
        said(&command.args(["--no-psqlrc", "-w", "-A", "-t", "-c", sql, url]).output().unwrap())
    };
    // Its own application_name is another.
    check(&rows, &without_environment(&full), sql, "kurabe db=kurabe kurabe 4MB plain", &psql);
    let secret = "*:*:*:*:s\u{e9}cret\n".chars().map(|c| c as u8).collect::<Vec<_>>();
    let latin = private(&at("latin"), secret);
    let refused = by_kurabe(&no_password, sql, &[("PGPASSFILE", latin)]);
    assert!(refused.contains("latin, line 1") && !refused.contains("cret"), "{refused}");
}

/// The client program of MariaDB, or of MySQL from where set-up has put it.
fn client_of(engine: &str) -> Option<Vec<String>> {
    if engine == "mariadb" {
        let program = kurabe_driver_common::program::find(&["mariadb"], "").ok()?;
        return Some(vec![program.display().to_string()]);
    }
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(std::path::PathBuf::from);
    let cache = set("KURABE_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|folder| folder.join("kurabe")))
        .or_else(|| set("HOME").map(|folder| folder.join(".cache/kurabe")))?;
    let root = cache.join("servers/mysql-sid");
    let at = |path: &str| root.join(path).display().to_string();
    let words = ["lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu", "usr/bin/mysql"].map(at);
    let [loader, libraries, program] = words;
    Path::new(&program).exists().then(|| vec![loader, "--library-path".to_owned(), libraries, program])
}

#[test]
fn option_files_of_mariadb_fill_what_a_url_leaves_open_and_never_reach_a_throwaway_server() {
    option_files_fill_what_a_url_leaves_open("mariadb");
}

#[test]
fn option_files_of_mysql_fill_what_a_url_leaves_open_and_never_reach_a_throwaway_server() {
    option_files_fill_what_a_url_leaves_open("mysql");
}

/// Each key of an option file that is read, each that is refused, and each variable of the engine's client.
#[expect(clippy::too_many_lines, reason = "one server, and what each option does to a URL of it")]
fn option_files_fill_what_a_url_leaves_open(engine: &str) {
    if !super::methods::has_mariadb_program() {
        return;
    }
    let Some(program) = client_of(engine) else {
        return testing::skipped("there is no client program of MySQL");
    };
    let is_mysql = engine == "mysql";
    let Some(server) = testing::server_with(engine, StartOptions::with_tls) else { return };
    let port = server.port();
    let asked = TargetUrl::parse(server.url()).unwrap();
    let made = "CREATE USER other@'%' IDENTIFIED BY 'secret'; CREATE DATABASE other_db; \
                GRANT ALL ON kurabe.* TO other@'%'; GRANT ALL ON other_db.* TO other@'%'";
    super::methods::administer(&server, made);
    let database = &asked.path;
    // MySQL's server encrypts the password with its key where there is no TLS.
    let of_place = |login: &str, place: &str, path: &str| {
        let url = format!("{engine}://{login}@{place}{path}");
        if is_mysql { super::common::with(&url, "get_server_public_key=true") } else { url }
    };
    let here = format!("127.0.0.1:{port}");
    let path = format!("/{database}");
    let full = of_place("other:secret", &here, &path);
    let status =
        if is_mysql { "performance_schema.session_status" } else { "information_schema.SESSION_STATUS" };
    let sql = format!(
        "SELECT CONCAT_WS(' ', SUBSTRING_INDEX(USER(), '@', 1), CONCAT('db=', DATABASE()), (SELECT IF(VARIABLE_VALUE = '', \
         'plain', 'tls') FROM {status} WHERE VARIABLE_NAME = 'Ssl_cipher'))"
    );
    let folder = tempfile::tempdir().unwrap();
    let ca = server.ca().unwrap().display().to_string();
    let socket = server.socket().map(|socket| socket.display().to_string()).unwrap_or_default();
    let included = private(&folder.path().join("included"), "[client]\nuser=nobody\n");
    let folder_of_files = folder.path().join("files").display().to_string();
    private(&folder.path().join("files/a.cnf"), "[client]\nuser=nobody\n");
    private(&folder.path().join("files/b.txt"), "[client]\nuser=other\n");
    private(&folder.path().join("system/my.cnf"), "[client]\nuser=nobody\n");
    let system = folder.path().join("system").display().to_string();
    let mut number = 0;
    let mut row =
        |lines: &str, set: &[(&'static str, &str)], named: &str, open: &str, expected: [&'static str; 2]| {
            number += 1;
            let home = folder.path().join(number.to_string());
            private(&home.join(".my.cnf"), [b"# s\xe9curit\xe9\n[client]\n", lines.as_bytes()].concat());
            let mut set: Vec<_> = set.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            set.push(("HOME", home.display().to_string()));
            Row { set, named: named.to_owned(), open: open.to_owned(), expected, differs: None }
        };
    let but = |row: Row, differs: [&'static str; 2], why: &'static str| Row {
        differs: Some((differs, why)),
        ..row
    };
    // How each engine's option is refused or ignored by the other's client.
    let only = |own: bool, row: Row, differs: [&'static str; 2]| {
        if own { row } else { but(row, differs, "the other engine's client does not know it") }
    };
    let off = super::common::with(&full, "tls=off");
    let on = super::common::with(&full, "tls=require");
    let no_user = of_place(":secret", &here, &path);
    let no_password = of_place("other", &here, &path);
    let no_host = of_place("other:secret", &format!(":{port}"), &path);
    let no_place = of_place("other:secret", "", &path);
    let no_port = of_place("other:secret", "127.0.0.1", &path);
    let no_database = of_place("other:secret", &here, "");
    let mut rows = vec![
        row("user=other\n", &[], &full, &no_user, ["other", "other"]),
        row("user=nobody\n", &[], &full, &no_user, ["other", "refused"]),
        row(
            "[mysqld]\nuser=nobody\n[client]\nuser = \"other\" # who\n",
            &[],
            &full,
            &no_user,
            ["other", "other"],
        ),
        row("[mysqldump]\nuser=nobody\n[client]\nuser=other\n", &[], &full, &no_user, ["other", "other"]),
        row("loose_user='other'  # it's\n", &[], &full, &no_user, ["other", "other"]),
        row("user=\"oth\"er\n", &[], &full, &no_user, ["other", "refused"]),
        row("user=other\n[client\nport=1\n", &[], &full, &no_user, ["refused", "refused"]),
        row("user=other\n!includedir /nonexistent\n", &[], &full, &no_user, ["refused", "refused"]),
        row(&format!("user=other\n!include {included}\n"), &[], &full, &no_user, ["other", "refused"]),
        row(
            &format!("user=other\n!includedir {folder_of_files}\n"),
            &[],
            &full,
            &no_user,
            ["other", "refused"],
        ),
        only(
            !is_mysql,
            row("user=other\n[client-server]\nuser=nobody\n", &[], &full, &no_user, ["other", "refused"]),
            ["other", "other"],
        ),
        only(
            !is_mysql,
            row("user=other\n[client-mariadb]\nuser=nobody\n", &[], &full, &no_user, ["other", "refused"]),
            ["other", "other"],
        ),
        row("password=secret\n", &[], &full, &no_password, ["ok", "ok"]),
        row("password='secret'\n", &[], &full, &no_password, ["ok", "ok"]),
        row("password=wrong\n", &[], &full, &no_password, ["ok", "refused"]),
        row("password=secret\n", &[("MYSQL_PWD", "wrong")], &full, &no_password, ["ok", "ok"]),
        row("", &[("MYSQL_PWD", "secret")], &full, &no_password, ["ok", "ok"]),
        row("", &[("MYSQL_PWD", "wrong")], &full, &no_password, ["ok", "refused"]),
        row("host=127.0.0.9\n", &[], &full, &no_host, ["ok", "refused"]),
        row("port=1\n", &[], &full, &no_port, ["ok", "refused"]),
        row(&format!("socket={socket}\n"), &[], &full, &no_place, ["ok", "ok"]),
        row("socket=/nonexistent\n", &[], &full, &no_place, ["ok", "refused"]),
        row(&format!("host=localhost\nport=1\nsocket={socket}\n"), &[], &full, &no_place, ["ok", "ok"]),
        row(
            &format!("host=127.0.0.1\nport={port}\nprotocol=TCP\nsocket=/nonexistent\n"),
            &[],
            &full,
            &no_place,
            ["ok", "ok"],
        ),
        row("database=other_db\n", &[], &full, &no_database, ["ok", "db=other_db"]),
        row("ssl\n", &[], &off, &full, ["plain", "tls"]),
        only(!is_mysql, row("ssl\nskip-ssl\n", &[], &on, &full, ["tls", "plain"]), ["refused", "refused"]),
        only(!is_mysql, row("disable_ssl\n", &[], &on, &full, ["tls", "plain"]), ["tls", "tls"]),
        row(&format!("ssl-ca={ca}\nssl-verify-server-cert\n"), &[], &off, &full, ["plain", "tls"]),
        row("ssl-ca=/nonexistent\nssl-verify-server-cert\n", &[], &off, &full, ["plain", "refused"]),
        row("ssl\nssl-cert=/nonexistent\nssl-key=/nonexistent\n", &[], &off, &full, ["plain", "refused"]),
        row(&format!("ssl-ca={ca}\nssl-crl=/nonexistent\n"), &[], &off, &full, ["plain", "refused"]),
        only(
            is_mysql,
            row("ssl-mode=REQUIRED\n", &[], &off, &full, ["plain", "tls"]),
            ["refused", "refused"],
        ),
        only(is_mysql, row("ssl-mode=DISABLED\n", &[], &on, &full, ["tls", "plain"]), ["refused", "refused"]),
        only(
            is_mysql,
            row(&format!("ssl-mode=VERIFY_CA\nssl-ca={ca}\n"), &[], &off, &full, ["plain", "tls"]),
            ["refused", "refused"],
        ),
        only(
            is_mysql,
            row("ssl-mode=VERIFY_CA\nssl-ca=/nonexistent\n", &[], &off, &full, ["plain", "refused"]),
            ["refused", "refused"],
        ),
        but(
            row("ssl-mode=nonsense\n", &[], &off, &full, ["plain", "refused"]),
            ["refused", "refused"],
            "each client refuses a value that it does not know at once",
        ),
        // A key without its certificate, and what this driver does not do.
        row("ssl-key=/nonexistent\n", &[], &off, &full, ["plain", "refused"]),
    ];
    let key = of_place("other:secret", &here, &path)
        .replace("get_server_public_key=true", "get_server_public_key=false");
    if is_mysql {
        rows.extend([
            row(
                "get-server-public-key\nssl-mode=DISABLED\n",
                &[],
                &full,
                &key.replace("?get_server_public_key=false", ""),
                ["ok", "ok"],
            ),
            but(
                row(
                    "ssl-mode=DISABLED\nserver-public-key-path=/nonexistent\n",
                    &[],
                    &full,
                    &full,
                    ["refused", "refused"],
                ),
                ["ok", "ok"],
                "a key that cannot be read is an error here, and a warning there",
            ),
        ]);
    }
    // Variables that only the engine's clients read: how a server is reached is in the target, or in a file.
    let differs = "the URL or an option file names the server";
    rows.extend([
        but(
            row("", &[("MYSQL_TCP_PORT", "1")], &full, &no_port, ["ok", "refused"]),
            ["ok", "refused"],
            differs,
        ),
        but(
            row("", &[("MYSQL_HOST", "127.0.0.9")], &full, &no_host, ["ok", "ok"]),
            ["ok", "refused"],
            differs,
        ),
        but(
            row(
                &format!("socket={socket}\n"),
                &[("MYSQL_UNIX_PORT", "/nonexistent")],
                &full,
                &no_place,
                ["ok", "ok"],
            ),
            ["ok", "ok"],
            differs,
        ),
        but(
            row(
                "[client_x]\nuser=nobody\n",
                &[("MYSQL_GROUP_SUFFIX", "_x")],
                &full,
                &full,
                ["other", "other"],
            ),
            ["other", "other"],
            differs,
        ),
        row(
            "user=other\n",
            &[("MYSQL_TEST_LOGIN_FILE", "/nonexistent")],
            &full,
            &no_user,
            ["other", "other"],
        ),
        but(
            row("user=other\n", &[("MYSQL_HOME", &system)], &full, &no_user, ["other", "other"]),
            ["other", "other"],
            "MySQL's clients read the file of MYSQL_HOME before the user's own",
        ),
        row("user=other\n", &[("USER", "nobody")], &full, &no_user, ["other", "other"]),
        row("", &[("LIBMYSQL_ENABLE_CLEARTEXT_PLUGIN", "1")], &full, &full, ["ok", "ok"]),
        row(
            "",
            &[("MYSQL_DEBUG", "x"), ("MYSQL_HISTFILE", "/x"), ("MYSQL_PS1", "x")],
            &full,
            &full,
            ["ok", "ok"],
        ),
    ]);
    let theirs = |url: &str, row: &Row| {
        let url = TargetUrl::parse(url).unwrap();
        let mut command = in_environment(Path::new(&program[0]), &row.set);
        command.args(&program[1..]).args(["--batch", "--skip-column-names", "--execute", &sql]);
        let given = |name: &str, value: Option<String>| value.map(|value| format!("--{name}={value}"));
        command.args(given("user", url.user.clone()));
        command.args(given("password", url.password.as_ref().map(|password| password.expose().to_owned())));
        command.args(given("host", url.host.clone()));
        command.args(given("port", url.port.map(|port| port.to_string())));
        command.args(given("database", Some(url.path.clone()).filter(|path| !path.is_empty())));
        if url.option("get_server_public_key") == Some("true") {
            command.arg("--get-server-public-key");
        }
        let wanted = (url.option("tls"), is_mysql);
        match wanted {
            (Some("require"), true) => command.arg("--ssl-mode=REQUIRED"),
            (Some(_), true) => command.arg("--ssl-mode=DISABLED"),
            (Some("require"), false) => command.arg("--ssl"),
            (Some(_), false) => command.args(["--skip-ssl", "--skip-ssl-verify-server-cert"]),
            (None, _) => &mut command,
        };
        if url.host.is_some() || url.port.is_some() {
            command.arg("--protocol=TCP");
        }
        said(&command.output().unwrap())
    };
    check(&rows, &without_environment(&full), &sql, &format!("other db={database} plain"), &theirs);
    let home = folder.path().join("latin");
    private(&home.join(".my.cnf"), b"[client]\npassword=s\xe9cret\n");
    let refused = by_kurabe(&no_password, &sql, &[("HOME", home.display().to_string())]);
    assert!(refused.contains("~/.my.cnf, line 2") && !refused.contains("cret"), "{refused}");
}
