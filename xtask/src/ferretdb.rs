//! A server of MongoDB's protocol for tests, since no distribution has MongoDB: `FerretDB` with its `SQLite`
//! backend, built from the program and the pinned versions in `xtask/ferretdb`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::apt;
use crate::shell::{Root, on_path, run};
use crate::testbed::programs::{self, is_program};

/// The path where the testbed expects it.
fn program() -> Option<PathBuf> {
    Some(programs::cache()?.join("servers/ferretdb-users"))
}

/// Whether there is a `mongod`, or its substitute of the right version.
pub fn there() -> bool {
    if on_path("mongod") {
        return true;
    }
    let Some(program) = program().filter(|program| is_program(program)) else { return false };
    let line = programs::first_line(Command::new(program).arg("-version"));
    line.ok().and_then(|line| programs::word_after(&line, "ferretdb-users")) == wanted()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ferretdb")
}

/// The version in `go.mod`.
fn wanted() -> Option<String> {
    let module = fs::read_to_string(source().join("go.mod")).ok()?;
    programs::word_after(&module, "github.com/FerretDB/FerretDB")
}

/// Builds it under a temporary name, so that an incomplete one is never used. `cannot`: why nothing can be installed,
/// if Go is missing too.
pub fn make(root: Root, cannot: Option<&str>) -> Result<(), String> {
    let started = Instant::now();
    let program = program().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
    if go().is_none() {
        let missing = "there is no program `go`, which builds its substitute";
        match cannot {
            Some(why) => return Err(format!("{missing}, and {why}")),
            None => apt::install(root, &["golang-go"]).map_err(|why| format!("{missing}: {why}"))?,
        }
    }
    let go = go().ok_or("golang-go was installed, but there is no program `go`")?;
    let go = new_enough(go)?;
    println!("setup: building FerretDB; once, about a minute");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let unfinished = folder.join(format!(".ferretdb-unfinished-{}", std::process::id()));
    let mut command = Command::new(go);
    command
        .current_dir(source())
        .args(["build", "-trimpath", "-mod=readonly", "-o"])
        .arg(&unfinished)
        .arg(".")
        // Pure Go, so that it runs wherever its cache is copied; and Go's telemetry is off.
        .envs([("CGO_ENABLED", "0"), ("GOTELEMETRY", "off"), ("GOFLAGS", "")]);
    let built = run(&mut command, "go build").map(drop);
    let moved = built.and_then(|()| {
        fs::rename(&unfinished, &program).map_err(|error| format!("{}: {error}", program.display()))
    });
    let _ = fs::remove_file(&unfinished);
    moved?;
    println!("setup: FerretDB is {} ({:.0} s)", program.display(), started.elapsed().as_secs_f32());
    Ok(())
}

/// Go as it is, or, if it is older than 1.21, which fetches by itself what `go.mod` asks for, a newer one of the same
/// archive: module `golang.org/toolchain`, whose checksum Go verifies.
fn new_enough(go: PathBuf) -> Result<PathBuf, String> {
    let version = run(Command::new(&go).args(["env", "GOVERSION"]), "go env")?;
    let minor = version.trim().strip_prefix("go1.").and_then(|rest| rest.split(['.', 'r', 'b']).next());
    if minor.and_then(|minor| minor.parse().ok()).is_none_or(|minor: u32| minor >= 21) {
        return Ok(go);
    }
    println!("setup: fetching Go 1.22, since {} is too old for FerretDB", version.trim());
    let machine = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    let module = format!("golang.org/toolchain@v0.0.1-go1.22.12.linux-{machine}");
    let json = run(Command::new(&go).args(["mod", "download", "-json", &module]), "go mod download")?;
    let folder = json.lines().find_map(|line| line.trim().strip_prefix("\"Dir\": \""));
    let folder = folder.and_then(|rest| rest.split('"').next()).ok_or("go mod download names no folder")?;
    let folder = Path::new(folder);
    // Files of modules are not executable.
    let mut programs = Command::new("chmod");
    programs.arg("-R").arg("a+x").arg(folder.join("bin")).arg(folder.join("pkg/tool"));
    run(&mut programs, "chmod")?;
    Ok(folder.join("bin/go"))
}

/// Whether Go is there, which builds it.
pub fn has_go() -> bool {
    go().is_some()
}

/// Go, also in the directory of its own installer, which is not in PATH.
fn go() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).chain([PathBuf::from("/usr/local/go/bin")]).collect();
    programs::find("go", &folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_pinned_with_checksums() {
        let version = wanted().unwrap_or_default();
        assert!(version.starts_with("v1."), "{version}");
        let sums = fs::read_to_string(source().join("go.sum")).unwrap_or_default();
        assert!(sums.contains(&format!("github.com/FerretDB/FerretDB {version} h1:")), "{version}");
    }
}
