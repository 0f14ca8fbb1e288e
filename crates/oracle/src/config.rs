//! Connection parameters of Oracle, from the URL and the environment.

use kurabe_core::units;
use kurabe_driver_common::environment::Environment;
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::wire::tls::install_provider;
use std::sync::OnceLock;
use std::time::Duration;

/// Kurabe's own variable, because Oracle's programs read no password from the environment.
pub(crate) const PASSWORD: &str = "KURABE_ORACLE_PASSWORD";
const WALLET_PASSWORD: &str = "KURABE_ORACLE_WALLET_PASSWORD";

/// Storage of LOB values, and how they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lob {
    /// In the row up to 3,964 bytes, and read as a value.
    InRow,
    /// Never in the row, and read as a value.
    OutOfRow,
    /// In the row up to 3,964 bytes, and read by locator: one more round trip for each value.
    Locator,
}

/// Connection parameters. Its `Debug` omits the passwords.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) user: String,
    pub(crate) password: Secret,
    /// The crate's connect string: a generated descriptor, or the URL's.
    pub(crate) connect_string: String,
    /// The address, for messages.
    pub(crate) place: String,
    pub(crate) wallet: Option<String>,
    pub(crate) wallet_password: Option<Secret>,
    pub(crate) statement_cache: usize,
    pub(crate) prefetch: u32,
    pub(crate) fetch_size: u32,
    pub(crate) lob: Lob,
    pub(crate) text_as_clob: bool,
    /// Whether a commit waits for the redo log; `None`: the server's setting.
    pub(crate) wait_for_redo: Option<bool>,
    /// Whether sessions have to be set to compare and sort text by bytes; read once.
    pub(crate) sorts_by_language: OnceLock<bool>,
}

impl Config {
    /// Reads the URL; a missing password comes from [`PASSWORD`].
    pub(crate) fn from_url(url: &TargetUrl) -> Result<Self> {
        let environment = Environment::for_url(url);
        let variable = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let config = environment.check(Self::new(url, &variable))?;
        // Parses the descriptor now, so that an invalid one is a usage error.
        config.for_crate(Duration::from_secs(1))?;
        Ok(config)
    }

    pub(crate) fn new(url: &TargetUrl, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let user = url.user.clone();
        let user = user.ok_or_else(|| url.wrong("no user is given").hint("oracle://user@host/service"))?;
        let password = url
            .password
            .clone()
            .filter(|password| !password.expose().is_empty())
            .or_else(|| variable(PASSWORD).map(Secret::new))
            .ok_or_else(|| {
                url.wrong("no password is given").hint(format!("set {PASSWORD}, or add it to the URL"))
            })?;
        let tls = match url.option("tls").unwrap_or("off") {
            "off" => false,
            "verify" => true,
            "require" => {
                return Err(url
                    .wrong("tls=require is not supported: the crate verifies every certificate")
                    .hint("use tls=verify, and wallet= for a private certificate authority"));
            }
            other => return Err(url.wrong(format!("tls={other} is unknown")).hint("off or verify")),
        };
        let lobs = [("in-row", Lob::InRow), ("out-of-row", Lob::OutOfRow), ("locator", Lob::Locator)];
        let lob = url.choice("lob", &lobs)?;
        let text_as_clob = url.choice("text", &[("varchar2", false), ("clob", true)])?;
        let number = |name: &str, default: u32| -> Result<u32> {
            let Some(text) = url.option(name) else { return Ok(default) };
            let count =
                units::parse_count(text).map_err(|e| e.context(format!("{}: {name}=", url.scheme)))?;
            u32::try_from(count)
                .ok()
                .filter(|count| *count <= 1_000_000)
                .ok_or_else(|| url.wrong(format!("{name}={text} is more than a million")))
        };
        let fetch_size = number("fetch_size", 100)?;
        if fetch_size == 0 {
            return Err(url.wrong("fetch_size=0 would fetch nothing"));
        }
        let (connect_string, place) = connect_string(url, tls)?;
        Ok(Self {
            user,
            password,
            connect_string,
            place,
            wallet: url.option("wallet").map(ToOwned::to_owned),
            wallet_password: variable(WALLET_PASSWORD).map(Secret::new),
            statement_cache: number("statement_cache", 20)? as usize,
            prefetch: number("prefetch", 100)?,
            fetch_size,
            lob,
            text_as_clob,
            wait_for_redo: None,
            sorts_by_language: OnceLock::new(),
        })
    }

    /// The crate's own configuration.
    pub(crate) fn for_crate(&self, timeout: Duration) -> Result<oracledb::Config> {
        // The crate uses rustls' default provider, which panics if two are compiled in.
        install_provider();
        let mut config = oracledb::Config::default()
            .set_credentials(&self.user, self.password.expose())
            .set_driver_name("kurabe : oracledb")
            .set_stmtcachesize(self.statement_cache)
            .set_transport_connect_timeout(Some(timeout));
        if let Some(wallet) = &self.wallet {
            config = config.set_wallet_location(wallet);
        }
        if let Some(password) = &self.wallet_password {
            config = config.set_wallet_password(password.expose());
        }
        let connect_string = self.connect_string.clone();
        super::guard::contain("reading the connect string", || config.set_connect_string(&connect_string))?
            .map_err(|error| super::errors::connecting(&error, &self.place))
    }
}

/// The connect string for the crate, and the address for messages.
fn connect_string(url: &TargetUrl, tls: bool) -> Result<(String, String)> {
    let service = Some(url.path.as_str()).filter(|path| !path.is_empty());
    if let Some(descriptor) = url.option("descriptor") {
        if url.host.is_some() || url.port.is_some() || service.is_some() || url.option("sid").is_some() {
            return Err(url
                .wrong("descriptor= cannot be combined with a host, a port, a service or sid=")
                .hint("oracle://user@?descriptor=…"));
        }
        if tls || url.option("server").is_some() {
            return Err(url
                .wrong("tls= and server= cannot be combined with descriptor=")
                .hint("set them in the descriptor"));
        }
        return Ok((descriptor.to_owned(), format!("'{descriptor}'")));
    }
    let host = url.host.as_deref().unwrap_or("localhost");
    let port = url.port.unwrap_or(1521);
    let (name, value) = match (service, url.option("sid")) {
        (Some(service), None) => ("SERVICE_NAME", service),
        (None, Some(sid)) => ("SID", sid),
        (Some(_), Some(_)) => {
            return Err(url.wrong("a service and sid= are both given").hint("remove one"));
        }
        (None, None) => {
            return Err(url.wrong("no service is given").hint("oracle://user@host/service, or ?sid=SID"));
        }
    };
    let server = match url.option("server") {
        None => String::new(),
        Some(server @ ("dedicated" | "shared" | "pooled")) => format!("(SERVER={server})"),
        Some(_) => return Err(url.wrong("server= is unknown").hint("dedicated, shared or pooled")),
    };
    for text in [host, value] {
        // Characters that would end the value in the descriptor.
        if text.is_empty()
            || text.chars().any(|c| c.is_whitespace() || c.is_control() || "()='\"\\#".contains(c))
        {
            return Err(url.wrong(
                "the host, the service or the SID has a character that is not allowed in a descriptor",
            ));
        }
    }
    let protocol = if tls { "tcps" } else { "tcp" };
    // Without RETRY_DELAY=0, the crate sleeps for a second after every failed attempt, including the last.
    let descriptor = format!(
        "(DESCRIPTION=(RETRY_COUNT=0)(RETRY_DELAY=0)(ADDRESS=(PROTOCOL={protocol})(HOST={host})(PORT={port}))\
         (CONNECT_DATA=({name}={value}){server}))"
    );
    let shown = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok((descriptor, shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, variables: &[(&str, &str)]) -> Result<Config> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let config = Config::new(&TargetUrl::parse(url)?, &variable)?;
        config.for_crate(Duration::from_secs(1))?;
        Ok(config)
    }

    #[test]
    fn url_becomes_descriptor() {
        for (url, part) in [
            ("oracle://u:p@db/shop", "(PROTOCOL=tcp)(HOST=db)(PORT=1521))(CONNECT_DATA=(SERVICE_NAME=shop))"),
            (
                "oracle://u:p@db:1522/shop.example.com?server=pooled",
                "(SERVICE_NAME=shop.example.com)(SERVER=pooled)",
            ),
            ("oracle://u:p@db?sid=XE", "(CONNECT_DATA=(SID=XE))"),
            ("oracle://u:p@[::1]/shop", "(HOST=::1)(PORT=1521)"),
            ("oracle://u:p@db:2484/shop?tls=verify", "(PROTOCOL=tcps)"),
            ("oracle://u:p@/shop", "(HOST=localhost)"),
            ("oracle://u:p@?descriptor=tcps://db:2484/shop", "tcps://db:2484/shop"),
        ] {
            let config = config(url, &[]).unwrap();
            assert!(config.connect_string.contains(part), "{url}: {}", config.connect_string);
        }
    }

    #[test]
    fn password_comes_from_url_or_environment_and_is_not_shown() {
        let environment = [(PASSWORD, "from-env"), (WALLET_PASSWORD, "of-wallet")];
        let one = config("oracle://u:from-url@h/s", &environment).unwrap();
        assert_eq!(one.password.expose(), "from-url");
        let two = config("oracle://u@h/s?wallet=/w", &environment).unwrap();
        assert_eq!(two.password.expose(), "from-env");
        for text in [format!("{one:?}"), format!("{two:?}")] {
            assert!(!text.contains("from-") && !text.contains("of-wallet"), "{text}");
        }
    }

    #[test]
    fn invalid_options_are_rejected_without_showing_the_password() {
        for (url, part) in [
            ("oracle://h/s", "no user"),
            ("oracle://u@h/s", PASSWORD),
            ("oracle://u:hunter2@h", "no service"),
            ("oracle://u:hunter2@h/s?sid=x", "remove one"),
            ("oracle://u:hunter2@h/a)(b=c", "not allowed in a descriptor"),
            ("oracle://u:hunter2@h/s?descriptor=x", "descriptor="),
            ("oracle://u:hunter2@?descriptor=(DESCRIPTION=", "descriptor"),
            ("oracle://u:hunter2@h/s?tls=require", "tls=verify"),
            ("oracle://u:hunter2@h/s?lob=inline", "lob=inline"),
            ("oracle://u:hunter2@h/s?text=char", "text=char"),
            ("oracle://u:hunter2@h/s?server=fast", "dedicated"),
            ("oracle://u:hunter2@h/s?prefetch=many", "prefetch="),
            ("oracle://u:hunter2@h/s?fetch_size=0", "fetch_size"),
        ] {
            let error = config(url, &[]).unwrap_err().to_string();
            assert!(error.contains(part) && !error.contains("hunter2"), "{url}: {error}");
        }
    }
}
