//! Targets that are no URLs of Kurabe's, or wrong ones, with passwords in them: no command repeats any part of a password.

use super::watch::Needles;
use crate::page::{Page, TOKEN, escaped};
use crate::support::{Answer, Place, eventually};
use kurabe_core::target::TargetUrl;
use std::io::Write as _;
use std::process::Stdio;

/// Parts of the passwords; one part is enough to be a leak.
const PARTS: [&str; 2] = ["xyzzy", "Plugh17"];

/// What stands between the parts of a password.
const BETWEEN: [&str; 12] = ["", "@", "#", "/", "%", "%40", ":", "'", "\"", "?", "&", " "];

/// Forms of other clients, and URLs with a mistake; `PW` is the password.
const FORMS: [&str; 52] = [
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
    "h:5432:d:u:PW",
    "PGPASSWORD=PW psql -h h d",
    "mysql -h h -u root -pPW d",
    "redis-cli -h h -a PW",
    "export URL=postgres://u:PW@h/d",
    "psql postgres://u:PW@h/d",
    "postgres://h/d?sslpassword=PW",
    "nats://u:PW@h:4222",
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

/// Command lines that name a target, and how they tell what happens; `TARGET` is the target.
const COMMANDS: [&str; 36] = [
    "doctor TARGET",
    "doctor --messages TARGET",
    "run TARGET sqlite:other.db",
    "run kv TARGET --requests 1",
    "run kv TARGET --requests 1 --log-format json",
    "run kv TARGET --requests 1 --log-format text --verbose",
    "run kv sqlite:other.db TARGET --dry-run",
    "run kv sqlite:other.db TARGET --dry-run --log-format json",
    "run kv sqlite:other.db --target TARGET --quiet",
    "run kv --target=TARGET --fail-on slower:5%",
    "run kv sqlite:other.db --cache TARGET",
    "run link up:null --remote TARGET --log-format text",
    "run link sqlite: --remote TARGET --log-format json",
    "run copy sqlite: --where remote --remote TARGET",
    "run kv up:nosuch --db TARGET",
    "run kv --via stack:php/mysqli --db TARGET",
    "run kv up:redis --setup copy:TARGET",
    "run kv sqlite:other.db --fleet TARGET",
    "run pgbench -S TARGET",
    "run query TARGET sqlite: -c SELECT",
    "run replay none.capture TARGET",
    "run session --again TARGET",
    "run --resume TARGET",
    "gate suite.toml TARGET",
    "gate suite.toml sqlite:other.db TARGET --fail-on slower:5%",
    "copy TARGET sqlite:other.db",
    "copy sqlite:other.db TARGET",
    "copy TARGET sqlite:other.db --dry-run",
    "capture TARGET -o x.capture -- true",
    "wire TARGET -- true",
    "up TARGET",
    "up app TARGET",
    "up stack php --db TARGET",
    "compare TARGET last",
    "report TARGET --format json",
    "agent --broker TARGET --name a",
];

#[test]
fn no_command_prints_a_part_of_the_password_of_a_malformed_target() {
    let place = Place::new();
    place.file("suite.toml", "experiment = 'kv'\nrounds = 1\n");
    let needles = Needles::of(&PARTS);
    let texts: Vec<String> = all().collect();
    let run = |words: &[&str]| {
        let mut command = place.command(words);
        // A target that is read as one of the user's begins to wait for what is not there.
        let child = command
            .current_dir(place.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Answer::at_end_of(child.spawn().unwrap())
    };
    let check = |words: &[&str], text: &str| {
        let shown = words.join(" ").replace("TARGET", text);
        let words: Vec<String> = words.iter().map(|word| word.replace("TARGET", text)).collect();
        let answer = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        needles.assert_absent(&format!("{shown}: standard output"), &answer.out);
        needles.assert_absent(&format!("{shown}: standard error"), &answer.err);
        assert_ne!(answer.code, Some(0), "{shown}: {answer:?}");
    };
    // Each text by one command, and each form of a target by each command, with another password.
    let by_command = |number: usize| COMMANDS[number % COMMANDS.len()].split(' ').collect::<Vec<_>>();
    let part = |part: usize| {
        for (number, text) in texts.iter().enumerate().filter(|(number, _)| number % 2 == part) {
            check(&by_command(number + number / BETWEEN.len()), text);
        }
    };
    crate::support::beside_each_other(0..2, part);
    check(&["report", "TARGET"], "postgres://h/d?user=u&pasword=xyzzyPlugh17");
    // A suite, a custom workload's suite and standard input name targets too.
    for (number, text) in texts.iter().step_by(BETWEEN.len() - 1).enumerate() {
        let suite =
            place.file(&format!("{number}.toml"), format!("experiment = 'kv'\ntargets = [{text:?}]\n"));
        let mut command = place.command(&["run", "kv", "-", "--log-format", "json"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
        let answers = [run(&["run", "-f", &suite, "--log-format", "json"]), Answer::at_end_of(child)];
        for answer in answers {
            needles.assert_absent(&format!("{text}: standard output"), &answer.out);
            needles.assert_absent(&format!("{text}: standard error"), &answer.err);
        }
        std::fs::remove_file(suite).unwrap();
    }
    needles.assert_absent_below(place.path());
    needles.assert_absent_below(place.home());
}

#[test]
fn page_keeps_and_logs_no_part_of_the_password_of_a_malformed_target() {
    let place = Place::new();
    let needles = Needles::of(&PARTS);
    let page = Page::with(&place, &["--token", TOKEN, "--allow-any-target"]);
    let texts: Vec<String> = all().step_by(5).collect();
    for text in &texts {
        let target = escaped(text);
        let (status, to) = page.post("/new/point-read", &format!("targets={target}&rounds=1&requests=1"));
        if status == 303 {
            // What its run says, when it has ended.
            let said = eventually(60, || Some(page.get(&to).1).filter(|said| !said.contains("running")));
            needles.assert_absent(text, &said.unwrap_or_default());
        }
    }
    let ended = page.end();
    needles.assert_absent("standard output", &ended.out);
    needles.assert_absent("standard error", &ended.err);
    needles.assert_absent_below(place.path());
}
