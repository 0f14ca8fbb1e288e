//! Apache with an interpreter within: `mod_php` and `mod_perl`. Its processes serve one connection at a time.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::engine::{Engine, Installed, Instance, Launch};
use crate::programs;
use crate::spec::Spec;
use crate::stack;

/// Where distributions install its modules.
const MODULES: [&str; 3] = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"];

/// The engine of a stack within Apache.
pub(crate) const fn engine(
    name: &'static str,
    find: fn() -> Result<Installed, String>,
    command: fn(&Instance, first: bool) -> Launch,
    check: fn(&Spec) -> Result<(), String>,
) -> Engine {
    Engine {
        // Apache started by root would want another user's name for its processes.
        refuses_root: true,
        stop_signal: Signal::TERM,
        ..stack::engine(name, find, command, check)
    }
}

/// Apache, with the version that it reports.
pub(crate) fn find() -> Result<Installed, String> {
    let program =
        programs::any("apache2").or_else(|| programs::any("httpd")).ok_or("no program `apache2`")?;
    // `Server version: Apache/2.4.62 (Debian)`
    Installed::identify(Command::new(&program).arg("-v"), program, "Apache", |line| {
        Some(line.split_once("Apache/")?.1.split_whitespace().next()?.to_owned())
    })
}

/// The newest module whose file name begins like this: `libphp8.2.so`.
pub(crate) fn module(start: &str) -> Result<PathBuf, String> {
    let entries = MODULES.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let matches = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(start) && path.extension().is_some_and(|extension| extension == "so")
    };
    let found = entries.map(|entry| entry.path()).filter(matches).max();
    found.ok_or_else(|| format!("Apache has no module {start}"))
}

/// Writes the configuration, and returns the command of Apache in the foreground.
pub(crate) fn command(instance: &Instance, configuration: &str, module: &Path) -> Launch {
    let modules = module.parent().unwrap_or_else(|| Path::new("/")).display().to_string();
    let text = configuration
        .replace("@MODULES@", &modules)
        .replace("@MODULE@", &module.display().to_string())
        .replace("@DIR@", &instance.dir.display().to_string())
        .replace("@PORT@", &instance.port.to_string())
        .replace("@WORKERS@", &stack::workers(instance).to_string())
        .replace("@AUTHORIZATION@", &stack::authorization(instance));
    // If it cannot be written, Apache does not start and reports that.
    let _ = instance.write_secret("apache.conf", &text);
    Launch::new(&instance.installed.program)
        .args(["-D", "FOREGROUND", "-d"])
        .arg(&instance.dir)
        .arg("-f")
        .arg(instance.dir.join("apache.conf"))
}
