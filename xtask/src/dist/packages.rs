//! Packages from the tree: an archive, a wheel, a .deb, an .rpm, an image; and the sums of all files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::tree::{Tree, read, write};
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
        image(&made)?;
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

/// The name that `[package.metadata.binstall]` of the program's manifest gives.
fn archive(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let name = format!("kurabe-{}-{}", release.version, release.triple());
    let folder = release.folder.join(&name);
    write(&folder.join("kurabe"), &read(&tree.root.join("usr/bin/kurabe"))?, 0o755)?;
    for file in ["README.md", "LICENSE-APACHE", "LICENSE-MIT"] {
        write(&folder.join(file), &read(file.as_ref())?, 0o644)?;
    }
    for part in ["man", "bash-completion", "zsh", "fish"] {
        let to = folder.join("share");
        fs::create_dir_all(&to).map_err(|error| format!("{}: {error}", to.display()))?;
        run(Command::new("cp").arg("-r").arg(tree.root.join("usr/share").join(part)).arg(&to), "cp")?;
    }
    let file = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    tar.args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "-czf", &file, &name]);
    run(tar.current_dir(&release.folder), "tar")?;
    let _ = fs::remove_dir_all(folder);
    Ok(release.folder.join(file))
}

/// By maturin, from the program that Cargo has just built; it finds nothing to build again.
fn wheel(release: &Release, tree: &Tree, system: &System) -> Result<PathBuf, String> {
    // Installed below the environment's `share`, where pipx links man pages.
    let data = Path::new("target/wheel-data/data/share");
    let _ = fs::remove_dir_all("target/wheel-data");
    fs::create_dir_all(data).map_err(|error| format!("{}: {error}", data.display()))?;
    for part in ["man", "bash-completion", "zsh", "fish"] {
        run(Command::new("cp").arg("-r").arg(tree.root.join("usr/share").join(part)).arg(data), "cp")?;
    }
    let out = fs::canonicalize(&release.folder).map_err(|error| error.to_string())?;
    let tag = format!("manylinux_{}", GLIBC.replace('.', "_"));
    let mut maturin = system.tool("maturin");
    maturin.args([
        "build",
        "--zig",
        "--target",
        &release.triple(),
        "--compatibility",
        &tag,
        "--manifest-path",
    ]);
    maturin.arg("crates/kurabe/Cargo.toml").arg("--out").arg(&out).env("KURABE_COMMIT", &release.commit);
    run(&mut maturin, "maturin")?;
    let wheels = fs::read_dir(&release.folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut wheels = wheels.filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.next().ok_or_else(|| "maturin made no wheel".to_owned())
}

/// What differs between packages in the templates of `deploy/packages`.
fn template(release: &Release, name: &str, architecture: &str) -> Result<Vec<u8>, String> {
    let text = String::from_utf8_lossy(&read(&Path::new("deploy/packages").join(name))?).into_owned();
    let text = text.replace("@VERSION@", &release.version).replace("@GLIBC@", GLIBC);
    Ok(text.replace("@ARCHITECTURE@", architecture).into_bytes())
}

fn deb(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let architecture = if release.architecture == "x86_64" { "amd64" } else { "arm64" };
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
    write(&spec, &template(release, "kurabe.spec", release.architecture)?, 0o644)?;
    let from = fs::canonicalize(&tree.root).map_err(|error| error.to_string())?;
    let mut pack = Command::new("rpmbuild");
    pack.arg("-bb")
        .args(["--target", release.architecture])
        .arg("--define")
        .arg(format!("_topdir {}", top.display()));
    pack.arg("--define").arg(format!("tree {}", from.display())).arg(&spec);
    run(&mut pack, "rpmbuild")?;
    let name = format!("kurabe-{}-1.{}.rpm", release.version, release.architecture);
    let file = release.folder.join(&name);
    let built = top.join("RPMS").join(release.architecture).join(&name);
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
