//! The files of a package as they lie below `/usr`, from which all packages are made.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Release;
use crate::shell::{Outcome, run};

pub struct Tree {
    /// Contains `usr`.
    pub root: PathBuf,
}

pub const LICENCES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];
/// The shell, and the file that its packages of Debian and Fedora read.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/kurabe"),
    ("zsh", "usr/share/zsh/vendor-completions/_kurabe"),
    ("fish", "usr/share/fish/vendor_completions.d/kurabe.fish"),
];

impl Tree {
    /// The program describes itself: man pages and completions are what it prints.
    pub fn lay(release: &Release, program: &Path) -> Result<Self, String> {
        let tree = Self { root: release.folder.join("tree") };
        tree.put("usr/bin/kurabe", &read(program)?, 0o755)?;
        let program = tree.root.join("usr/bin/kurabe");
        let manual = tree.root.join("usr/share/man/man1");
        fs::create_dir_all(&manual).map_err(|error| format!("{}: {error}", manual.display()))?;
        // Programs of another architecture find their libraries by this variable.
        let libraries = format!("/usr/{}-linux-gnu", release.architecture);
        let program = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            run(
                command.args(arguments).env("QEMU_LD_PREFIX", &libraries),
                &format!("kurabe {}", arguments[0]),
            )
        };
        program(&["man", &manual.to_string_lossy()])?;
        for page in fs::read_dir(&manual).into_iter().flatten().flatten() {
            run(Command::new("gzip").args(["--best", "--no-name"]).arg(page.path()), "gzip")?;
        }
        for (shell, path) in COMPLETIONS {
            tree.put(path, program(&["completions", shell])?.as_bytes(), 0o644)?;
        }
        let unit =
            String::from_utf8_lossy(&read("deploy/systemd/kurabe-agent.service".as_ref())?).into_owned();
        let unit = unit.replace("/usr/local/bin/", "/usr/bin/");
        tree.put("usr/lib/systemd/system/kurabe-agent.service", unit.as_bytes(), 0o644)?;
        let licences = LICENCES.iter().map(|file| read(file.as_ref())).collect::<Result<Vec<_>, _>>()?;
        let copyright =
            [b"Licensed under Apache-2.0 or MIT, as you like.\n\n".to_vec(), licences.join(&b"\n"[..])]
                .concat();
        tree.put("usr/share/doc/kurabe/copyright", &copyright, 0o644)?;
        tree.put("usr/share/doc/kurabe/changelog.gz", &compressed(&read("CHANGELOG.md".as_ref())?)?, 0o644)?;
        Ok(tree)
    }

    fn put(&self, path: &str, content: &[u8], mode: u32) -> Outcome {
        write(&self.root.join(path), content, mode)
    }
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, content: &[u8], mode: u32) -> Outcome {
    let put = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(path, content)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    put().map_err(|error| format!("{}: {error}", path.display()))
}

pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn compressed(content: &[u8]) -> Result<Vec<u8>, String> {
    let mut gzip = Command::new("gzip");
    gzip.args(["--best", "--no-name"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut pack = || {
        let mut child = gzip.spawn()?;
        let mut input = child.stdin.take();
        let content = content.to_vec();
        let writer =
            std::thread::spawn(move || input.as_mut().map_or(Ok(()), |pipe| pipe.write_all(&content)));
        let output = child.wait_with_output()?;
        writer.join().map_err(|_| std::io::ErrorKind::BrokenPipe)??;
        Ok::<_, std::io::Error>(output.stdout)
    };
    pack().map_err(|error| format!("gzip: {error}"))
}
