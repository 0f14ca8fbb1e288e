//! MySQL from Debian's development suite, in its own root directory in the cache.
//!
//! `debootstrap` fetches the packages and checks their signatures; nothing is installed or run. The server, its own
//! libraries and its share files are copied into a directory, where the testbed runs the server with its own loader.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::programs::{self, is_program};
use crate::shell::{Root, run};
use crate::{apt, setup};

/// The loader of each architecture, relative to the root directory. The testbed has the same list.
const LOADERS: &[&str] = &["lib64/ld-linux-x86-64.so.2", "lib/ld-linux-aarch64.so.1"];

fn home() -> Option<PathBuf> {
    Some(programs::cache()?.join("servers"))
}

/// Whether it exists.
pub fn there() -> bool {
    let Some(root) = home().map(|home| home.join("mysql-sid")) else { return false };
    is_program(&root.join("usr/sbin/mysqld")) && LOADERS.iter().any(|loader| is_program(&root.join(loader)))
}

/// Makes it under a temporary name, so that an incomplete one is never used.
pub fn make(root: Root) -> Result<(), String> {
    let started = Instant::now();
    let home = home().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
    if !setup::on_path("debootstrap") {
        apt::install(root, &["debootstrap"])?;
    }
    println!("setup: fetching MySQL from Debian's sid suite; once, about half a minute");
    let io = |what: &Path| format!("{}: ", what.display());
    fs::create_dir_all(&home).map_err(|error| io(&home) + &error.to_string())?;
    sweep(root, &home);
    let unfinished = Unfinished { path: home.join(format!(".unfinished-{}", std::process::id())), root };
    let (full, slim) = (unfinished.path.join("full"), unfinished.path.join("slim"));
    fs::create_dir_all(&slim).map_err(|error| io(&slim) + &error.to_string())?;
    fetch(root, &full)?;
    extract(&full, root)?;
    copy_needed(&full, &slim)?;
    let whole = home.join("mysql-sid");
    let _ = fs::remove_dir_all(&whole);
    // Another process may have been faster; its copy is equal.
    fs::rename(&slim, &whole)
        .or_else(|error| if there() { Ok(()) } else { Err(io(&whole) + &error.to_string()) })?;
    drop(unfinished);
    println!("setup: MySQL is in {} ({:.0} s)", whole.display(), started.elapsed().as_secs_f32());
    Ok(())
}

/// Downloads the packages from this machine's own archive.
fn fetch(root: Root, full: &Path) -> Result<(), String> {
    let mirror = apt::mirror()?;
    let mut command = root.command("debootstrap", &apt::proxies());
    command
        .args(["--foreign", "--variant=minbase", "--include=mysql-server-core", "sid"])
        .arg(full)
        .arg(mirror);
    run(&mut command, "debootstrap").map(drop)
}

/// Unpacks the server and the libraries, which `--foreign` has only downloaded.
fn extract(full: &Path, root: Root) -> Result<(), String> {
    let archives = full.join("var/cache/apt/archives");
    let entries = fs::read_dir(&archives).map_err(|error| format!("{}: {error}", archives.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|end| end == "deb")
            && (name.starts_with("lib") || name.starts_with("mysql-server-core"))
        {
            run(root.command("dpkg-deb", &[]).arg("-x").arg(&path).arg(full), &format!("unpacking {name}"))?;
        }
    }
    Ok(())
}

/// Copies what the server needs at run time, an eighth of all.
fn copy_needed(full: &Path, slim: &Path) -> Result<(), String> {
    let loader = LOADERS
        .iter()
        .find(|loader| is_program(&full.join(loader)))
        .ok_or("the packages contain no loader")?;
    let server = full.join("usr/sbin/mysqld");
    copy(&full.join(loader), &slim.join(loader))?;
    copy(&server, &slim.join("usr/sbin/mysqld"))?;
    for folder in ["usr/share/mysql", "usr/lib/mysql", "usr/share/doc/mysql-server-core"] {
        copy(&full.join(folder), &slim.join(folder))?;
    }
    let library_folders = fs::read_dir(full.join("usr/lib")).map_err(|error| error.to_string())?;
    let libraries = library_folders.flatten().map(|entry| entry.path());
    let libraries =
        libraries.filter(|path| path.to_string_lossy().ends_with("-linux-gnu")).find(|path| path.is_dir());
    let libraries = libraries.ok_or("the packages contain no libraries")?;
    let mut list = Command::new(full.join(loader));
    list.arg("--library-path").arg(&libraries).arg("--list").arg(&server);
    // `libz.so.1 => PATH (0x…)`
    for line in run(&mut list, "listing the server's libraries")?.lines() {
        let Some(path) = line.split_once(" => ").and_then(|(_, rest)| rest.split(" (").next()) else {
            continue;
        };
        let (path, name) = (Path::new(path), Path::new(path).file_name().unwrap_or_default());
        if !path.starts_with(&libraries) {
            continue;
        }
        let target = slim.join("usr/lib").join(libraries.file_name().unwrap_or_default()).join(name);
        copy(path, &target)?;
    }
    Ok(())
}

/// Copies a file, following links, or a directory with its content.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("copying {}: {error}", from.display());
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to)).map_err(failed)?;
        return fs::copy(from, to).map(drop).map_err(failed);
    }
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)?.flatten() {
        let path = entry.path();
        // A link to a file of a package that was not unpacked is dangling, and not needed.
        if path.exists() {
            copy(&path, &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// A directory that is removed on drop, complete or not. It belongs to root, because debootstrap made it.
struct Unfinished {
    path: PathBuf,
    root: Root,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Never into another file system: an interrupted bootstrap may have mounted one.
        let mut command = self.root.command("rm", &[]);
        let _ = run(command.args(["-rf", "--one-file-system"]).arg(&self.path), "rm");
    }
}

/// Removes directories of interrupted set-ups.
fn sweep(root: Root, home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(".unfinished-").and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            drop(Unfinished { path: entry.path(), root });
        }
    }
}
