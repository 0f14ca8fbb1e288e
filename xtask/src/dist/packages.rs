//! Packages from the tree: an archive, a wheel, a .deb, an .rpm, an image; and the sums of all files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{LICENCES, Tree, read, write};
use super::{GLIBC, Release, system::System};
use crate::shell::{Outcome, on_path, run};

/// The files made.
pub struct Packages {
    pub archive: PathBuf,
    pub wheel: PathBuf,
    pub deb: PathBuf,
    pub rpm: PathBuf,
}

impl Packages {
    pub fn make(release: &Release, tree: &Tree, system: &System) -> Result<Self, String> {
        let made = Self {
            archive: archive(release, tree)?,
            wheel: wheel(release, tree, system)?,
            deb: deb(release, tree)?,
            rpm: rpm(release, tree)?,
        };
        if release.is_for_this_machine() {
            image(&made)?;
        }
        let files = [&made.archive, &made.wheel, &made.deb, &made.rpm];
        let names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
        let sums = run(Command::new("sha256sum").args(names).current_dir(&release.folder), "sha256sum")?;
        write(&release.folder.join("SHA256SUMS"), sums.as_bytes(), 0o644)?;
        for file in files {
            let length = fs::metadata(file).map_or(0, |meta| meta.len());
            println!("dist: {} ({:.1} MB)", file.display(), length as f64 / 1e6);
        }
        Ok(made)
    }
}

/// Named and laid out as `cargo binstall` expects it by default.
fn archive(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let name = format!("kurabe-{}-{}", release.version, release.triple());
    let folder = release.folder.join(&name);
    write(&folder.join("kurabe"), &read(&tree.root.join("usr/bin/kurabe"))?, 0o755)?;
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        write(&folder.join(file), &read(file.as_ref())?, 0o644)?;
    }
    shared(tree, &folder.join("share"))?;
    let file = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "-czf", &file, &name]);
    run(tar.current_dir(&release.folder), "tar")?;
    let _ = fs::remove_dir_all(folder);
    Ok(release.folder.join(file))
}

/// Man pages and completions, which lie in one folder where a package is not the system's.
fn shared(tree: &Tree, to: &Path) -> Outcome {
    fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    let parts = ["man", "bash-completion", "zsh", "fish"].map(|part| tree.root.join("usr/share").join(part));
    run(Command::new("cp").arg("-r").args(parts).arg(to), "cp").map(drop)
}

/// What a wheel calls the glibc that is promised.
pub fn manylinux() -> String {
    format!("manylinux_{}", GLIBC.replace('.', "_"))
}

/// By Python's `wheel`, which writes the list of files with their checksums. What is below `data` is installed below the
/// environment's folder, where pipx links man pages.
fn wheel(release: &Release, tree: &Tree, system: &System) -> Result<PathBuf, String> {
    let version = &release.version;
    let folder = release.folder.join("wheel");
    let (data, about) =
        (folder.join(format!("kurabe-{version}.data")), folder.join(format!("kurabe-{version}.dist-info")));
    write(&data.join("scripts/kurabe"), &read(&tree.root.join("usr/bin/kurabe"))?, 0o755)?;
    shared(tree, &data.join("data/share"))?;
    let architecture = format!("{}_{}", manylinux(), release.architecture);
    let metadata = [template(release, "METADATA", &architecture)?, read("README.md".as_ref())?].concat();
    write(&about.join("METADATA"), &metadata, 0o644)?;
    write(&about.join("WHEEL"), &template(release, "WHEEL", &architecture)?, 0o644)?;
    for licence in LICENCES {
        write(&about.join("licenses").join(licence), &read(licence.as_ref())?, 0o644)?;
    }
    let mut pack = system.tool("wheel");
    run(pack.arg("pack").arg(&folder).arg("--dest-dir").arg(&release.folder), "wheel pack")?;
    let _ = fs::remove_dir_all(folder);
    Ok(release.folder.join(format!("kurabe-{version}-py3-none-{architecture}.whl")))
}

/// What differs between packages in the templates of `deploy/packages`.
fn template(release: &Release, name: &str, architecture: &str) -> Result<Vec<u8>, String> {
    let text = String::from_utf8_lossy(&read(&Path::new("deploy/packages").join(name))?).into_owned();
    let text = text.replace("@VERSION@", &release.version).replace("@GLIBC@", GLIBC);
    Ok(text.replace("@ARCHITECTURE@", architecture).into_bytes())
}

fn deb(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let architecture = release.debian();
    let folder = release.folder.join("deb");
    run(Command::new("cp").arg("-r").arg(&tree.root).arg(&folder), "cp")?;
    write(&folder.join("DEBIAN/control"), &template(release, "control", architecture)?, 0o644)?;
    let file = release.folder.join(format!("kurabe_{}_{architecture}.deb", release.version));
    let mut pack = Command::new("dpkg-deb");
    run(pack.args(["--root-owner-group", "--build"]).arg(&folder).arg(&file), "dpkg-deb")?;
    let _ = fs::remove_dir_all(folder);
    Ok(file)
}

fn rpm(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let top = fs::canonicalize(&release.folder).map_err(|error| error.to_string())?.join("rpm");
    let spec = top.join("kurabe.spec");
    write(&spec, &template(release, "kurabe.spec", &release.architecture)?, 0o644)?;
    let from = fs::canonicalize(&tree.root).map_err(|error| error.to_string())?;
    let mut pack = Command::new("rpmbuild");
    pack.arg("-bb")
        .args(["--target", &release.architecture])
        .arg("--define")
        .arg(format!("_topdir {}", top.display()));
    pack.arg("--define").arg(format!("tree {}", from.display())).arg(&spec);
    run(&mut pack, "rpmbuild")?;
    let name = format!("kurabe-{}-1.{}.rpm", release.version, release.architecture);
    let file = release.folder.join(&name);
    let built = top.join("RPMS").join(&release.architecture).join(&name);
    fs::rename(&built, &file).map_err(|error| format!("{}: {error}", built.display()))?;
    let _ = fs::remove_dir_all(top);
    Ok(file)
}

/// Where a program that makes images runs.
fn image(made: &Packages) -> Outcome {
    let works = |program: &&str| on_path(program) && run(Command::new(program).arg("info"), program).is_ok();
    let Some(program) = ["podman", "docker"].into_iter().find(works) else {
        println!("dist: neither podman nor docker runs here, so there is no image");
        return Ok(());
    };
    let deb = format!("KURABE_DEB={}", made.deb.display());
    let mut build = Command::new(program);
    run(
        build.args(["build", "-t", "kurabe", "-f", "deploy/Containerfile", "--build-arg", &deb, "."]),
        program,
    )?;
    println!("dist: image kurabe ({program})");
    Ok(())
}
