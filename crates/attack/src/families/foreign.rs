//! Foreign objects, also with our prefix, and texts of servers that contain control characters.
//!
//! Survived: a run, which succeeds or fails with a documented code, leaves the objects unchanged. No control character
//! of a server's error or version appears in the terminal, CSV, Markdown or HTML, and no forged line does.

use crate::case::{Case, Outcome};
use crate::context::{Context, Place, words};
use crate::families::hostile::{control, moment};
use crate::process::{self, Ran};
use crate::random::Random;
use crate::relay::hostile::{Hostile, How, Plan};
use crate::server::Server;
use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(90);
/// A line that looks like an error of the program, after a sequence that clears the screen.
const FORGED: &str = "\x1b[2J\x07x\nkurabe: forged\r\x1b]0;title\x07";

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    let all = ["redis", "memcached", "postgres", "mysql", "mariadb", "couchdb"];
    let mut cases = Case::of_each("foreign", &[("objects", &all[..5])], |context, _, engine, seed| {
        objects(context, engine, seed)
    });
    cases.extend(Case::of_each("foreign", &[("error", &all), ("version", &all)], texts));
    cases
}

/// Names of foreign objects: different from ours, and similar to ours.
const NAMES: [&str; 5] = [
    "users",
    "kurabe_notes",
    "kurabe_0_probe",
    "kurabe_0_point_100_r",
    "kurabe_0_session_1000_blnobitealre_r",
];

fn objects(context: &Context, engine: &str, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let server = context.server(engine)?;
    let _alone = server.alone();
    let place = context.place()?;
    let name = *random.pick(&NAMES);
    let value = format!("mine-{:x}", random.number());
    make(server, name, &value)?;
    let experiment = *random.pick(&["point-read", "point-write", "session", "kv"]);
    let mut args = vec!["run", experiment, &server.url];
    args.extend(words("--requests 40 --records 20 --rounds 1 --no-html -q"));
    if experiment == "session" {
        args.extend(["--payload", "1k"]);
    }
    let ran = process::run(&mut place.command(&args), LIMIT)?;
    let complaint = ran.unclean(&[0, 3]).or_else(|| match read(server, name) {
        Ok(now) if now == value => None,
        Ok(now) => Some(format!("{name} was '{value}' and is '{now}'")),
        Err(why) => Some(format!("{name} cannot be read any more: {why}")),
    });
    remove(server, name);
    Ok(Outcome::of(complaint.map(|why| format!("{experiment}: {why}"))))
}

fn make(server: &Server, name: &str, value: &str) -> Result<(), String> {
    match server.engine.as_str() {
        "redis" => line(server, &format!("SET {name} {value}\r\n")).map(drop),
        "memcached" => line(server, &format!("set {name} 0 0 {}\r\n{value}\r\n", value.len())).map(drop),
        _ => {
            remove(server, name);
            let fill = format!("INSERT INTO {name} VALUES ('{value}')");
            sql(server, &format!("CREATE TABLE {name} (note VARCHAR(40)); {fill}")).map(drop)
        }
    }
}

fn read(server: &Server, name: &str) -> Result<String, String> {
    let said = match server.engine.as_str() {
        "redis" => line(server, &format!("GET {name}\r\n"))?,
        "memcached" => line(server, &format!("get {name}\r\n"))?,
        _ => return sql(server, &format!("SELECT note FROM {name}")),
    };
    Ok(said.lines().nth(1).unwrap_or_default().to_owned())
}

fn remove(server: &Server, name: &str) {
    let _ = match server.engine.as_str() {
        "redis" => line(server, &format!("DEL {name}\r\n")),
        "memcached" => line(server, &format!("delete {name}\r\n")),
        _ => sql(server, &format!("DROP TABLE IF EXISTS {name}")),
    };
}

/// Sends a line and returns what arrives within a short time.
fn line(server: &Server, request: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", server.engine);
    let mut stream = server.connect().map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).map_err(failed)?;
    stream.write_all(request.as_bytes()).map_err(failed)?;
    stream.shutdown(std::net::Shutdown::Write).map_err(failed)?;
    let mut said = String::new();
    stream.read_to_string(&mut said).map_err(failed)?;
    Ok(said)
}

/// Executes statements with the engine's own client program.
fn sql(server: &Server, statements: &str) -> Result<String, String> {
    let port = server.port.to_string();
    let (program, before, after) = if server.engine == "postgres" {
        ("psql", "-X -A -t -q -U kurabe -d kurabe -h 127.0.0.1 -p", "-c")
    } else {
        ("mysql", "--no-defaults -u kurabe -h 127.0.0.1 -B -N kurabe -P", "-e")
    };
    let mut command = Command::new(program);
    command.args(words(before)).args([port.as_str(), after, statements]);
    command.env("PGPASSWORD", server.password()).env("MYSQL_PWD", server.password());
    let ran =
        process::run(&mut command, LIMIT).map_err(|error| format!("the engine's own client: {error}"))?;
    if ran.code == Some(0) { Ok(ran.out.trim().to_owned()) } else { Err(ran.tail()) }
}

fn texts(context: &Context, kind: &str, engine: &str, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let server = context.server(engine)?;
    let which = random.below(2);
    let (pieces, _) = control(context, server, which)?;
    let (connection, piece) = moment(&pieces, &mut random);
    let _alone = server.alone();
    let place = context.place()?;
    let how = if kind == "error" {
        How::Last(error(engine))
    } else {
        let version = version(context, server)?;
        // Of the same length as the text that it replaces.
        let forged: Vec<u8> = b"9\n\x1b[2J".iter().copied().cycle().take(version.len()).collect();
        How::Replaced(version.into_bytes(), forged)
    };
    let plan = Plan { port: server.port, connection, piece, how };
    let what = format!("connection {connection}, piece {piece}");
    let relay = Hostile::start(plan).map_err(|error| error.to_string())?;
    let url = server.through(relay.port());
    let brief = ["--requests", "40", "--records", "20", "--rounds", "1"];
    let commands: [Vec<&str>; 2] =
        [vec!["doctor", &url], [&["run", "point-read", &url][..], &brief].concat()];
    let mut all: Vec<(String, Ran)> = Vec::new();
    let main = &commands[which];
    all.push((main[0].to_owned(), process::run(&mut place.command(main), LIMIT)?));
    if !relay.fired() {
        return Err("the run did not reach that piece".to_owned());
    }
    if main[0] == "run" {
        for args in [&["report", "last"][..], &["report", "--format", "csv"], &["report", "--format", "md"]] {
            all.push((args.join(" "), process::run(&mut place.command(args), LIMIT)?));
        }
    }
    let complaint = all.iter().find_map(|(name, ran)| {
        let found = ran.unclean(&[0, 3, 4, 5]).or_else(|| raw(&ran.out)).or_else(|| raw(&ran.err));
        found.map(|why| format!("{name}: {why}"))
    });
    Ok(Outcome::of(complaint.or_else(|| in_pages(&place)).map(|why| format!("{what}: {why}"))))
}

/// The server's version as `doctor` shows it: digits and dots.
fn version(context: &Context, server: &Server) -> Result<String, String> {
    let place = context.place()?;
    let ran = process::run(&mut place.command(&["doctor", &server.url]), LIMIT)?;
    let words = ran.out.split(|character: char| !(character.is_ascii_digit() || character == '.'));
    let version =
        words.map(|word| word.trim_matches('.')).find(|word| word.contains('.') && !word.starts_with("127."));
    version.map(str::to_owned).ok_or_else(|| format!("no version in {}", ran.tail()))
}

/// An error message of an engine that contains a forged line.
fn error(engine: &str) -> Vec<u8> {
    match engine {
        "redis" => format!("!{}\r\nERR {FORGED}\r\n", FORGED.len() + 4).into_bytes(),
        "memcached" => format!("SERVER_ERROR {}\r\n", FORGED.replace(['\n', '\r'], "\x1b[1m")).into_bytes(),
        "postgres" => {
            let body = format!("SERROR\0C42000\0M{FORGED}\0D{FORGED}\0\0");
            let mut message = b"E".to_vec();
            message.extend((body.len() as u32 + 4).to_be_bytes());
            message.extend(body.as_bytes());
            message
        }
        "couchdb" => {
            let body = format!(
                "{{\"error\":\"x\",\"reason\":\"{}\"}}",
                FORGED
                    .escape_default()
                    .to_string()
                    .replace("\\u{1b}", "\\u001b")
                    .replace("\\u{7}", "\\u0007")
            );
            format!("HTTP/1.1 500 Internal Server Error\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
        }
        _ => {
            let body = format!("\u{1}\u{1}#42000{FORGED}");
            let mut packet = (body.len() as u32 + 1).to_le_bytes().to_vec();
            // As the first packet of an answer.
            packet[3] = 1;
            packet.push(0xff);
            packet.extend(body.as_bytes());
            packet
        }
    }
}

/// Finds control characters that a terminal executes, and forged lines.
fn raw(text: &str) -> Option<String> {
    // Lines of CSV end with CR LF.
    let text = &text.replace("\r\n", "\n");
    let mut all = text.char_indices();
    if let Some((at, control)) = all.find(|(_, c)| c.is_control() && !matches!(c, '\n' | '\t')) {
        let around: String =
            text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        return Some(format!("control character {control:?} after '{}'", around.escape_debug()));
    }
    text.lines().any(|line| line.starts_with("kurabe: forged")).then(|| "a forged line".to_owned())
}

/// Finds control characters in the report pages of the run.
fn in_pages(place: &Place) -> Option<String> {
    for run in std::fs::read_dir(place.runs()).ok()?.flatten() {
        for file in std::fs::read_dir(run.path()).into_iter().flatten().flatten() {
            let bytes = std::fs::read(file.path()).unwrap_or_default();
            if bytes.contains(&0x1b) {
                return Some(format!("ESC in {}", file.file_name().display()));
            }
        }
    }
    None
}
