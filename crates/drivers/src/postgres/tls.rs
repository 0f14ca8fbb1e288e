//! How the connections of PostgreSQL are encrypted, by Kurabe's options or libpq's.

use super::service::{Variable, variable_of, with_service};
use crate::environment::Environment;
use crate::prelude::*;
use crate::url::own_tls_option;
use crate::wire::{Place, tls};
use std::path::PathBuf;

/// What the URL, the service and libpq's variables say of TLS over TCP.
pub(super) fn of_url(url: &TargetUrl) -> Result<tls::Mode> {
    let environment = Environment::for_url(url);
    let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
    let variable = with_service(url, &variable)?;
    environment.check(read(url, &variable, &Place::Tcp { host: String::new(), port: 0 }))
}

/// libpq's parameters of TLS.
const SSL: [&str; 5] = ["sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl"];

/// Reads the TLS mode from Kurabe's options, else from libpq's parameters, else from libpq's variables. The variables
/// do not apply to a Unix socket.
pub(super) fn read(url: &TargetUrl, variable: Variable<'_>, place: &Place) -> Result<tls::Mode> {
    let libpq = SSL.into_iter().find(|name| url.option(name).is_some());
    let own = own_tls_option(url, libpq)?;
    let is_socket = matches!(place, Place::Unix(_));
    if libpq.is_none() && (own.is_some() || is_socket) {
        return tls::Mode::from_url(url, false);
    }
    let set = |name: &str| Some(variable_of(name)).filter(|_| !is_socket).and_then(variable);
    let [mode, roots, certificate, key, crl] =
        SSL.map(|name| url.option(name).map(ToOwned::to_owned).or_else(|| set(name)));
    // The default of each file is libpq's default location.
    let or_usual = |named: Option<String>, usual: &str| {
        let folder = || variable("HOME").map(|home| PathBuf::from(home).join(".postgresql"));
        named.map(PathBuf::from).or_else(|| Some(folder()?.join(usual)).filter(|file| file.is_file()))
    };
    // "system" selects the system's certificate authorities.
    let is_system = roots.as_deref() == Some("system");
    let ca = if is_system { None } else { or_usual(roots, "root.crt") };
    let (check, ca) = match mode.as_deref() {
        None | Some("verify-full") if is_system => (tls::Check::Host, None),
        Some(weak @ ("disable" | "allow" | "prefer" | "require" | "verify-ca")) if is_system => {
            return Err(url
                .wrong(format!("sslmode={weak} is too weak for sslrootcert=system"))
                .hint("anybody can have a certificate of these authorities; use sslmode=verify-full"));
        }
        None if libpq.is_none() => return Ok(tls::Mode::Off),
        Some("disable") => return Ok(tls::Mode::Off),
        // Like libpq, verify the certificate if there is an authority.
        Some("require") if ca.is_some() => (tls::Check::Authority, ca),
        Some("require") => (tls::Check::Nothing, None),
        Some(mode @ ("verify-ca" | "verify-full")) if ca.is_none() => {
            return Err(url
                .wrong(format!(
                    "sslmode={mode} needs an authority, and there is no file ~/.postgresql/root.crt"
                ))
                .hint(
                    "name the file with sslrootcert=FILE, or use the system's authorities: sslmode=verify-full and \
                     sslrootcert=system",
                ));
        }
        Some("verify-ca") => (tls::Check::Authority, ca),
        Some("verify-full") => (tls::Check::Host, ca),
        None | Some("allow" | "prefer") => {
            return Err(url
                .wrong("encryption is not specified, so two runs could differ in it")
                .hint("use sslmode=verify-full, verify-ca, require or disable, or tls="));
        }
        Some(other) => {
            return Err(url
                .wrong(format!("sslmode={other} is unknown"))
                .hint("one of: disable, require, verify-ca, verify-full"));
        }
    };
    let certificate = or_usual(certificate, "postgresql.crt");
    let identity = certificate.map(|file| tls::Identity::new(file, or_usual(key, "postgresql.key")));
    // As in libpq, a list of revoked certificates belongs to an authority.
    let crl = if check == tls::Check::Nothing { None } else { or_usual(crl, "root.crl") };
    tls::Mode::on(tls::Wanted { check, ca, crl, identity })
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;
    use crate::testing::AUTHORITY;
    use crate::wire::tls::Check::{Authority, Host, Nothing};

    fn config(url: &str, variables: &[(&str, &str)]) -> Result<Config> {
        Config::of_variables(url, variables).map(|mut hosts| hosts.remove(0))
    }

    #[test]
    fn tls_is_configured_by_libpq_parameters_or_variables() {
        let folder = tempfile::tempdir().unwrap();
        let usual = folder.path().join(".postgresql");
        std::fs::create_dir(&usual).unwrap();
        std::fs::write(usual.join("root.crt"), AUTHORITY).unwrap();
        let home = folder.path().to_str().unwrap();
        let root = usual.join("root.crt");
        let root = root.to_str().unwrap();
        let check = |options: &str, variables: &[(&str, &str)]| {
            let all = [variables, &[("HOME", home)]].concat();
            match config(&format!("postgres://u@h/d{options}"), &all).unwrap().tls {
                tls::Mode::Off => None,
                tls::Mode::On { wanted, .. } => Some((wanted.check, wanted.ca.is_some())),
            }
        };
        for (mode, expected) in [
            ("disable", None),
            // As in libpq, the usual file makes it stricter.
            ("require", Some((Authority, true))),
            ("verify-ca", Some((Authority, true))),
            ("verify-full", Some((Host, true))),
        ] {
            assert_eq!(check(&format!("?sslmode={mode}"), &[]), expected, "{mode}");
            assert_eq!(check("", &[("PGSSLMODE", mode)]), expected, "{mode}");
            // The URL overrides the environment.
            assert_eq!(check("?tls=require", &[("PGSSLMODE", mode)]), Some((Nothing, false)), "{mode}");
            assert_eq!(check("?sslmode=disable", &[("PGSSLMODE", mode)]), None, "{mode}");
            assert_eq!(check("?socket=/run", &[("PGSSLMODE", mode)]), None, "{mode}");
        }
        assert_eq!(check(&format!("?sslmode=require&sslrootcert={root}"), &[]), Some((Authority, true)));
        assert_eq!(check("?sslmode=verify-full&sslrootcert=system", &[]), Some((Host, false)));
        assert_eq!(check("", &[("PGSSLROOTCERT", root)]), None);
        // Variables fill what the URL leaves open.
        let elsewhere = [("PGSSLROOTCERT", root), ("HOME", "/nonexistent")];
        for (options, expected) in [
            ("?sslmode=verify-ca", Some((Authority, true))),
            ("?sslmode=verify-full", Some((Host, true))),
            ("?sslmode=require", Some((Authority, true))),
            ("?sslmode=disable", None),
            ("?tls=require", Some((Nothing, false))),
        ] {
            assert_eq!(check(options, &elsewhere), expected, "{options}");
        }
        assert_eq!(
            check(&format!("?sslrootcert={root}"), &[("PGSSLMODE", "verify-ca")]),
            Some((Authority, true))
        );
        assert_eq!(check("", &[("PGSSLROOTCERT", "system")]), Some((Host, false)));
        assert_eq!(check("?sslrootcert=system", &[]), Some((Host, false)));
        let bare = |options: &str| config(&format!("postgres://u@h/d{options}"), &[("HOME", "/nonexistent")]);
        for mode in ["verify-ca", "verify-full"] {
            let error = bare(&format!("?sslmode={mode}")).unwrap_err().to_string();
            assert!(error.contains("~/.postgresql/root.crt") && error.contains("sslrootcert"), "{error}");
        }
        let required = bare("?sslmode=require").unwrap().tls;
        assert!(matches!(required, tls::Mode::On { wanted, .. } if wanted.check == Nothing));
        for weak in ["require", "verify-ca", "prefer"] {
            let error = bare(&format!("?sslrootcert=system&sslmode={weak}")).unwrap_err().to_string();
            assert!(error.contains("verify-full"), "{error}");
        }
        let error = config("postgres://u@h/d", &[("PGSSLMODE", "prefer")]).unwrap_err().to_string();
        assert!(error.contains("two runs could differ"), "{error}");
    }
}
