//! The supervisor as a separate program for tests. It also has minimal commands of the testbed:
//! `kurabe-testbed available`; `kurabe-testbed up ENGINE`, which runs a server until standard input ends; and
//! `kurabe-testbed pool NAME`, which lends servers to tests until then.

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;

use kurabe_testbed::{StartOptions, supervisor, testing};

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program speaks to its user")]
fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let command = args.next().unwrap_or_default();
    let rest: Vec<OsString> = args.collect();
    match (command.to_str(), rest.first().and_then(|arg| arg.to_str())) {
        (Some(supervisor::SUBCOMMAND), _) => supervisor::run(rest),
        (Some("available"), None) => {
            for (engine, found) in kurabe_testbed::available() {
                match found {
                    Ok(found) => println!("{engine}: {} ({})", found.version, found.program.display()),
                    Err(missing) => println!("{engine}: not installed: {}; {}", missing.what, missing.how()),
                }
            }
            ExitCode::SUCCESS
        }
        (Some("up"), Some(engine)) => ended(up(engine, &rest[1..])),
        (Some("pool"), Some(name)) => ended(pool(name)),
        _ => {
            eprintln!("kurabe-testbed available | up ENGINE [KEY=VALUE …] | pool NAME");
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::print_stderr, reason = "a program speaks to its user")]
fn ended(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a program speaks to its user")]
fn pool(name: &str) -> Result<(), Box<dyn Error>> {
    testing::serve_pool(name, std::env::current_exe()?)?;
    println!("ready");
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program speaks to its user")]
fn up(engine: &str, settings: &[OsString]) -> Result<(), Box<dyn Error>> {
    let mut options = StartOptions { sync_data: false, ..StartOptions::new(std::env::current_exe()?) };
    for setting in settings {
        let text = setting.to_str().ok_or("a setting is not UTF-8")?;
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        options = options.set(key, value);
    }
    // It is started and stopped like a program in the foreground, also by tests that run in the background.
    kurabe_testbed::end_by_ignored()?;
    let server = kurabe_testbed::start(engine, &options)?;
    println!("{}\n{}\n{}\n{}", server.url(), server.dir().display(), server.pid(), server.supervisor_pid());
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    Ok(server.stop()?)
}
