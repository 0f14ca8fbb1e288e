//! Node.js, with pg and mysql2. The application is in `stacks/node`; its libraries are in the cache.

use std::path::PathBuf;
use std::process::Command;

use crate::TestbedError;
use crate::engine::{Engine, Installed, Instance, Launch};
use crate::programs;
use crate::stack::{self, MYSQL, POSTGRES, Stack, Variant};

const APP: &str = include_str!("../stacks/node/app.js");

/// The lowest version, of `os.availableParallelism`.
const MIN: (u32, u32) = (18, 14);

pub(crate) static NODE: Stack = Stack {
    engine: Engine { prepare, ..stack::engine("node", find, command, |spec| NODE.check(spec)) },
    variants: &[
        Variant::per_request("mysql2", "mysql2, a new connection for each request", MYSQL),
        Variant::pooled("mysql2-pool", "mysql2 with its pool, a connection for each worker", MYSQL),
        Variant::per_request("pg", "pg, a new connection for each request", POSTGRES),
        Variant::pooled("pg-pool", "pg with its pool, a connection for each worker", POSTGRES),
    ],
};

/// The folder of its libraries.
fn libraries() -> Result<PathBuf, String> {
    let folder = stack::cache("node").ok_or("there is no cache folder for its libraries")?;
    Ok(folder.join("node_modules"))
}

fn find() -> Result<Installed, String> {
    let program = programs::required("node")?;
    // `v18.20.4`
    let found = Installed::identify(Command::new(&program).arg("--version"), program, "Node.js", |line| {
        line.strip_prefix('v').map(str::to_owned)
    })?;
    stack::at_least(MIN, "Node.js", &found.version)?;
    let folder = libraries()?;
    match ["pg", "mysql2"].into_iter().find(|name| !folder.join(name).join("package.json").is_file()) {
        None => Ok(found),
        Some(name) => Err(format!("no library {name} in {}", folder.display())),
    }
}

fn prepare(instance: &Instance) -> Result<Vec<Launch>, TestbedError> {
    let program = format!("Node.js {}", instance.installed.version);
    NODE.write(instance, &program, [], &[("app.js", APP)])?;
    // Node.js looks for libraries in a folder of this name beside the program.
    let libraries = libraries().map_err(|what| NODE.missing(what))?;
    let link = instance.dir.join("node_modules");
    std::os::unix::fs::symlink(&libraries, &link)
        .map_err(TestbedError::io(format!("creating {}", link.display())))?;
    Ok(Vec::new())
}

fn command(instance: &Instance, _first: bool) -> Launch {
    Launch::new(&instance.installed.program).arg(instance.dir.join("app.js")).arg(instance.port.to_string())
}
