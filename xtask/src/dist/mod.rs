//! `cargo xtask dist`: the program as packages for people without a compiler, and a trial of each.

mod build;
mod check;
mod packages;
mod system;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Outcome, run as shell};

const HELP: &str = "\
cargo xtask dist [--check] [--architecture NAME] [--program FILE]

Builds the profile `dist` with all features, and from it in target/packages: an archive, a wheel, a .deb, an .rpm, and their
checksums. An image is made where podman or docker runs.

  --check               tries each: the wheel in a new virtual environment, the .deb and the .rpm in a bare Debian 12, the archive
                        on the oldest glibc that is promised (Debian 11), as an ordinary user without a network; needs root
  --architecture NAME   x86_64 or aarch64; this machine's by default. qemu executes programs of the other one
  --program FILE        packs this program and builds none";

/// The oldest glibc on which the published program runs: of Debian 11, Ubuntu 20.04 and RHEL 9.
const GLIBC: &str = "2.31";

/// What all packages name.
struct Release {
    version: String,
    /// The commit, `-dirty` if the tree differs from it; agents of a fleet compare it.
    commit: String,
    /// As Rust names it: `x86_64`.
    architecture: String,
    /// Where packages are put.
    folder: PathBuf,
}

impl Release {
    fn of_tree(architecture: String) -> Result<Self, String> {
        let manifest = fs::read_to_string("Cargo.toml").map_err(|error| format!("Cargo.toml: {error}"))?;
        let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
        let git = |arguments: &[&str]| shell(std::process::Command::new("git").args(arguments), "git");
        // A release's workflow names its commit, and has perhaps no `.git`.
        let commit = if let Ok(commit) = std::env::var("KURABE_COMMIT") {
            commit
        } else {
            let dirty = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
            format!("{}{}", git(&["rev-parse", "HEAD"])?.trim(), if dirty { "-dirty" } else { "" })
        };
        let folder = PathBuf::from("target/packages");
        Ok(Self {
            version: version.ok_or("Cargo.toml names no version")?.to_owned(),
            commit,
            architecture,
            folder,
        })
    }

    fn triple(&self) -> String {
        format!("{}-unknown-linux-gnu", self.architecture)
    }

    fn is_for_this_machine(&self) -> bool {
        self.architecture == std::env::consts::ARCH
    }

    /// Debian's name of the architecture.
    fn debian(&self) -> &'static str {
        if self.architecture == "x86_64" { "amd64" } else { "arm64" }
    }
}

pub fn run(args: &[String]) -> Outcome {
    let (mut check, mut program, mut architecture) = (false, None, std::env::consts::ARCH.to_owned());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--check" => check = true,
            "--architecture" => match args.next().map(String::as_str) {
                Some(name @ ("x86_64" | "aarch64")) => name.clone_into(&mut architecture),
                _ => return Err("--architecture needs x86_64 or aarch64".to_owned()),
            },
            "--program" => program = Some(PathBuf::from(args.next().ok_or("--program needs a file")?)),
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(());
            }
            other => return Err(format!("'{other}' is no option; cargo xtask dist --help")),
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::set_current_dir(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    let release = Release::of_tree(architecture)?;
    let system = system::System::prepare(&release, check)?;
    let program = match program {
        Some(program) => program,
        None => build::program(&release, &system)?,
    };
    build::needs_no_newer_glibc(&program)?;
    let _ = fs::remove_dir_all(&release.folder);
    fs::create_dir_all(&release.folder).map_err(|error| format!("{}: {error}", release.folder.display()))?;
    let tree = tree::Tree::lay(&release, &program)?;
    let made = packages::Packages::make(&release, &tree, &system)?;
    if check {
        check::all(&release, &made)?;
    }
    Ok(())
}
