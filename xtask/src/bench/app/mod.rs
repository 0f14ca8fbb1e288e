//! `cargo xtask bench app`: the web tier's own cost for a request.
//!
//! Each round measures, one after another and in a rotating order: the program's `kurabe up app`, that of
//! another build if one is named, the same database calls without a web tier, and the minimum: a program that only
//! receives a request and answers it. The load generator is ab.

mod floor;
mod parts;
mod table;

use std::path::PathBuf;

use super::options;
use super::peers::server::Server;
use super::run::need;
use crate::Outcome;
use parts::{Bench, Sample};

/// The file of the table.
const PAGE: &str = "docs/web-tier.md";

/// How the pages are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mode {
    write: bool,
    /// One connection for all requests of a client, instead of one for each.
    kept: bool,
}

const MODES: [Mode; 4] = [
    Mode { write: false, kept: true },
    Mode { write: true, kept: true },
    Mode { write: false, kept: false },
    Mode { write: true, kept: false },
];

struct Options {
    rounds: usize,
    requests: u64,
    clients: u32,
    engines: Vec<String>,
    beside: Option<PathBuf>,
}

/// The results of one engine's rounds: a sample of each mode, in the order of [`MODES`].
pub struct Group {
    engine: String,
    version: String,
    rounds: Vec<[Sample; MODES.len()]>,
}

pub fn run(args: &[String]) -> Outcome {
    if args.first().is_some_and(|arg| arg == floor::ARGUMENT) {
        return floor::serve(args.get(1).is_some_and(|arg| arg == floor::KEPT));
    }
    let options = asked(args)?;
    need("ab", "apache2-utils")?;
    let bench = Bench::new(&options)?;
    let mut groups = Vec::new();
    for engine in &options.engines {
        // SQLite and `null:` are in the process, and need no server.
        let (url, version, server) = match engine.as_str() {
            "null" | "sqlite" => (format!("{engine}:"), engine.clone(), None),
            _ => {
                let server = Server::start(&bench.kurabe.program, engine, &[])?;
                (server.url.clone(), server.version.clone(), Some(server))
            }
        };
        let mut group = Group { engine: engine.clone(), version, rounds: Vec::new() };
        for round in 0..options.rounds {
            group.rounds.push(bench.round(&url, round)?);
            println!("{}", group.last());
        }
        drop(server);
        groups.push(group);
        // After each engine, so that results are kept if the next one fails.
        std::fs::write(PAGE, table::page(&groups, &options, args)).map_err(|e| format!("{PAGE}: {e}"))?;
    }
    for group in &groups {
        println!("{}", group.markdown(options.beside.is_some()));
    }
    Ok(())
}

fn asked(args: &[String]) -> Result<Options, String> {
    let mut options = Options {
        rounds: 5,
        requests: 30_000,
        clients: 100,
        engines: vec!["null".to_owned(), "postgres".to_owned()],
        beside: None,
    };
    let mut known: [(&str, &mut dyn options::Place); 5] = [
        ("--rounds", &mut options.rounds),
        ("--requests", &mut options.requests),
        ("--clients", &mut options.clients),
        ("--engines", &mut options.engines),
        ("--beside", &mut options.beside),
    ];
    options::read(args, &mut known)?;
    if options.requests < u64::from(options.clients) {
        return Err("--requests: fewer than --clients".to_owned());
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        asked(&args).err().unwrap_or_default()
    }

    #[test]
    fn unmeasurable_options_are_rejected() {
        assert!(refused(&["--requests", "10", "--clients", "11"]).contains("fewer than"));
        assert_eq!(refused(&["--requests", "10", "--clients", "10"]), "");
    }
}
