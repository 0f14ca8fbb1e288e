//! Targets that are no URLs of Kurabe's, or wrong ones, with passwords in them: no command repeats any part of a password.

use super::watch::Needles;
use crate::support::Place;
use kurabe_core::target::TargetUrl;
use std::io::Write as _;
use std::process::Stdio;

/// Parts of the passwords; one part is enough to be a leak.
const PARTS: [&str; 2] = ["xyzzy", "Plugh17"];

/// What stands between the parts of a password.
const BETWEEN: [&str; 12] = ["", "@", "#", "/", "%", "%40", ":", "'", "\"", "?", "&", " "];

/// Forms of other clients, and URLs with a mistake; `PW` is the password.
const FORMS: [&str; 44] = [
    "host=h user=u password=PW dbname=d",
    "host=h user=u password='PW'",
    "HOST = h PASSWORD = PW",
    "host=h pasword=PW",
    "dbname=d passwd=PW host=/run/pg",
    "jdbc:postgresql://h/d?user=u&password=PW",
    "jdbc:mysql://u:PW@h/d",
    "jdbc:sqlserver://h;user=u;password=PW",
    "jdbc:oracle:thin:u/PW@h:1521/x",
    "r2dbc:postgresql://u:PW@h/d",
    "Driver={PostgreSQL};Server=h;Uid=u;Pwd=PW",
    "DSN=shop;PWD=PW",
    "odbc:Driver=x;Pwd=PW",
    "Server=h;Database=d;User Id=u;Password=PW;",
    "Data Source=h;Initial Catalog=d;User ID=u;Password=\"PW\"",
    "Data Source=h;Passwrod=PW",
    "postgresql+psycopg2://u:PW@h/d",
    "mysql+pymysql://u:PW@h/d?charset=utf8mb4",
    "redis+unix://:PW@/run/r.sock",
    "redis-socket:///run/r.sock?password=PW",
    "unix:///run/r.sock?password=PW",
    "file:/run/x.db?key=PW",
    "file:///run/x.db?password=PW",
    "u:PW@tcp(h:3306)/d",
    "u/PW@h:1521/x",
    "u/PW@//h/x",
    "u:PW@h",
    "pgsql:host=h;dbname=d;password=PW",
    "postgres:/u:PW@h/d",
    "postgres//u:PW@h/d",
    "postgress://u:PW@h/d",
    "postgres:///u:PW@h/d",
    "postgres://u:PW@h:99999/d",
    "postgres://u:PW@[::1/d",
    "://u:PW@h/d",
    "postgres://h/d?password=PW",
    "postgres://h/d?user=u&pasword=PW",
    "mysql://h/d?pwd=PW&tls=off",
    "redis://PW@h:x/0",
    "redis://h/0?password=PW",
    "mongodb://u:PW@a,b:x/d",
    "{\"host\": \"h\", \"password\": \"PW\"}",
    "password: PW",
    "up:postgres?password=PW",
];

fn all() -> impl Iterator<Item = String> {
    let passwords = BETWEEN.map(|between| PARTS.join(between));
    FORMS.iter().flat_map(move |form| passwords.clone().map(|password| form.replace("PW", &password)))
}

#[test]
fn reading_a_malformed_target_repeats_no_part_of_its_password() {
    let needles = Needles::of(&PARTS);
    let (mut count, mut leaks) = (0, Vec::new());
    for text in all() {
        count += 1;
        let read = TargetUrl::parse(&text).and_then(|url| {
            kurabe_drivers::registry::servers(&url)?;
            Ok((kurabe_drivers::registry::open(&url)?.endpoint(), url.to_string()))
        });
        let said = match read {
            Err(error) => format!("{error} {error:?}"),
            Ok(shown) => format!("{shown:?}"),
        };
        if needles.found(&said).is_some() {
            leaks.push(format!("{text}\n    {said}"));
        }
    }
    assert!(count > 500 && leaks.is_empty(), "{} of {count}:\n{}", leaks.len(), leaks.join("\n"));
}

/// Editors of Windows write a mark before a text, and a shell passes it on.
#[test]
fn byte_order_mark_on_standard_input_means_nothing() {
    let place = Place::new();
    let mut command = place.command(&["run", "kv", "-", "--dry-run"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all("\u{feff}sqlite:other.db\r\n".as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn no_command_prints_a_part_of_the_password_of_a_malformed_target() {
    let place = Place::new();
    let needles = Needles::of(&PARTS);
    let good = "sqlite:other.db";
    // Each form once, with another password, by another command.
    let texts: Vec<String> = all().step_by(BETWEEN.len() + 1).chain(all().skip(3).step_by(61)).collect();
    for (number, text) in texts.iter().enumerate() {
        let text = text.as_str();
        let commands: [&[&str]; 12] = [
            &["doctor", text],
            &["run", "kv", text, "--requests", "1", "--log-format", "json"],
            &["run", "kv", good, text, "--dry-run"],
            &["run", "link", "up:null", "--remote", text, "--log-format", "text"],
            &["copy", text, good],
            &["copy", good, text, "--log-format", "json"],
            &["capture", text, "-o", "x.capture", "--", "true"],
            &["wire", text, "--", "true"],
            &["run", "replay", "none.capture", text],
            &["run", "kv", "up:nosuch", "--db", text],
            &["run", "kv", good, "--setup", &format!("copy:{text}")],
            &["up", text],
        ];
        for args in [commands[number % 12], commands[(number * 5 + 1) % 12]] {
            let answer = place.run(args);
            assert_ne!(answer.code, Some(0), "{args:?}: {answer:?}");
            needles.assert_absent(&format!("{args:?}: standard output"), &answer.out);
            needles.assert_absent(&format!("{args:?}: standard error"), &answer.err);
        }
    }
    // A suite, a settings file and standard input name targets too.
    for (number, text) in texts.iter().step_by(9).enumerate() {
        let suite =
            place.file(&format!("{number}.toml"), format!("experiment = 'kv'\ntargets = [{text:?}]\n"));
        let answers =
            [place.run(&["run", "-f", &suite, "--log-format", "json"]), place.run(&["run", "kv", "-"])];
        for answer in answers {
            needles.assert_absent("standard output", &answer.out);
            needles.assert_absent("standard error", &answer.err);
        }
        std::fs::remove_file(suite).unwrap();
    }
    needles.assert_absent_below(place.path());
}
