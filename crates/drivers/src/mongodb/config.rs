//! Conversion of a target's URL into the connection string that the `mongodb` crate parses.
//!
//! Options have MongoDB's names and meanings
//! (<https://www.mongodb.com/docs/manual/reference/connection-string-options/>).
//! Options that size the pool are accepted and ignored: Kurabe sizes it.

use crate::info::OptionInfo;
use crate::prelude::*;
use crate::wire::UNRESERVED;
use kurabe_core::compression::Compression;
use mongodb::options::{Acknowledgment, Compressor, ConnectionString, ReadPreference, Tls, WriteConcern};
use percent_encoding::utf8_percent_encode;
use std::fmt::Write as _;
use std::time::Duration;

pub(super) const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("w", "write concern: a number of members, or majority; default: the server's"),
    OptionInfo::new("journal", "true: a write is acknowledged when it is in the journal on disk"),
    OptionInfo::new("wTimeoutMS", "how long a write waits for its write concern"),
    OptionInfo::new("readConcernLevel", "local, available, majority, linearizable or snapshot"),
    OptionInfo::new("compressors", "compression of requests and answers: zstd, zlib; default: none"),
    OptionInfo::new("zlibCompressionLevel", "-1 to 9"),
    OptionInfo::new("authSource", "the database that defines the user; default: admin"),
    OptionInfo::new("authMechanism", "SCRAM-SHA-256, SCRAM-SHA-1, MONGODB-X509, PLAIN"),
    OptionInfo::new("replicaSet", "the replica set's name"),
    OptionInfo::new("directConnection", "true: connect to this member of a replica set only"),
    OptionInfo::new("tls", "true: encrypted, certificate checked"),
    OptionInfo::new("ssl", "the old name of tls"),
    OptionInfo::file("tlsCAFile", "file of certificates (PEM) to trust; default: the system's store"),
    OptionInfo::file("tlsCertificateKeyFile", "the client's certificate and key (PEM)"),
    OptionInfo::new("tlsAllowInvalidCertificates", "true: the certificate is not checked"),
    OptionInfo::new("tlsInsecure", "as tlsAllowInvalidCertificates"),
    OptionInfo::file("socket", "path of the server's Unix socket, instead of TCP"),
    OptionInfo::new("connectTimeoutMS", "for one attempt to connect; default: 10 s"),
    OptionInfo::new("serverSelectionTimeoutMS", "until a server is found; default: 2 s"),
    OptionInfo::new("appName", "how the server's log names this client; default: kurabe"),
    OptionInfo::new("srvServiceName", "service name of the DNS records, with mongodb+srv:; default: mongodb"),
    OptionInfo::new("srvMaxHosts", "maximum number of hosts from the DNS records, with mongodb+srv:"),
    OptionInfo::new("readPreference", "members that serve reads: primary (default), secondary, nearest …"),
    OptionInfo::new("readPreferenceTags", "tags of the members that serve reads: dc:tokyo,rack:1"),
    OptionInfo::new("maxStalenessSeconds", "maximum replication lag of a secondary that serves reads"),
    OptionInfo::new("retryWrites", "accepted and ignored: Kurabe sends each request once"),
    OptionInfo::new("retryReads", "accepted and ignored: Kurabe sends each request once"),
    OptionInfo::new("maxPoolSize", POOL),
    OptionInfo::new("minPoolSize", POOL),
    OptionInfo::new("maxIdleTimeMS", POOL),
    OptionInfo::new("maxConnecting", POOL),
    OptionInfo::new("waitQueueTimeoutMS", POOL),
];

const POOL: &str = "accepted and ignored: each client has its own connection, unless --pool is set";

const DATABASE: &str = "kurabe";

/// Default server selection timeout. The crate's default of 30 s suits failovers, not a wrong port.
const SELECTION: Duration = Duration::from_secs(2);

/// Connection settings. The `Debug` output contains no password.
#[derive(Clone, Debug)]
pub(super) struct Config {
    /// The connection string, including the password.
    string: Secret,
    password: Secret,
    pub(super) database: String,
    /// Hosts and ports, for messages.
    pub(super) place: String,
    pub(super) transport: &'static str,
    /// The write concern. A part that is `None` is left to the server's default.
    pub(super) writes: WriteConcern,
    pub(super) reads: Option<String>,
    /// Read preference outside transactions: the URL's value and the parsed one; `None` means the primary.
    pub(super) preference: Option<(String, ReadPreference)>,
    /// `maxPoolSize` of the URL, which is not used.
    pub(super) pool_size: Option<u32>,
    pub(super) compressors: Option<String>,
}

impl Config {
    pub(super) fn from_url(url: &TargetUrl) -> Result<Self> {
        let hosts = hosts(url)?;
        let string = string(url, &hosts);
        let password = url.password.clone().unwrap_or_default();
        let parsed = ConnectionString::parse(&string)
            .map_err(|error| url.wrong(without(&password, &error.kind.to_string())))?;
        // The crate would send an unknown level to the server as it is, and each read would fail.
        let reads = url.option("readConcernLevel").map(ToOwned::to_owned);
        let levels = ["local", "available", "majority", "linearizable", "snapshot"];
        if let Some(level) = reads.as_deref().filter(|level| !levels.contains(level)) {
            return Err(url.wrong(format!("readConcernLevel={level} is unknown")).hint(levels.join(", ")));
        }
        let writes = parsed.write_concern.unwrap_or_default();
        match &writes.w {
            Some(Acknowledgment::Nodes(0)) => {
                let message = "w=0 requests unacknowledged writes, which the mongodb crate cannot send";
                return Err(
                    Error::unsupported(format!("mongodb: {message}")).hint("use w=1 or more, or majority")
                );
            }
            None | Some(Acknowledgment::Nodes(_) | Acknowledgment::Majority | Acknowledgment::Custom(_)) => {}
            Some(_) => return Err(url.wrong("this kind of w is unknown")),
        }
        if parsed.max_pool_size == Some(0) {
            return Err(url.wrong("maxPoolSize must be at least 1"));
        }
        let tls = matches!(parsed.tls, Some(Tls::Enabled(_))) || url.scheme == "mongodb+srv";
        let encrypted = tls && !matches!(parsed.tls, Some(Tls::Disabled));
        Ok(Self {
            transport: match (hosts.starts_with("%2F"), encrypted) {
                (true, _) => "Unix socket",
                (false, true) => "TCP with TLS",
                (false, false) => "TCP",
            },
            string: Secret::new(string),
            password,
            database: if url.path.is_empty() { DATABASE.to_owned() } else { url.path.clone() },
            place: hosts.replace("%2F", "/").replace("%20", " "),
            writes,
            reads,
            preference: url
                .option("readPreference")
                .map(ToOwned::to_owned)
                .zip(parsed.read_preference)
                .filter(|(_, preference)| *preference != ReadPreference::Primary),
            pool_size: parsed.max_pool_size,
            compressors: url.option("compressors").map(ToOwned::to_owned),
        })
    }

    /// The client options, without the event handlers.
    ///
    /// # Errors
    /// Errors of the crate, which may query DNS here.
    pub(super) async fn options(
        &self,
        compression: Compression,
    ) -> mongodb::error::Result<mongodb::options::ClientOptions> {
        let mut options = mongodb::options::ClientOptions::parse(self.string.expose()).await?;
        match compression {
            // As the URL says.
            Compression::Off => {}
            Compression::Zlib => options.compressors = Some(vec![Compressor::Zlib { level: None }]),
            Compression::Zstd => options.compressors = Some(vec![Compressor::Zstd { level: None }]),
        }
        if let Some(Tls::Enabled(tls)) = &mut options.tls
            && tls.ca_file_path.is_none()
        {
            // The crate would use a list of its own.
            tls.ca_file_path = crate::wire::tls::system_file();
        }
        options.app_name.get_or_insert_with(|| "kurabe".to_owned());
        options.server_selection_timeout.get_or_insert(SELECTION);
        // One connection for each session, opened without delay and kept open.
        options.max_pool_size = Some(u32::MAX);
        options.min_pool_size = Some(0);
        options.max_idle_time = None;
        options.max_connecting = Some(1_024);
        // Polling needs one monitoring connection; streaming needs two.
        options.server_monitoring_mode = Some(mongodb::options::ServerMonitoringMode::Poll);
        // Each request contains its concerns, and each read its read preference.
        options.write_concern = None;
        options.read_concern = None;
        options.selection_criteria = None;
        Ok(options)
    }

    /// Whether the URL names exactly one server, so that its refusal is final.
    pub(super) fn names_one_server(&self) -> bool {
        !self.place.contains(',') && !self.string.expose().starts_with("mongodb+srv:")
    }

    /// The server's endpoint, if the URL names exactly one server.
    pub(super) fn endpoint(&self) -> Endpoint {
        if !self.names_one_server() {
            return Endpoint::Elsewhere("it is several servers, or found by DNS".to_owned());
        }
        if self.place.starts_with('/') {
            return Endpoint::Unix(self.place.clone().into());
        }
        let named = self.place.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let Some((host, port)) = named else {
            return Endpoint::Elsewhere(format!("{} names no port", self.place));
        };
        Endpoint::Tcp { host: host.trim_start_matches('[').trim_end_matches(']').to_owned(), port }
    }

    /// Replaces the password in a text of the crate by `***`.
    pub(super) fn without_password(&self, text: &str) -> String {
        without(&self.password, text)
    }
}

fn without(password: &Secret, text: &str) -> String {
    if password.expose().is_empty() { text.to_owned() } else { text.replace(password.expose(), "***") }
}

/// The hosts part of the connection string, with paths of Unix sockets percent-encoded.
fn hosts(url: &TargetUrl) -> Result<String> {
    let host = match (url.option("socket"), url.host.as_deref()) {
        (Some(path), _) if !path.to_ascii_lowercase().ends_with(".sock") => {
            return Err(Error::usage(
                "mongodb: the mongodb crate takes a Unix socket whose name ends with .sock",
            )
            .hint("as mongod names its own: /tmp/mongodb-27017.sock"));
        }
        (Some(path), _) => return Ok(escaped(path)),
        (None, Some(path)) if path.starts_with('/') => return Ok(escaped(path)),
        (None, host) => host.unwrap_or("127.0.0.1"),
    };
    let host = if host.contains(':') && !host.contains(',') { format!("[{host}]") } else { host.to_owned() };
    Ok(match url.port {
        Some(port) => format!("{host}:{port}"),
        None if url.scheme == "mongodb+srv" || host.contains(',') => host,
        None => format!("{host}:27017"),
    })
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

fn string(url: &TargetUrl, hosts: &str) -> String {
    let mut string = format!("{}://", url.scheme);
    if let Some(user) = &url.user {
        string += &escaped(user);
        if let Some(password) = &url.password {
            let _ = write!(string, ":{}", escaped(password.expose()));
        }
        string.push('@');
    }
    let _ = write!(string, "{hosts}/{}", escaped(&url.path));
    let mut sign = '?';
    for (name, value) in url.options.iter().filter(|(name, _)| *name != "socket") {
        let _ = write!(string, "{sign}{name}={}", escaped(value));
        sign = '&';
    }
    string
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Result<Config> {
        Config::from_url(&TargetUrl::parse(url).unwrap())
    }

    fn refused(url: &str) -> String {
        config(url).unwrap_err().to_string()
    }

    #[test]
    fn common_connection_string_options_are_parsed() {
        let config = config(
            "mongodb://app:p%40ss@a.example:27018,b.example/shop?replicaSet=rs&w=majority&journal=true\
             &readConcernLevel=majority&compressors=zstd,zlib&authSource=admin&retryWrites=true&tls=true",
        )
        .unwrap();
        assert_eq!(config.place, "a.example:27018,b.example");
        assert_eq!((config.database.as_str(), config.transport), ("shop", "TCP with TLS"));
        assert_eq!(
            (config.writes.w.clone(), config.writes.journal),
            (Some(Acknowledgment::Majority), Some(true))
        );
        assert_eq!(config.reads.as_deref(), Some("majority"));
        assert!(!format!("{config:?}").contains("p@ss") && !format!("{config:?}").contains("p%40ss"));
    }

    #[test]
    fn defaults_are_localhost_and_database_kurabe() {
        let config = config("mongodb:").unwrap();
        assert_eq!((config.place.as_str(), config.database.as_str()), ("127.0.0.1:27017", "kurabe"));
        assert_eq!((config.transport, config.writes, config.reads), ("TCP", WriteConcern::default(), None));
    }

    #[test]
    fn one_server_has_an_endpoint_and_several_have_none() {
        let endpoint = |url: &str| config(url).unwrap().endpoint();
        let tcp = |host: &str, port| Endpoint::Tcp { host: host.to_owned(), port };
        assert_eq!(endpoint("mongodb:"), tcp("127.0.0.1", 27_017));
        assert_eq!(endpoint("mongodb://[::1]:5/db"), tcp("::1", 5));
        assert_eq!(
            endpoint("mongodb://%2Ftmp%2Fmongodb-1.sock/db"),
            Endpoint::Unix("/tmp/mongodb-1.sock".into())
        );
        assert!(matches!(endpoint("mongodb://a.example,b.example/db"), Endpoint::Elsewhere(_)));
    }

    #[test]
    fn a_unix_socket_is_named_as_host_or_as_option() {
        for url in
            ["mongodb://%2Ftmp%2Fmongodb-1.sock/db", "mongodb://localhost/db?socket=/tmp/mongodb-1.sock"]
        {
            let config = config(url).unwrap();
            assert_eq!(
                (config.transport, config.place.as_str()),
                ("Unix socket", "/tmp/mongodb-1.sock"),
                "{url}"
            );
        }
        assert!(refused("mongodb:?socket=/tmp/mongo").contains("ends with .sock"));
    }

    #[test]
    fn srv_url_uses_dns_and_tls() {
        let config =
            config("mongodb+srv://app:x@cluster.example.net/shop?retryWrites=true&w=majority").unwrap();
        assert_eq!((config.place.as_str(), config.transport), ("cluster.example.net", "TCP with TLS"));
        assert!(!config.names_one_server());
    }

    #[test]
    fn read_preference_is_used_and_pool_sizes_are_ignored() {
        let all = config(
            "mongodb://a,b/shop?readPreference=secondaryPreferred&readPreferenceTags=dc:tokyo&maxStalenessSeconds=90\
             &maxPoolSize=10&minPoolSize=2&maxIdleTimeMS=1000&waitQueueTimeoutMS=500&maxConnecting=3",
        )
        .unwrap();
        let (word, preference) = all.preference.unwrap();
        let preference = format!("{preference:?}");
        assert!(preference.contains("SecondaryPreferred") && preference.contains("tokyo"), "{preference}");
        assert_eq!((word.as_str(), all.pool_size), ("secondaryPreferred", Some(10)));
        assert!(config("mongodb://a/shop?readPreference=primary").unwrap().preference.is_none());
    }

    #[test]
    fn invalid_options_are_reported_without_the_password() {
        assert!(refused("mongodb://h/db?readPreference=slave").contains("slave"));
        assert!(refused("mongodb://h/db?maxPoolSize=0").contains("maxPoolSize"));
        assert!(refused("mongodb://h/db?w=0").contains("unacknowledged"));
        assert!(refused("mongodb://h/db?readConcernLevel=lokal").contains("lokal is unknown"));
        for url in ["mongodb://bob:hunter2@h/db?journal=yes", "mongodb+srv://bob:hunter2@h:27017/db"] {
            let message = refused(url);
            assert!(message.starts_with("mongodb") && !message.contains("hunter2"), "{message}");
        }
    }
}
