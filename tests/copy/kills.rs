//! `kill -9` at random moments of a copy, and rows that change before it is continued: whatever the copy then says to be
//! verified is the same by the engines' own programs.

use crate::servers::common::sql;
use crate::support::{Answer, Place, piped};
use kurabe_testbed::testing::{self, Lease};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const ROWS: u32 = 6_000;
/// A digest of both tables: counts and sums that no lost, doubled or changed row leaves as they are.
const DIGEST: &str = "SELECT count(*), sum(id), sum(n), sum(id * n), min(word), max(word), sum(length(word)) FROM keyed; \
                      SELECT count(*), sum(a), sum(b), sum(a * b) FROM loose";

/// Sebastiano Vigna's splitmix64.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let once = (*seed ^ (*seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let twice = (once ^ (once >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    twice ^ (twice >> 31)
}

/// The seed that `KURABE_COPY_SEED` gives.
pub(crate) fn given_seed() -> Option<u64> {
    std::env::var("KURABE_COPY_SEED").ok().and_then(|text| text.parse().ok())
}

fn sqlite(file: &Path, statements: &str) -> String {
    let output =
        Command::new("sqlite3").args(["-batch", "-noheader", "-bail"]).arg(file).arg(statements).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Where a copy goes.
enum Target {
    File(PathBuf),
    Server(Box<Lease>),
}

impl Target {
    fn url(&self) -> String {
        match self {
            Self::File(file) => format!("sqlite:{}", file.display()),
            Self::Server(server) => server.url().to_owned(),
        }
    }

    fn ask(&self, statements: &str) -> String {
        let text = match self {
            Self::File(file) => sqlite(file, statements),
            Self::Server(server) => sql(server, "", statements).unwrap(),
        };
        text.replace('\t', "|")
    }

    /// Removes what a copy made, so that the next one finds an empty database.
    fn clean(&self) {
        match self {
            Self::File(file) => std::fs::remove_file(file).unwrap(),
            Self::Server(_) => drop(self.ask("DROP TABLE keyed; DROP TABLE loose")),
        }
    }
}

/// Kills `count` copies to each engine that is installed. A seed repeats the moments.
pub(crate) fn kill(engines: &[&str], count: usize, mut seed: u64) {
    let place = Place::new();
    let source = place.home().join("source.db");
    sqlite(
        &source,
        &format!(
            "CREATE TABLE keyed (id INTEGER NOT NULL PRIMARY KEY, n INT NOT NULL, word VARCHAR(40)); CREATE TABLE loose (a INT, b INT); \
             CREATE INDEX by_n ON keyed (n); \
             WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < {ROWS}) \
             INSERT INTO keyed SELECT n * 2, n % 97, 'word ' || n FROM r; \
             INSERT INTO loose SELECT id, n FROM keyed"
        ),
    );
    let from = format!("sqlite:{}", source.display());
    for engine in engines {
        let target = match *engine {
            "sqlite" => Target::File(place.home().join("target.db")),
            engine => match testing::server(engine) {
                Some(server) => Target::Server(Box::new(server)),
                None => continue,
            },
        };
        let to = target.url();
        let args = ["copy", &from, &to];
        let start = Instant::now();
        place.run(&args).success();
        let micros = start.elapsed().as_micros() as u64;
        target.clean();
        for round in 0..count {
            let what = format!("seed {seed}, {engine}, round {round}");
            let moment = Duration::from_micros(next(&mut seed) % micros);
            let mut child = piped(&mut place.command(&args));
            std::thread::sleep(moment);
            // One that has ended already needs no signal.
            let _ = child.kill();
            let first = Answer::at_end_of(child);
            let digest = sqlite(&source, DIGEST);
            let changes = next(&mut seed).is_multiple_of(3);
            if changes {
                let at = 2 + next(&mut seed) % u64::from(ROWS);
                sqlite(&source, &format!("UPDATE keyed SET n = n + 1 WHERE id = {} ", at / 2 * 2));
            }
            if first.code == Some(0) {
                // It was complete: the same command finds its tables.
                assert!(!place.run(&args).out.contains("digests"), "{what}");
                target.clean();
                continue;
            }
            let mut answer = place.run(&args);
            if first.out.contains(" verified: ") && answer.code == Some(3) {
                // It had said so, and its record was removed.
                assert!(answer.err.contains("did not make"), "{what}: {answer:?}");
                assert_eq!(target.ask(DIGEST), digest, "{what}: {answer:?}");
                target.clean();
                continue;
            }
            if changes && answer.code == Some(3) {
                assert!(
                    answer.err.contains("on the source") || answer.err.contains("digest"),
                    "{what}: {answer:?}"
                );
                answer = place.run(&[&args[..], &["--no-resume"]].concat());
            }
            assert_eq!(answer.code, Some(0), "{what}, killed after {moment:?}: {answer:?}");
            assert_eq!(target.ask(DIGEST), sqlite(&source, DIGEST), "{what}: {answer:?}");
            target.clean();
        }
    }
}
