//! `cargo xtask bench drivers`: what drivers send before the application's first own statement. docs/drivers.md has the
//! tables.
//!
//! Each driver opens two connections, one after the other, and executes a statement on each. `kurabe wire` stands between
//! it and a throwaway server.

pub mod list;
mod table;

use std::path::Path;
use std::process::Command;

use super::run::{machine, program, said};
use super::server::Server;
use crate::shell::{self, Outcome};
use list::{Driver, OWN, configure, version};
use table::{Measured, Row};

pub fn run(args: &[String]) -> Outcome {
    if let Some(arg) = args.first() {
        return Err(format!("unexpected argument `{arg}`: drivers takes none"));
    }
    let program = program()?;
    let (mut rows, mut missing, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    for list::Server { title, engine, settings } in list::SERVERS {
        let server = Server::start(&program, engine, settings)?;
        if !versions.contains(&server.version) {
            versions.push(server.version.clone());
        }
        for driver in list::all().filter(|driver| driver.server == title) {
            let Some(version) = version(driver) else {
                missing.push(driver.name);
                continue;
            };
            let measured = measure(&program, &server.url, driver)?;
            let row = Row { server: title, name: driver.name, version, measured };
            println!("{}", row.markdown());
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err("no driver is installed; to get them: cargo xtask setup --stacks".to_owned());
    }
    for name in &missing {
        eprintln!("drivers: {name} is not installed; to get it: cargo xtask setup --stacks");
    }
    let date = said("date", &["-u", "+%Y-%m-%d %H:%M"]);
    println!(
        "\n{date} UTC; {}; servers: {}; kurabe {}",
        machine(),
        versions.join("; "),
        env!("CARGO_PKG_VERSION")
    );
    println!("{}", table::tables(&rows));
    Ok(())
}

/// What a driver sends: on the first connection of a process and on a further one.
fn measure(program: &Path, url: &str, driver: &Driver) -> Result<Measured, String> {
    let mut command = Command::new(program);
    command
        .args(["wire", "--quiet", "--format", "md", "--first", OWN, url, "--", "sh", "-c", driver.command]);
    configure(&mut command)?;
    let (said, _) = shell::both(&mut command, driver.name)?;
    Measured::read(&said).ok_or_else(|| format!("{}: no statement of its own was seen:\n{said}", driver.name))
}
