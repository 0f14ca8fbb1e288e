//! Tries packages as those who install them do: as an ordinary user, without a network and without the environment of this machine.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::tree::write;
use super::{
    Release,
    packages::{Packages, manylinux},
};
use crate::apt;
use crate::shell::{Outcome, run};

/// `nobody` of Debian.
const USER: &str = "65534";

pub fn all(release: &Release, made: &Packages) -> Outcome {
    let work = Work::make()?;
    let bookworm = work.debian(release, "bookworm")?;
    wheel(release, &work, &bookworm)?;
    copy(&made.deb, &bookworm.join("tmp/kurabe.deb"))?;
    run(Command::new("chroot").arg(&bookworm).args(["dpkg", "-i", "/tmp/kurabe.deb"]), "dpkg -i")?;
    try_out(
        "the .deb on Debian 12",
        &Place { root: Some(bookworm.clone()), bin: "/usr/bin".into(), share: "/usr/share".into() },
    )?;
    run(Command::new("chroot").arg(&bookworm).args(["dpkg", "--purge", "kurabe"]), "dpkg --purge")?;
    if bookworm.join("usr/bin/kurabe").exists() {
        return Err("the .deb was removed, and left /usr/bin/kurabe".to_owned());
    }
    // No Fedora can be had from Debian's packages; rpm itself installs it.
    let mut rpm = Command::new("rpm");
    rpm.arg("--root")
        .arg(&bookworm)
        .args(["--install", "--nodeps", "--ignorearch"])
        .arg(absolute(&made.rpm)?);
    run(&mut rpm, "rpm --install")?;
    try_out(
        "the .rpm's files",
        &Place { root: Some(bookworm), bin: "/usr/bin".into(), share: "/usr/share".into() },
    )?;
    let bullseye = work.debian(release, "bullseye")?;
    let home = bullseye.join("opt");
    run(Command::new("tar").arg("-xzf").arg(&made.archive).arg("-C").arg(&home), "tar")?;
    let folder = PathBuf::from(format!("/opt/kurabe-{}-{}", release.version, release.triple()));
    let place = Place { root: Some(bullseye), share: folder.join("share"), bin: folder };
    try_out("the archive on Debian 11 (glibc 2.31)", &place)?;
    Ok(())
}

/// The wheel in an environment that has nothing else, as the gate's action installs it. One of another architecture, for which no
/// Python runs here, is tried in a Debian.
fn wheel(release: &Release, work: &Work, debian: &Path) -> Outcome {
    let folder = work.0.join("venv");
    let mut install = Command::new("ci/install.sh");
    install
        .arg(&folder)
        .arg(&release.version)
        .env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", &release.folder);
    let (mut root, mut place) = (None, folder);
    if !release.is_for_this_machine() {
        place = PathBuf::from("/opt/wheel");
        install.env("PIP_PLATFORM", format!("{}_{}", manylinux(), release.architecture));
        install.env("PIP_ONLY_BINARY", ":all:").env("PIP_TARGET", debian.join("opt/wheel"));
        root = Some(debian.to_owned());
    }
    run(&mut install, "ci/install.sh")?;
    try_out("the wheel", &Place { root, bin: place.join("bin"), share: place.join("share") })
}

/// Where a package is installed.
struct Place {
    /// Of a Debian; `None`: this machine.
    root: Option<PathBuf>,
    bin: PathBuf,
    share: PathBuf,
}

impl Place {
    /// Runs a line of bash as an ordinary user in name spaces without a network and with its own processes.
    fn user(&self, line: &str) -> Result<String, String> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork"]);
        if let Some(root) = &self.root {
            command.arg(format!("--mount-proc={}/proc", root.display()));
            command.arg("chroot").arg(format!("--userspec={USER}:{USER}")).arg(root);
        } else {
            command.args(["--mount-proc", "setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"]);
        }
        let path = format!("PATH={}:/usr/bin:/bin", self.bin.display());
        // A folder that only this user has.
        let line = format!("set -eu; export HOME=$(mktemp -d); cd $HOME; trap 'rm -rf $HOME' EXIT; {line}");
        command.args(["env", "-i", &path, "LANG=C.UTF-8", "bash", "-c", &line]);
        run(&mut command, line.rsplit(';').next().unwrap_or("bash").trim())
    }
}

/// What each package must do; an error names the package and the command.
fn try_out(what: &str, place: &Place) -> Outcome {
    let started = Instant::now();
    let failed = |error: String| format!("{what}: {error}");
    let expect = |line: &str, part: &str| {
        let said = place.user(line).map_err(failed)?;
        if said.contains(part) {
            Ok(())
        } else {
            Err(format!("{what}: '{line}' does not say '{part}':\n{said}"))
        }
    };
    expect("kurabe --version", env!("CARGO_PKG_VERSION"))?;
    expect("kurabe run session --budget 20s --no-html", "SQLite")?;
    expect("kurabe doctor sqlite:shop.db", "SQLite")?;
    let completions = place.share.join("bash-completion/completions/kurabe");
    let complete = format!(
        "source {}; COMP_WORDS=(kurabe run sess); COMP_CWORD=2; COMP_TYPE=9; _clap_complete_kurabe kurabe sess run; \
         echo \"${{COMPREPLY[@]}}\"",
        completions.display()
    );
    expect(&complete, "session")?;
    expect(&format!("man --manpath={} kurabe | cat", place.share.join("man").display()), "SYNOPSIS")?;
    println!(
        "dist: {what}: run session, doctor, completion and the manual work ({:.0} s)",
        started.elapsed().as_secs_f32()
    );
    Ok(())
}

/// A folder that is removed on drop. Others may enter it: an ordinary user tries what is in it.
struct Work(PathBuf);

impl Work {
    fn make() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("kurabe-dist-{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o755).create(&folder);
        let made = made.and_then(|()| fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)));
        made.map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    /// A new root folder of a bare Debian with bash and `man`.
    fn debian(&self, release: &Release, name: &str) -> Result<PathBuf, String> {
        let folder = self.0.join(name);
        println!("dist: making a bare Debian ({name})");
        let mut make = Command::new("debootstrap");
        make.args(["--variant=minbase", "--include=man-db", "--arch", release.debian(), name]);
        make.arg(&folder).arg(apt::mirror()?);
        run(&mut make, "debootstrap")?;
        Ok(folder)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy(from: &Path, to: &Path) -> Outcome {
    write(to, &super::tree::read(from)?, 0o644)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}
