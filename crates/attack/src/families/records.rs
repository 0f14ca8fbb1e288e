//! Changed run files: flipped bits, other numbers, lines duplicated, removed, reordered, torn.
//!
//! Survived: `show`, `report` and `resume` reject the file with code 5, or report it as damaged or incomplete. They
//! never show figures without such a message.

use crate::case::{Case, Outcome};
use crate::context::{Context, words};
use crate::families::disk::run_line;
use crate::process;
use crate::random::Random;
use crate::runfile;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
const KINDS: [&str; 6] = ["bit", "number", "duplicate", "removed", "order", "torn"];

/// The intact run file, made once, and the name of its folder.
static WHOLE: Mutex<Option<(String, String)>> = Mutex::new(None);

/// The cases of this family.
pub fn cases() -> Vec<Case> {
    Case::of_each("records", &KINDS.map(|kind| (kind, &["runs"][..])), attack)
}

fn whole(context: &Context) -> Result<(String, String), String> {
    let mut known = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = known.as_ref() {
        return Ok(known.clone());
    }
    let place = context.place()?;
    let line = run_line(3) + " --compress none,lz4";
    if let Some(why) = process::run(&mut place.command(&words(&line)), LIMIT)?.unclean(&[0]) {
        return Err(why);
    }
    let file = runfile::find(&place.runs()).ok_or("no run file")?;
    let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
    let name = file.parent().and_then(|folder| folder.file_name()).ok_or("no run folder")?;
    Ok(known.insert((text, name.to_string_lossy().into_owned())).clone())
}

fn attack(context: &Context, kind: &str, _: &str, seed: u64) -> Result<Outcome, String> {
    let mut random = Random::new(seed);
    let (text, name) = whole(context)?;
    let damaged = damaged(&text, kind, &mut random);
    if damaged == text.as_bytes() {
        return Err("nothing was changed".to_owned());
    }
    let place = context.place()?;
    let folder = place.runs().join(name);
    std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let file = folder.join("run.jsonl");
    let commands: [&[&str]; 5] = [
        &["report", "last"],
        &["report", "--format", "json"],
        &["report", "--format", "md"],
        &["report", "--format", "csv"],
        &["run", "--resume", "last", "--no-html", "-q"],
    ];
    let args = *random.pick(&commands);
    std::fs::write(&file, &damaged).map_err(|error| error.to_string())?;
    let ran = process::run(&mut place.command(args), LIMIT)?;
    let complaint = ran.unclean(&[0, 5]).or_else(|| {
        let said = ran.all().to_lowercase();
        let words = [
            "damaged", "not complete", "\"complete\": false", "\"complete\":false", "incomplete", "torn",
            "checksum",
        ];
        let told = words.iter().any(|word| said.contains(word));
        // `--resume` continues only an incomplete run, so continuing it reports that it was incomplete.
        let went_on =
            args.contains(&"--resume") && ["torn", "removed"].contains(&kind) && !said.contains("complete");
        (ran.code == Some(0) && !told && !went_on).then(|| "accepted in silence".to_owned())
    });
    Ok(Outcome::of(complaint.map(|why| format!("{}: {why}", args.join(" ")))))
}

fn damaged(text: &str, kind: &str, random: &mut Random) -> Vec<u8> {
    let mut lines: Vec<&str> = text.lines().collect();
    match kind {
        "bit" => {
            let mut bytes = text.as_bytes().to_vec();
            let at = random.below(bytes.len() - 1);
            bytes[at] ^= 1 << random.below(8);
            return bytes;
        }
        "number" => {
            let mut bytes = text.as_bytes().to_vec();
            let digits: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).collect();
            let at = *random.pick(&digits);
            bytes[at] = b'1' + (bytes[at] - b'0') % 9;
            return bytes;
        }
        "torn" => {
            let at = 1 + random.below(text.len() - 2);
            return text.as_bytes()[..at].to_vec();
        }
        "duplicate" => {
            let (at, to) = (random.below(lines.len()), random.below(lines.len()));
            lines.insert(to, lines[at]);
        }
        "removed" => {
            lines.remove(random.below(lines.len()));
        }
        _ => {
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            lines.swap(a, b);
        }
    }
    let mut bytes = lines.join("\n").into_bytes();
    bytes.push(b'\n');
    bytes
}
