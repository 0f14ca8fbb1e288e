//! Foreign tables of `mysql_fdw`, which read MySQL or MariaDB. Source: the extension's README, "Usage".

use crate::environment::Environment;
use crate::prelude::*;
use kurabe_core::remote::Link;

/// The extension, and the name of its foreign-data wrapper.
pub(super) const NAME: &str = "mysql_fdw";
/// The schemes of the servers that it reads.
pub(super) const SCHEMES: [&str; 2] = ["mysql", "mariadb"];
const PORT: u16 = 3306;

/// The address of a MySQL or MariaDB server.
#[derive(Clone)]
pub(super) struct Address {
    host: String,
    port: u16,
    database: String,
    user: String,
    password: Option<Secret>,
}

impl Address {
    pub(super) fn of(url: &TargetUrl) -> Result<Self> {
        if url.option("socket").is_some() || crate::registry::tls(url)?.is_some() {
            let why = "a link by mysql_fdw uses TCP without TLS";
            return Err(Error::unsupported(why));
        }
        let missing =
            |what: &str| Error::unsupported(format!("mysql_fdw needs the {what} of the remote's URL"));
        let user = url.user.clone().ok_or_else(|| missing("user"))?;
        let database =
            Some(url.path.clone()).filter(|path| !path.is_empty()).ok_or_else(|| missing("database"))?;
        // The extension's client would use a Unix socket for `localhost`.
        let host =
            url.host.clone().filter(|host| host != "localhost").unwrap_or_else(|| "127.0.0.1".to_owned());
        let password = url.password.clone();
        let environment = Environment::for_url(url);
        let password =
            environment.check(Ok(password.or_else(|| environment.get("MYSQL_PWD").map(Secret::new))))?;
        Ok(Self { host, port: url.port.unwrap_or(PORT), database, user, password })
    }

    /// The options of the foreign server.
    pub(super) fn server(&self, link: &Link) -> Vec<(&'static str, String)> {
        let mut options = vec![("host", self.host.clone()), ("port", self.port.to_string())];
        options.extend(link.fetch.map(|rows| ("fetch_size", rows.to_string())));
        options
    }

    /// The options of the user mapping, with the password.
    pub(super) fn user(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![("username", self.user.clone())];
        options.extend(self.password.as_ref().map(|password| ("password", password.expose().to_owned())));
        options
    }

    /// The options of the foreign table.
    pub(super) fn table(&self, link: &Link) -> [(&'static str, String); 2] {
        [("dbname", self.database.clone()), ("table_name", link.source.clone())]
    }
}
