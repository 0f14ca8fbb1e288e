//! Debian's packages.

use std::path::Path;
use std::process::Command;

use crate::shell::{Root, on_path, run};

/// Installs packages without starting their services, now or at the next boot. Debian does this with a policy program,
/// which is installed temporarily unless one exists. Services of packages that were installed before are unchanged.
const INSTALL: &str = r#"
set -eu
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\n# For the time of an installation: no service is started.\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
had=' '
for package in "$@"; do
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) in
    *' installed') had="$had$package " ;;
    esac
done
apt-get -q update || echo 'apt-get update failed; trying with the lists that are there'
apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"
if command -v systemctl >/dev/null; then
    for package in "$@"; do
        case $had in
        *" $package "*) continue ;;
        esac
        case $package in
        mariadb-server) service=mariadb ;;
        openssh-server) service=ssh ;;
        nginx-light) service=nginx ;;
        libapache2-*) service=apache2 ;;
        php-fpm) service=$(cd /lib/systemd/system && echo php*-fpm.service) ;;
        *) service=$package ;;
        esac
        systemctl disable "$service" >/dev/null 2>&1 || true
    done
fi
"#;

/// Why packages cannot be installed; `None` if they can.
pub fn cannot(root: Root) -> Option<&'static str> {
    let debian = Path::new("/etc/debian_version").exists() && on_path("apt-get");
    match (debian, root) {
        (false, _) => Some("this is not a Debian-like system, so set-up installs nothing"),
        (true, Root::No) => Some("set-up is not root and sudo asks for a password, so it installs nothing"),
        _ => None,
    }
}

pub fn install(root: Root, packages: &[&str]) -> Result<(), String> {
    println!("setup: installing {}", packages.join(", "));
    let environment = [("DEBIAN_FRONTEND".to_owned(), "noninteractive".to_owned())];
    let mut command = root.command("sh", &environment);
    run(command.args(["-c", INSTALL, "install"]).args(packages), "apt-get install").map(drop)
}

/// The archive that this machine's own package sources name, for another suite of the same distribution.
pub fn mirror() -> Result<String, String> {
    let format = "$(ORIGIN)|$(LABEL)|$(COMPONENT)|$(REPO_URI)";
    let mut command = Command::new("apt-get");
    let targets = run(
        command.args(["indextargets", "--format", format, "Created-By: Packages"]),
        "apt-get indextargets",
    )?;
    let uri = debian_archive(&targets).ok_or("no package source of this machine is Debian's main archive")?;
    // A list of mirrors in a file, as in cloud images: any of them will do.
    match uri.strip_prefix("mirror+file:") {
        None => Ok(uri.to_owned()),
        Some(path) => {
            let path = path.trim_end_matches('/');
            let list = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
            let first = list
                .lines()
                .filter_map(|line| line.split_whitespace().next())
                .find(|uri| !uri.starts_with('#'));
            first.map(str::to_owned).ok_or_else(|| format!("{path} names no mirror"))
        }
    }
}

/// From lines of `origin|label|component|address`.
fn debian_archive(targets: &str) -> Option<&str> {
    targets.lines().find_map(|line| line.strip_prefix("Debian|Debian|main|"))
}

/// apt's settings for reaching the archive, for other programs: the environment of curl, wget and the like.
pub fn proxies() -> Vec<(String, String)> {
    let ask = |scheme: &str| {
        let mut command = Command::new("apt-config");
        let said =
            run(command.args(["shell", "P", &format!("Acquire::{scheme}::Proxy")]), "apt-config").ok()?;
        let proxy = said.trim().strip_prefix("P='")?.strip_suffix('\'')?;
        (proxy.contains("://")).then(|| (format!("{scheme}_proxy"), proxy.to_owned()))
    };
    ["http", "https"].into_iter().filter_map(ask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_is_distinguished_from_security_updates() {
        let targets = "Other|Other|main|http://x.test/\nDebian|Debian-Security|main|http://s.test/\n\
                       Debian|Debian|main|http://d.test/debian/\nDebian|Debian|main|http://e.test/\n";
        assert_eq!(debian_archive(targets), Some("http://d.test/debian/"));
        assert_eq!(debian_archive(""), None);
    }
}
