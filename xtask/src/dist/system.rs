//! What packing needs besides Rust: `zig` as a linker for an older glibc, Python's `wheel`, both from `PyPI` in a folder of their own,
//! and Debian's `rpm`; for trials also `debootstrap`; for another architecture `qemu`, by which the kernel executes its programs,
//! and libraries for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Release;
use crate::apt;
use crate::shell::{Root, on_path, run};

/// With checksums.
const TOOLS: &str = "xtask/src/dist/tools.txt";
/// Where the kernel lists programs that execute those of other architectures.
const INTERPRETERS: &str = "/proc/sys/fs/binfmt_misc";

pub struct System {
    /// Of the folder with the tools of `PyPI`.
    bin: PathBuf,
}

impl System {
    /// Installs what is missing. `trials`: also what tries packages.
    pub fn prepare(release: &Release, trials: bool) -> Result<Self, String> {
        let root = Root::find();
        let compiler = format!("{}-linux-gnu-gcc", release.architecture);
        let package_of_libraries = format!("gcc-{}-linux-gnu", release.architecture.replace('_', "-"));
        let interpreter = format!("qemu-{}", release.architecture);
        let static_interpreter = format!("{interpreter}-static");
        let mut needed = vec![
            ("python3", "python3-venv"),
            ("rpmbuild", "rpm"),
            ("dpkg-deb", "dpkg"),
            ("readelf", "binutils"),
        ];
        if !release.is_for_this_machine() {
            needed.extend([
                (compiler.as_str(), package_of_libraries.as_str()),
                (static_interpreter.as_str(), "qemu-user-static"),
            ]);
        }
        if trials {
            if root != Root::Us {
                return Err("--check makes root folders of Debian, so that it needs root".to_owned());
            }
            needed.extend([
                ("debootstrap", "debootstrap"),
                ("unshare", "util-linux"),
                ("setpriv", "util-linux"),
            ]);
        }
        let missing: Vec<&str> =
            needed.iter().filter(|(program, _)| !on_path(program)).map(|(_, of)| *of).collect();
        if !missing.is_empty() {
            match apt::cannot(root) {
                Some(why) => return Err(format!("{} missing: {why}", missing.join(", "))),
                None => apt::install(root, &missing)?,
            }
        }
        if !release.is_for_this_machine() && !Path::new(INTERPRETERS).join(&interpreter).exists() {
            return Err(format!(
                "{INTERPRETERS}/{interpreter} is missing, by which the kernel executes programs of {}; \
                 to have it: apt-get install binfmt-support, and update-binfmts --enable {interpreter}",
                release.architecture
            ));
        }
        let folder = std::env::current_dir().map_err(|error| error.to_string())?.join("target/dist-tools");
        let bin = folder.join("bin");
        if !bin.join("wheel").exists() || !bin.join("cargo-zigbuild").exists() {
            println!("dist: fetching wheel and zig into {}", folder.display());
            run(Command::new("python3").args(["-m", "venv"]).arg(&folder), "python3 -m venv")?;
            let mut pip = Command::new(bin.join("pip"));
            run(pip.args(["install", "--quiet", "--require-hashes", "-r", TOOLS]), "pip install")?;
        }
        Ok(Self { bin })
    }

    /// A tool of `PyPI`; it finds the others.
    pub fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(self.bin.join(name));
        crate::shell::without_package(&mut command);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap_or(path));
        command
    }
}
