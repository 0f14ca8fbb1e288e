//! Passwords in URLs, in the environment and in the engines' own files, right or wrong, with servers that answer or
//! not.
//!
//! Survived: the password is in no output, in no file in the folders of the attack, and in no command line of a process
//! that the program starts; the code is documented.

use crate::case::{Case, Outcome};
use crate::context::{Context, Place};
use crate::process::{self, Running};
use crate::random::Random;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const ENGINES: [&str; 5] = ["postgres", "mysql", "mariadb", "redis", "couchdb"];

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    // The others have no file for passwords.
    let with_file = ["postgres", "mysql", "mariadb"];
    Case::of_each("secrets", &[("url", &ENGINES), ("environment", &ENGINES), ("file", &with_file)], attack)
}

/// A unique password with characters that URLs encode, and its encoded form.
fn password(random: &mut Random) -> (String, String) {
    let plain = format!("plugh-{:x}:@{}", random.number(), random.below(1000));
    let encoded = plain.replace(':', "%3A").replace('@', "%40");
    (plain, encoded)
}

fn attack(context: &Context, kind: &str, engine: &str, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let server = context.server(engine)?;
    let _alone = server.alone();
    let place = context.place()?;
    let (plain, encoded) = password(&mut random);
    let port = if random.below(4) == 0 { 1 } else { server.port };
    let user = if engine == "redis" { "" } else { "kurabe" };
    let database = if ["redis", "couchdb"].contains(&engine) { "" } else { "/kurabe" };
    let mut url = format!("{engine}://{user}:{encoded}@127.0.0.1:{port}{database}");
    let mut variables = Vec::new();
    if kind != "url" {
        url = url.replacen(&format!(":{encoded}@"), "@", 1).replacen("://@", "://", 1);
    }
    if kind == "environment" {
        let name = match engine {
            "postgres" => "PGPASSWORD",
            "redis" => "REDISCLI_AUTH",
            "couchdb" => "COUCHDB_PASSWORD",
            _ => "MYSQL_PWD",
        };
        variables.push((name, plain.clone()));
    }
    if kind == "file" {
        let (name, text) = match engine {
            "postgres" => (".pgpass", format!("*:*:*:*:{}\n", plain.replace(':', "\\:"))),
            _ => (".my.cnf", format!("[client]\nuser = kurabe\npassword = \"{plain}\"\n")),
        };
        let file = place.home().join(name);
        let failed = |error: std::io::Error| error.to_string();
        fs::write(&file, text).map_err(failed)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).map_err(failed)?;
    }
    let brief = ["--requests", "40", "--records", "20", "--rounds", "1"];
    let commands: [Vec<&str>; 9] = [
        [&["run", "point-read", &url][..], &brief].concat(),
        [&["run", "point-read", &url, "up:redis"][..], &brief].concat(),
        [&["run", "point-read", "null:", &url][..], &brief].concat(),
        [&["run", "point-read", &url, "--rounds", "0"][..], &brief[..4]].concat(),
        vec!["run", "point-read", &url, "--dry-run"],
        vec!["doctor", &url],
        vec!["run", &url],
        vec!["report", &url],
        vec!["compare", &url, "last"],
    ];
    let main = random.pick(&commands).clone();
    let after: [&[&str]; 4] = [
        &["runs", "ls"],
        &["report", "--format", "json"],
        &["report", "--format", "md"],
        &["run", "--again", "last"],
    ];
    for args in [main.as_slice(), after[random.below(after.len())]] {
        let mut command = place.command(args);
        command.envs(variables.iter().map(|(name, value)| (*name, value.as_str())));
        let mut running = Running::start(&mut command)?;
        while !running.ended() && running.age() < LIMIT {
            for pid in process::descendants(running.pid()) {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                if holds(&line, &plain) || holds(&line, &encoded) {
                    return Ok(Outcome::Failed(format!("{}: in a command line below it", args[0])));
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let ran = running.finish(LIMIT);
        let shown = ran.all();
        let complaint = ran.unclean(&[0, 2, 3, 4, 5]).or_else(|| {
            let told = shown.contains(&plain) || shown.contains(&encoded);
            told.then(|| format!("in the output: {}", ran.tail()))
        });
        let complaint = complaint.or_else(|| in_files(&place, &[&plain, &encoded]));
        if let Some(complaint) = complaint {
            return Ok(Outcome::Failed(format!("{}: {complaint}", args.join(" "))));
        }
    }
    Ok(Outcome::Survived)
}

fn holds(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// Files that contain one of the needles, except those that the attack wrote.
fn in_files(place: &Place, needles: &[&str]) -> Option<String> {
    [place.runs(), place.temporary()].iter().find_map(|folder| below(folder, needles))
}

fn below(folder: &Path, needles: &[&str]) -> Option<String> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        let kind = entry.file_type().ok()?;
        let found = if kind.is_dir() {
            below(&path, needles)
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            needles.iter().any(|needle| holds(&bytes, needle)).then(|| format!("in {}", path.display()))
        } else {
            None
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
