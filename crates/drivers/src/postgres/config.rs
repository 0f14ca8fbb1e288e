//! Connection parameters of PostgreSQL, from the URL, libpq's environment variables and its password file.

use super::connections::FOREIGN;
use super::passfile;
use super::service::{Variable, variable_of, with_service};
use crate::account;
use crate::charset::Charset;
use crate::environment::Environment;
use crate::prelude::*;
use crate::url::host_and_port;
use crate::wire::{Place, tls};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// The name of the host, for its certificate; `None` if only its address is given (`hostaddr`).
    pub(crate) host: Option<String>,
    /// What the server's list of sessions calls ours.
    pub(crate) application_name: String,
    /// The time limit of connecting; `None`: that of the run.
    pub(crate) connect_timeout: Option<Duration>,
    /// Which of several servers is wanted.
    pub(crate) attributes: Attributes,
    pub(crate) channel_binding: ChannelBinding,
}

/// libpq's `target_session_attrs`: which server is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Attributes {
    /// The first that accepts the connection.
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    /// A standby if there is one, else any.
    PreferStandby,
}

/// Each value of `target_session_attrs`.
pub(crate) const ATTRIBUTES: [(&str, Attributes); 6] = [
    ("any", Attributes::Any),
    ("read-write", Attributes::ReadWrite),
    ("read-only", Attributes::ReadOnly),
    ("primary", Attributes::Primary),
    ("standby", Attributes::Standby),
    ("prefer-standby", Attributes::PreferStandby),
];

/// Whether SCRAM is bound to the TLS connection (libpq's `channel_binding`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelBinding {
    /// If the server offers it.
    Prefer,
    Disable,
    Require,
}

const CHANNEL_BINDING: [(&str, ChannelBinding); 3] = [
    ("prefer", ChannelBinding::Prefer),
    ("disable", ChannelBinding::Disable),
    ("require", ChannelBinding::Require),
];

type Stricter = (&'static str, &'static str, fn(&Config) -> bool);

/// Variables by which libpq is stricter than this driver can be, their parameters, and the connections for which they count. They
/// are refused, and not left unread, unless the parameter's value means nothing here.
const STRICTER: [Stricter; 7] = [
    ("PGREQUIREPEER", "requirepeer", |config| matches!(config.place, Place::Unix(_))),
    ("PGREQUIREAUTH", "require_auth", |_| true),
    ("PGGSSENCMODE", "gssencmode", |config| matches!(config.place, Place::Tcp { .. })),
    ("PGREQUIRESSL", "requiressl", |config| {
        matches!(config.place, Place::Tcp { .. }) && !config.is_encrypted()
    }),
    ("PGSSLCRLDIR", "sslcrldir", Config::is_encrypted),
    ("PGSSLCERTMODE", "sslcertmode", Config::is_encrypted),
    ("PGSSLMINPROTOCOLVERSION", "ssl_min_protocol_version", Config::is_encrypted),
];

impl Config {
    fn is_encrypted(&self) -> bool {
        !matches!(self.tls, tls::Mode::Off)
    }

    /// Reads the URL: one configuration for each of its hosts. Missing values come from the service that it or `PGSERVICE`
    /// names, from libpq's variables, the password file and the name of the current OS user, as in PostgreSQL's own
    /// programs. `PGOPTIONS` is not read: settings that affect results must be in the target.
    pub(crate) fn from_url(url: &TargetUrl) -> Result<Vec<Self>> {
        let environment = Environment::for_url(url);
        let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        environment.check(Self::read(url, &variable, || account::name(&variable)))
    }

    fn read(
        url: &TargetUrl,
        environment: Variable<'_>,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<Vec<Self>> {
        let variable = with_service(url, environment)?;
        let mut hosts = Self::new(url, &variable, account)?;
        let is_named = |name: &str| {
            name == "PGREQUIRESSL" && ["sslmode", "tls"].iter().any(|own| url.option(own).is_some())
        };
        for (name, parameter, counts) in STRICTER {
            let is_usual = |value: &str| {
                matches!(ForeignOption::find(FOREIGN, parameter, value), Some(Meaning::Nothing(_)))
            };
            let value = variable(name).filter(|value| !is_usual(value) && !is_named(name));
            if value.is_some() && hosts.iter().any(counts) {
                return Err(url
                    .wrong(format!("{name} is set, and this driver cannot do what it asks for"))
                    .hint("unset it, or let the URL alone decide: environment=ignore"));
            }
        }
        for config in hosts.iter_mut().filter(|config| config.password.is_none()) {
            let file = url.option("passfile").map(ToOwned::to_owned);
            let (password, hint) = passfile::of_this_user(&config.in_passfile(), file, &variable)?;
            config.password = password;
            config.password_hint = hint;
        }
        Ok(hosts)
    }

    /// The host, the port, the database and the user by which the password file names it.
    fn in_passfile(&self) -> [String; 4] {
        let (host, port) = match &self.place {
            Place::Tcp { host, port } => (self.host.as_ref().unwrap_or(host).clone(), *port),
            // A socket in the default folder is "localhost"; in another, the folder's name.
            Place::Unix(path) => {
                let (folder, port) = folder_and_port(path).map_or_else(
                    || (String::new(), 0),
                    |(folder, port)| (folder.to_string_lossy().into(), port),
                );
                let usual = matches!(folder.as_str(), "/tmp" | "/run/postgresql" | "/var/run/postgresql");
                (if usual { "localhost".to_owned() } else { folder }, port)
            }
        };
        [host, port.to_string(), self.database.clone(), self.user.clone()]
    }

    /// The host that the server's certificate must be for.
    pub(crate) fn certified(&self) -> &str {
        match (&self.host, &self.place) {
            (Some(host), _) | (None, Place::Tcp { host, .. }) => host,
            (None, Place::Unix(_)) => "localhost",
        }
    }

    /// That of an environment with these variables, and the account named "the account".
    #[cfg(test)]
    pub(super) fn of_variables(url: &str, variables: &[(&str, &str)]) -> Result<Vec<Self>> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Self::read(&TargetUrl::parse(url)?, &variable, || variable("the account"))
    }

    fn new(
        url: &TargetUrl,
        variable: Variable<'_>,
        account: impl FnOnce() -> Option<String>,
    ) -> Result<Vec<Self>> {
        let charset = Charset::from_url(url)?;
        // As libpq names them: an option of the URL, else its variable.
        let parameter =
            |name: &str| url.option(name).map(ToOwned::to_owned).or_else(|| variable(variable_of(name)));
        let user = url.user.clone().or_else(|| parameter("user")).or_else(account);
        let user = user.ok_or_else(|| url.wrong("no user is given").hint("postgres://user@host/database"))?;
        let path = Some(url.path.clone()).filter(|path| !path.is_empty());
        let database = path.or_else(|| parameter("dbname")).unwrap_or_else(|| user.clone());
        let options = parameter("options");
        let search_path = url.option("search_path").map(ToOwned::to_owned);
        let application_name = parameter("application_name").unwrap_or_else(|| "kurabe".to_owned());
        let texts = [Some(&user), Some(&database), options.as_ref(), search_path.as_ref()];
        if texts.into_iter().flatten().chain([&application_name]).any(|text| text.contains('\0')) {
            return Err(url.wrong("a name or a setting contains a zero byte"));
        }
        let password = url.password.clone().or_else(|| variable("PGPASSWORD").map(Secret::new));
        let attributes = choice(url, "target_session_attrs", parameter("target_session_attrs"), &ATTRIBUTES)?;
        let channel_binding = choice(url, "channel_binding", parameter("channel_binding"), &CHANNEL_BINDING)?;
        let seconds = parameter("connect_timeout").map(|text| {
            let wrong = |_| url.wrong(format!("connect_timeout={text} is not a whole number of seconds"));
            text.parse().map_err(wrong)
        });
        // As in libpq, 0 sets no limit; --timeout still does.
        let connect_timeout = seconds.transpose()?.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let hosts = places(url, variable)?.into_iter().map(|(place, host)| {
            let tls = super::tls::read(url, variable, &place)?;
            tls.check(&place, url)?;
            if host.is_none() && tls.checks_host() {
                return Err(url.wrong("a certificate is checked for the name of a host").hint("add host="));
            }
            Ok(Self {
                place,
                host,
                user: user.clone(),
                password: password.clone(),
                database: database.clone(),
                tls,
                charset,
                options: options.clone(),
                search_path: search_path.clone(),
                synchronous_commit: None,
                password_hint: None,
                application_name: application_name.clone(),
                connect_timeout,
                attributes,
                channel_binding,
            })
        });
        hosts.collect()
    }
}

/// The servers that the URL, the service and libpq's variables name.
pub(super) fn servers(url: &TargetUrl) -> Result<Vec<ServerPlace>> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    servers_among(url, &variable)
}

fn servers_among(url: &TargetUrl, environment: Variable<'_>) -> Result<Vec<ServerPlace>> {
    let variable = with_service(url, environment)?;
    let named = places(url, &variable)?.into_iter();
    Ok(named.map(|(place, certified)| ServerPlace { place, certified }).collect())
}

/// The meaning of a value; the first choice without one.
fn choice<T: Copy>(url: &TargetUrl, name: &str, value: Option<String>, choices: &[(&str, T)]) -> Result<T> {
    let mut asked = TargetUrl { scheme: url.scheme.clone(), ..TargetUrl::default() };
    asked.options.extend(value.map(|value| (name.to_owned(), value)));
    asked.choice(name, choices)
}

/// Where the server listens, and the name of its host: one pair for each host that is named. `host`, `hostaddr` and `port`
/// are lists in the same order. Names and addresses are from the same place: in libpq `PGHOSTADDR` leads also those hosts
/// elsewhere that the URL names.
fn places(url: &TargetUrl, variable: Variable<'_>) -> Result<Vec<(Place, Option<String>)>> {
    let list = |text: String| text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    let option = |name: &str| url.option(name).map(ToOwned::to_owned);
    let (mut hosts, mut ports) = match url.host.clone() {
        // The hosts of a URL have their ports with them.
        Some(text) if text.contains(',') => {
            let parts = |part: String| match host_and_port(&part) {
                Some((host, port)) => (host.to_owned(), port.map(ToOwned::to_owned)),
                None => (part, None),
            };
            list(text).into_iter().map(parts).unzip()
        }
        host => (host.into_iter().collect(), vec![url.port.map(|port| port.to_string())]),
    };
    if let Some(named) = option("socket").map(|socket| vec![socket]).or_else(|| option("host").map(list)) {
        hosts = named;
    }
    let mut addresses = option("hostaddr").map(list).unwrap_or_default();
    if hosts.is_empty() && addresses.is_empty() {
        hosts = variable("PGHOST").map(list).unwrap_or_default();
        addresses = variable("PGHOSTADDR").map(list).unwrap_or_default();
    }
    if ports.iter().all(Option::is_none) {
        let given = option("port").or_else(|| variable("PGPORT")).map(list).unwrap_or_default();
        ports = given.into_iter().map(|port| Some(port).filter(|port| !port.is_empty())).collect();
    }
    let count = hosts.len().max(addresses.len()).max(1);
    if !matches!(ports.len(), 0 | 1) && ports.len() != count {
        return Err(url.wrong(format!("{} ports are given for {count} hosts", ports.len())));
    }
    if !hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len() {
        let (hosts, addresses) = (hosts.len(), addresses.len());
        return Err(url.wrong(format!("{addresses} addresses (hostaddr) are given for {hosts} hosts")));
    }
    (0..count)
        .map(|n| {
            let port = match ports.get(n).or_else(|| ports.first()).cloned().flatten() {
                None => 5432,
                Some(text) => text.parse().ok().filter(|port| *port > 0).ok_or_else(|| {
                    Error::usage(format!("the port '{text}' is not a number from 1 to 65535"))
                })?,
            };
            let host = hosts.get(n).filter(|host| !host.is_empty()).cloned();
            let address = addresses.get(n).filter(|address| !address.is_empty()).cloned();
            let place = place(url, address.or_else(|| host.clone()), port)?;
            let named = addresses.is_empty().then(|| "localhost".to_owned());
            Ok((place, host.or(named)))
        })
        .collect()
}

fn place(url: &TargetUrl, host: Option<String>, port: u16) -> Result<Place> {
    let host = host.unwrap_or_else(|| "localhost".to_owned());
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

pub(crate) fn folder_and_port(socket: &Path) -> Option<(&Path, u16)> {
    let port = socket.file_name()?.to_str()?.strip_prefix(".s.PGSQL.")?.parse().ok()?;
    Some((socket.parent()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, variables: &[(&str, &str)]) -> Result<Config> {
        Config::of_variables(url, variables).map(|mut hosts| hosts.remove(0))
    }

    #[test]
    fn several_hosts_have_their_ports_and_addresses_in_order() {
        let places = |url: &str, variables: &[(&str, &str)]| -> Vec<String> {
            let hosts = Config::of_variables(url, variables).unwrap();
            let name = |config: &Config| config.host.clone().unwrap_or_else(|| "-".to_owned());
            hosts.iter().map(|config| format!("{} {}", name(config), config.place)).collect()
        };
        assert_eq!(places("postgres://u@a:1,b,[::1]:3/d", &[]), ["a a:1", "b b:5432", "::1 [::1]:3"]);
        assert_eq!(places("postgres://u@/d?host=a,/run&port=1,2", &[]), ["a a:1", "/run /run/.s.PGSQL.2"]);
        assert_eq!(places("postgres://u@/d?host=a,b&port=7", &[]), ["a a:7", "b b:7"]);
        assert_eq!(places("postgres://u@/d", &[("PGHOST", "a,b"), ("PGPORT", "1,2")]), ["a a:1", "b b:2"]);
        assert_eq!(places("postgres://u@a/d?hostaddr=10.0.0.1", &[]), ["a 10.0.0.1:5432"]);
        assert_eq!(places("postgres://u@/d?hostaddr=10.0.0.1", &[("PGHOST", "x")]), ["- 10.0.0.1:5432"]);
        // What names a host is not led elsewhere.
        let elsewhere = [("PGHOSTADDR", "10.0.0.9")];
        for url in ["postgres://u@a/d", "postgres://u@/d?host=a"] {
            assert_eq!(places(url, &elsewhere), ["a a:5432"], "{url}");
        }
        assert_eq!(places("postgres://u@/d?socket=/run", &elsewhere), ["/run /run/.s.PGSQL.5432"]);
        assert_eq!(places("postgres://u@/d", &elsewhere), ["- 10.0.0.9:5432"]);
        assert_eq!(places("postgres://u@/d", &[elsewhere[0], ("PGHOST", "b")]), ["b 10.0.0.9:5432"]);
        for (url, part) in [
            ("postgres://u@/d?host=a,b&port=1,2,3", "3 ports are given for 2 hosts"),
            ("postgres://u@/d?host=a&hostaddr=1.1.1.1,2.2.2.2", "2 addresses"),
            ("postgres://u@a:x,b/d", "the port 'x'"),
            ("postgres://u@a/d?target_session_attrs=master", "target_session_attrs=master is unknown"),
            ("postgres://u@/d?hostaddr=1.1.1.1&tls=verify", "add host="),
            ("postgres://u@a/d?connect_timeout=2s", "connect_timeout=2s"),
            ("postgres://u@a/d?channel_binding=on", "channel_binding=on"),
        ] {
            let error = Config::of_variables(url, &[]).unwrap_err().to_string();
            assert!(error.contains(part), "{url}: {error}");
        }
    }

    #[test]
    fn service_is_between_url_and_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("services");
        let lines = "[shop]\nhost=sh\nuser=su\ndbname=sd\noptions=-c work_mem=9MB\napplication_name=sa\n";
        std::fs::write(&file, lines).unwrap();
        let variables = [
            ("PGSERVICEFILE", file.to_str().unwrap()),
            ("PGUSER", "eu"),
            ("PGPASSWORD", "ep"),
            ("PGOPTIONS", "-c work_mem=1MB"),
            ("PGAPPNAME", "ea"),
            ("PGCONNECT_TIMEOUT", "7"),
        ];
        let one = config("postgres://@/ud?service=shop", &variables).unwrap();
        assert_eq!((one.user.as_str(), one.database.as_str()), ("su", "ud"));
        assert_eq!(one.place, Place::Tcp { host: "sh".into(), port: 5432 });
        assert_eq!((one.options.as_deref(), one.application_name.as_str()), (Some("-c work_mem=9MB"), "sa"));
        assert_eq!(one.password.as_ref().map(Secret::expose), Some("ep"));
        assert_eq!(one.connect_timeout, Some(Duration::from_secs(7)));
        let elsewhere = [&variables[..], &[("PGHOSTADDR", "10.0.0.9")]].concat();
        let place = config("postgres://@/ud?service=shop", &elsewhere).unwrap().place;
        assert_eq!(place, Place::Tcp { host: "sh".into(), port: 5432 });
        let by_variable = [&variables[..], &[("PGSERVICE", "shop")]].concat();
        assert_eq!(config("postgres://uu@uh", &by_variable).unwrap().user, "uu");
        let error = config("postgres://h/d?service=none", &variables).unwrap_err().to_string();
        assert!(error.contains("no service 'none'") && error.contains("services"), "{error}");
        assert_eq!(config("postgres://h/d", &variables).unwrap().application_name, "ea");
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
