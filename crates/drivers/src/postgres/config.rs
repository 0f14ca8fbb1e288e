//! Connection parameters of PostgreSQL, from the URL, libpq's environment variables and its password file.

use super::passfile;
use crate::account;
use crate::charset::Charset;
use crate::prelude::*;
use crate::wire::{Place, tls};
use std::path::{Path, PathBuf};

/// Connection parameters. Its `Debug` omits the password.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) place: Place,
    pub(crate) user: String,
    pub(crate) password: Option<Secret>,
    pub(crate) database: String,
    pub(crate) tls: tls::Mode,
    pub(crate) charset: Charset,
    /// Settings of the session, as `-c name=value` (libpq's `options`).
    pub(crate) options: Option<String>,
    /// The schemas in which tables are searched for; `None`: the default of the server, the database or the role.
    pub(crate) search_path: Option<String>,
    /// The session's `synchronous_commit`; `None`: the default of the server, the database or the role.
    pub(crate) synchronous_commit: Option<&'static str>,
    /// Hint for a missing password: why the password file was ignored.
    pub(crate) password_hint: Option<String>,
}

impl Config {
    /// Reads the URL. Missing values come from `PGUSER`, `PGPASSWORD`, `PGHOST`, `PGPORT`, `PGDATABASE`, the `PGSSL…`
    /// variables, the password file and the name of the current OS user, as in PostgreSQL's own programs. `PGOPTIONS`
    /// is not read: settings that affect results must be in the target.
    pub(crate) fn from_url(url: &TargetUrl) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut config = Self::new(url, &variable, || account::name(&variable))?;
        if config.password.is_none() {
            let (password, hint) = passfile::of_this_user(&config, &variable);
            config.password = password;
            config.password_hint = hint;
        }
        Ok(config)
    }

    fn new(
        url: &TargetUrl,
        variable: &dyn Fn(&str) -> Option<String>,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<Self> {
        let charset = Charset::from_url(url)?;
        let user = url.user.clone().or_else(|| variable("PGUSER")).or_else(account);
        let user = user.ok_or_else(|| url.wrong("no user is given").hint("postgres://user@host/database"))?;
        let path = Some(url.path.clone()).filter(|path| !path.is_empty());
        let database = path.or_else(|| variable("PGDATABASE")).unwrap_or_else(|| user.clone());
        let [options, search_path] =
            ["options", "search_path"].map(|name| url.option(name).map(ToOwned::to_owned));
        let texts = [Some(&user), Some(&database), options.as_ref(), search_path.as_ref()];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            return Err(url.wrong("a name or a setting contains a zero byte"));
        }
        let password = url.password.clone().or_else(|| variable("PGPASSWORD").map(Secret::new));
        let place = place(url, variable)?;
        let tls = tls(url, variable, &place)?;
        tls.check(&place, url)?;
        Ok(Self {
            place,
            user,
            password,
            database,
            tls,
            charset,
            options,
            search_path,
            synchronous_commit: None,
            password_hint: None,
        })
    }
}

fn place(url: &TargetUrl, variable: &dyn Fn(&str) -> Option<String>) -> Result<Place> {
    let port = match (url.port, variable("PGPORT")) {
        (Some(port), _) => port,
        (None, None) => 5432,
        (None, Some(text)) => {
            text.parse().map_err(|_| Error::usage("PGPORT is not a number from 1 to 65535"))?
        }
    };
    let option = |name: &str| url.option(name).map(ToOwned::to_owned);
    let named = option("socket").or_else(|| option("host")).or_else(|| url.host.clone());
    let host = named.or_else(|| variable("PGHOST")).unwrap_or_else(|| "localhost".to_owned());
    if !host.starts_with('/') {
        if url.option("socket").is_some() {
            return Err(url.wrong("socket= requires an absolute path"));
        }
        return Ok(Place::Tcp { host, port });
    }
    // libpq takes the folder; the path of the socket itself is also accepted.
    let path = PathBuf::from(host);
    let is_socket = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".s.PGSQL."));
    Ok(Place::Unix(if is_socket { path } else { path.join(format!(".s.PGSQL.{port}")) }))
}

const SSL: [(&str, &str); 4] = [
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
];

/// Reads the TLS mode from Kurabe's options, else from libpq's parameters, else from libpq's variables. The variables
/// do not apply to a Unix socket.
fn tls(url: &TargetUrl, variable: &dyn Fn(&str) -> Option<String>, place: &Place) -> Result<tls::Mode> {
    let own = ["tls", "ca", "cert", "key"].into_iter().find(|name| url.option(name).is_some());
    let libpq = SSL.iter().find(|(name, _)| url.option(name).is_some());
    if let (Some(own), Some((libpq, _))) = (own, libpq) {
        return Err(url.wrong(format!("{own}= and {libpq}= both set TLS")).hint("remove one"));
    }
    let [mode, roots, certificate, key] = match libpq {
        Some(_) => SSL.map(|(name, _)| url.option(name).map(ToOwned::to_owned)),
        None if own.is_some() || matches!(place, Place::Unix(_)) => return tls::Mode::from_url(url, false),
        None => SSL.map(|(_, name)| variable(name)),
    };
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
                .hint("use sslmode=require, verify-ca, verify-full or disable, or tls="));
        }
        Some(other) => {
            return Err(url
                .wrong(format!("sslmode={other} is unknown"))
                .hint("one of: disable, require, verify-ca, verify-full"));
        }
    };
    let certificate = or_usual(certificate, "postgresql.crt");
    let identity = certificate.map(|file| tls::Identity::new(file, or_usual(key, "postgresql.key")));
    tls::Mode::on(tls::Wanted { check, ca, identity })
}

pub(crate) fn folder_and_port(socket: &Path) -> Option<(&Path, u16)> {
    let port = socket.file_name()?.to_str()?.strip_prefix(".s.PGSQL.")?.parse().ok()?;
    Some((socket.parent()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::tls::Check::{Authority, Host, Nothing};

    fn config(url: &str, variables: &[(&str, &str)]) -> Result<Config> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Config::new(&TargetUrl::parse(url)?, &variable, || variable("the account"))
    }

    #[test]
    fn url_overrides_environment() {
        let all = [
            ("PGUSER", "eu"),
            ("PGPASSWORD", "from-env"),
            ("PGHOST", "eh"),
            ("PGPORT", "1"),
            ("PGDATABASE", "ed"),
        ];
        let one = config("postgres://u:from-url@h:2/d", &all).unwrap();
        assert_eq!((one.user.as_str(), one.database.as_str()), ("u", "d"));
        assert_eq!(one.place, Place::Tcp { host: "h".into(), port: 2 });
        assert_eq!(one.password.as_ref().map(Secret::expose), Some("from-url"));
        assert!(!format!("{one:?}").contains("from-url"));
        let two = config("postgres://", &all).unwrap();
        assert_eq!((two.user.as_str(), two.database.as_str()), ("eu", "ed"));
        assert_eq!(two.place, Place::Tcp { host: "eh".into(), port: 1 });
        assert_eq!(two.password.as_ref().map(Secret::expose), Some("from-env"));
        let three = config("postgres://", &[("the account", "me")]).unwrap();
        assert_eq!((three.user.as_str(), three.database.as_str()), ("me", "me"));
    }

    #[test]
    fn socket_is_given_as_in_libpq_or_by_its_path() {
        let path = Place::Unix("/run/pg/.s.PGSQL.5433".into());
        for url in [
            "postgres://u@:5433/d?host=/run/pg",
            "postgres://u@:5433/d?socket=/run/pg",
            "postgres://u@/d?socket=/run/pg/.s.PGSQL.5433",
            "postgres://u@%2Frun%2Fpg:5433/d",
        ] {
            assert_eq!(config(url, &[]).unwrap().place, path, "{url}");
        }
        assert_eq!(folder_and_port(Path::new("/run/pg/.s.PGSQL.5433")), Some((Path::new("/run/pg"), 5433)));
        assert_eq!(
            config("postgres://u@x/d?host=h", &[]).unwrap().place,
            Place::Tcp { host: "h".into(), port: 5432 }
        );
    }

    const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBljCCAT2gAwIBAgIUMx0ovLbMfAtYsA80dkd5LHLguJgwCgYIKoZIzj0EAwIw
IDEeMBwGA1UEAwwVS3VyYWJlIHRlc3QgYXV0aG9yaXR5MCAXDTI2MTEyMzA0NDcw
OVoYDzIxMjYxMDMwMDQ0NzA5WjAgMR4wHAYDVQQDDBVLdXJhYmUgdGVzdCBhdXRo
b3JpdHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQ5NGfCLWbLKeByWJklXqQr
Xo6rxKZ+xU7lamvHSmD9AP9C9BXqIlt1NrsLRsz1Ubo3kt1BXelXK+NMtMPw1kaL
o1MwUTAdBgNVHQ4EFgQUo1V5wxqpYTkgF1aHVufczrcMw2owHwYDVR0jBBgwFoAU
o1V5wxqpYTkgF1aHVufczrcMw2owDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQD
AgNHADBEAiBaMgFN+krblUa3IqW4uUdzufJ02olbManxGw0HWt9mRAIgdltrxTFO
BpeE1GRNvlR1aOQITUu3g8h58xNCrgbKQ68=
-----END CERTIFICATE-----
";

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

    #[test]
    fn session_settings_are_read_from_url() {
        let url = "postgres://u@h/d?search_path=shop,public&options=-c%20work_mem%3D64MB";
        let one = config(url, &[("PGOPTIONS", "-c work_mem=1MB")]).unwrap();
        assert_eq!(one.search_path.as_deref(), Some("shop,public"));
        assert_eq!(one.options.as_deref(), Some("-c work_mem=64MB"));
    }

    #[test]
    fn invalid_options_are_rejected() {
        for (url, part) in [
            ("postgres://u@h/d?charset=latin1", "charset=latin1"),
            ("postgres://u@h/d?tls=prefer", "tls=prefer"),
            ("postgres://u@h/d?sslmode=prefer", "two runs could differ"),
            ("postgres://u@h/d?sslcert=/c", "two runs could differ"),
            ("postgres://u@h/d?sslmode=on", "sslmode=on is unknown"),
            ("postgres://u@h/d?sslmode=require&tls=require", "tls= and sslmode="),
            ("postgres://u@h/d?sslmode=verify-full&sslrootcert=/nonexistent/r", "/nonexistent/r"),
            ("postgres://u@h/d?sslmode=require&sslcert=/nonexistent/c", "/nonexistent/c"),
            ("postgres://u@/d?socket=/run/pg&sslmode=require", "Unix socket"),
            ("postgres://u@h/d?key=/k", "goes with cert="),
            ("postgres://u@h/d?cert=/c&tls=off", "does not go with tls=off"),
            ("postgres://u@h/d?search_path=a%00b", "zero byte"),
            ("postgres://u@h/d?socket=relative", "absolute"),
            ("postgres://u@/d?socket=/run/pg&tls=require", "Unix socket"),
            ("postgres://h/d", "no user"),
        ] {
            let error = config(url, &[]).unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }
}
