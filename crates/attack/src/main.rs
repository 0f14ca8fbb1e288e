//! The attack program; the library documents it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks to its user")]

use kurabe_attack::case::Case;
use kurabe_attack::context::Context;
use kurabe_attack::families;
use kurabe_attack::options::Options;
use kurabe_attack::runner;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match attack(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn attack(args: &[String]) -> Result<bool, String> {
    let options = Options::read(args)?;
    let cases = chosen(&options);
    if options.list {
        for (case, tries) in &cases {
            println!("{:28} {:12} {tries}", case.name(), case.target);
        }
        return Ok(true);
    }
    if cases.is_empty() {
        return Err("no attack has these names; see --list".to_owned());
    }
    let began = Instant::now();
    let seed = options.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs())
    });
    let program = std::fs::canonicalize(&options.program);
    let program = program.map_err(|error| format!("{}: {error}", options.program.display()))?;
    let scratch = tempfile::Builder::new().prefix("kurabe-attack-").tempdir();
    let scratch = scratch.map_err(|error| format!("no folder: {error}"))?;
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(scratch.path(), open).map_err(|error| format!("no folder: {error}"))?;
    let kinds: Vec<&Case> = cases.iter().map(|(case, _)| case).collect();
    let [servers, waiting] =
        runner::start_servers(&program, scratch.path(), &kinds, |why| eprintln!("{why}"));
    let context = Context { program, scratch: scratch.path().to_owned(), servers, waiting };
    eprintln!("seed {seed}; servers ready after {} s", began.elapsed().as_secs());
    let table = runner::run(&context, &cases, seed, |what| {
        eprintln!("{:>5} s  {what}", began.elapsed().as_secs());
    });
    println!(
        "{}",
        table.text(|name, target, seed, tries| {
            format!("cargo xtask attack --only {name} --target {target} --tries {tries} --seed {seed}")
        })
    );
    let (tries, failed) = table.total();
    println!("{tries} attacks, {failed} failed, in {} s (seed {seed})", began.elapsed().as_secs());
    Ok(failed == 0 && tries > 0)
}

/// The selected cases, and the number of tries of each.
fn chosen(options: &Options) -> Vec<(Case, usize)> {
    let mut chosen = Vec::new();
    for family in families::FAMILIES {
        let cases = (family.cases)();
        let budget = if options.quick { family.quick } else { family.full };
        let each = options.tries.unwrap_or_else(|| budget.div_ceil(cases.len().max(1)));
        let wanted = |case: &Case| options.wants(case.family, &case.kind, &case.target);
        chosen.extend(cases.into_iter().filter(wanted).map(|case| (case, each)));
    }
    chosen
}
