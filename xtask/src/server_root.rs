//! Servers from another suite of Debian, each in its own root directory in the cache.
//!
//! `debootstrap` fetches the packages and checks their signatures; nothing is installed or run. The server, its own
//! libraries and its share files are copied into a directory, where the testbed runs the server with its own loader.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::apt;
use crate::shell::{Root, on_path, run};
use crate::testbed::programs::{self, is_program};
use crate::testbed::root::{self, Place};

/// A server: its packages, and the parts of them that it needs at run time.
pub struct Server {
    name: &'static str,
    /// Where it is in the cache; the testbed finds it there.
    place: Place,
    suite: &'static str,
    /// The packages to fetch, with what they depend on, separated by commas.
    packages: &'static str,
    /// The beginning of the names of the packages to unpack. Libraries are unpacked too.
    unpack: &'static str,
    /// Directories to copy: its share files, and its copyright.
    directories: &'static [&'static str],
    /// Further programs. Each gets a script in the root directory's `bin` that runs it with the root directory's own
    /// loader and libraries.
    tools: &'static [&'static str],
}

pub const MYSQL: Server = Server {
    name: "MySQL",
    place: root::MYSQL,
    suite: "sid",
    packages: "mysql-server-core,mysql-client-core",
    unpack: "mysql-",
    directories: &["usr/share/mysql", "usr/lib/mysql", "usr/share/doc/mysql-server-core"],
    tools: &["usr/bin/mysqldump", "usr/bin/mysql"],
};

pub const VALKEY: Server = Server {
    name: "Valkey",
    place: root::VALKEY,
    suite: "trixie",
    packages: "valkey-server",
    // The program is in `valkey-tools`.
    unpack: "valkey-",
    directories: &["usr/share/doc/valkey-server"],
    tools: &[],
};

pub const PGBOUNCER: Server = Server {
    name: "PgBouncer",
    place: root::PGBOUNCER,
    suite: "trixie",
    packages: "pgbouncer",
    unpack: "pgbouncer",
    directories: &["usr/share/doc/pgbouncer"],
    tools: &["usr/sbin/pgbouncer"],
};

impl Server {
    /// Whether it exists.
    pub fn there(&self) -> bool {
        self.place.root().is_some()
    }

    /// Whether it exists with its further programs.
    pub fn whole(&self) -> bool {
        let script = |tool: &&str, root: &root::Root| is_program(&root.dir.join("bin").join(file_name(tool)));
        self.place.root().is_some_and(|root| self.tools.iter().all(|tool| script(tool, &root)))
    }

    /// Makes it under a temporary name, so that an incomplete one is never used.
    pub fn make(&self, root: Root) -> Result<(), String> {
        let started = Instant::now();
        let home =
            programs::cache().ok_or("neither KURABE_CACHE nor HOME is set, so the cache is unknown")?;
        let home = home.join("servers");
        if !on_path("debootstrap") {
            apt::install(root, &["debootstrap"])?;
        }
        println!(
            "setup: fetching {} from Debian's {} suite; once, about half a minute",
            self.name, self.suite
        );
        let io = |what: &Path| format!("{}: ", what.display());
        fs::create_dir_all(&home).map_err(|error| io(&home) + &error.to_string())?;
        sweep(root, &home);
        let name = format!(".unfinished-{}-{}", self.place.folder, std::process::id());
        let unfinished = Unfinished { path: home.join(name), root };
        let (full, slim) = (unfinished.path.join("full"), unfinished.path.join("slim"));
        fs::create_dir_all(&slim).map_err(|error| io(&slim) + &error.to_string())?;
        self.fetch(root, &full)?;
        self.extract(&full, root)?;
        let whole = home.join(self.place.folder);
        self.copy_needed(&full, &slim, &whole)?;
        let _ = fs::remove_dir_all(&whole);
        // Another process may have been faster; its copy is equal.
        fs::rename(&slim, &whole)
            .or_else(|error| if self.there() { Ok(()) } else { Err(io(&whole) + &error.to_string()) })?;
        drop(unfinished);
        println!("setup: {} is in {} ({:.0} s)", self.name, whole.display(), started.elapsed().as_secs_f32());
        Ok(())
    }

    /// Downloads the packages from this machine's own archive.
    fn fetch(&self, root: Root, full: &Path) -> Result<(), String> {
        let mirror = apt::mirror()?;
        let mut command = root.command("debootstrap", &apt::proxies());
        command.args(["--foreign", "--variant=minbase"]).arg(format!("--include={}", self.packages));
        command.arg(self.suite).arg(full).arg(mirror);
        run(&mut command, "debootstrap").map(drop)
    }

    /// Unpacks the server and the libraries, which `--foreign` has only downloaded.
    fn extract(&self, full: &Path, root: Root) -> Result<(), String> {
        let archives = full.join("var/cache/apt/archives");
        let entries = fs::read_dir(&archives).map_err(|error| format!("{}: {error}", archives.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.extension().is_some_and(|end| end == "deb")
                && (name.starts_with("lib") || name.starts_with(self.unpack))
            {
                run(
                    root.command("dpkg-deb", &[]).arg("-x").arg(&path).arg(full),
                    &format!("unpacking {name}"),
                )?;
            }
        }
        Ok(())
    }

    /// Copies what the server and the further programs need at run time, an eighth of all. `whole` is where `slim` will
    /// be.
    fn copy_needed(&self, full: &Path, slim: &Path, whole: &Path) -> Result<(), String> {
        let (loader, folder) = root::ARCHITECTURES
            .into_iter()
            .find(|(loader, _)| is_program(&full.join(loader)))
            .ok_or("the packages contain no loader")?;
        let libraries = full.join(folder);
        copy(&full.join(loader), &slim.join(loader))?;
        for directory in self.directories {
            copy(&full.join(directory), &slim.join(directory))?;
        }
        for program in [self.place.program].iter().chain(self.tools) {
            copy(&full.join(program), &slim.join(program))?;
            let mut list = Command::new(full.join(loader));
            list.arg("--library-path").arg(&libraries).arg("--list").arg(full.join(program));
            // `libz.so.1 => PATH (0x…)`
            for line in run(&mut list, "listing the libraries of a program")?.lines() {
                let Some(path) = line.split_once(" => ").and_then(|(_, rest)| rest.split(" (").next()) else {
                    continue;
                };
                let (path, name) = (Path::new(path), Path::new(path).file_name().unwrap_or_default());
                if path.starts_with(&libraries) {
                    copy(path, &slim.join(folder).join(name))?;
                }
            }
        }
        for tool in self.tools {
            let quoted =
                |path: &str| format!("'{}'", whole.join(path).display().to_string().replace('\'', r"'\''"));
            let [loader, libraries, program] = [loader, folder, *tool].map(quoted);
            let text = format!("#!/bin/sh\nexec {loader} --library-path {libraries} {program} \"$@\"\n");
            script(&slim.join("bin").join(file_name(tool)), &text)?;
        }
        Ok(())
    }
}

/// The last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Writes an executable file.
fn script(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(failed)?;
    fs::write(path, text).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)
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
        let owner =
            name.strip_prefix(".unfinished-").and_then(|rest| rest.rsplit('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            drop(Unfinished { path: entry.path(), root });
        }
    }
}
