//! Settings of a target's URL.
//!
//! Options have MongoDB's names and meanings
//! (<https://www.mongodb.com/docs/manual/reference/connection-string-options/>).
//! Options that size the pool are accepted and ignored: each client has its own connection.

use super::concerns::{ReadPreference, WriteConcern};
use super::credential::Credential;
use crate::compression::Method;
use crate::info::OptionInfo;
use crate::prelude::*;
use crate::url::{number, place, truth};
use crate::wire::Place;
use crate::wire::tls::{self, Check, Identity, Wanted};
use kurabe_core::compression::Compression;
use std::fmt::Write as _;
use std::time::Duration;

pub(super) const OPTIONS: &[OptionInfo] = &[
    OptionInfo::new("w", "write concern: a number of members, or majority; default: the server's"),
    OptionInfo::new("journal", "true: a write is acknowledged when it is in the journal on disk"),
    OptionInfo::new("wTimeoutMS", "how long a write waits for its write concern"),
    OptionInfo::new("readConcernLevel", "local, available, majority, linearizable or snapshot"),
    OptionInfo::new("compressors", "compression of requests and answers: zstd, zlib; default: none"),
    OptionInfo::new("zlibCompressionLevel", "-1 to 9"),
    OptionInfo::new("authSource", "the database that defines the user; default: that of the URL, or admin"),
    OptionInfo::new("authMechanism", "SCRAM-SHA-256, SCRAM-SHA-1, MONGODB-X509, PLAIN"),
    OptionInfo::new("replicaSet", "the replica set's name"),
    OptionInfo::new("directConnection", "true: connect to this member of a replica set only"),
    OptionInfo::new("tls", "true: encrypted, certificate checked"),
    OptionInfo::new("ssl", "the old name of tls"),
    OptionInfo::file("tlsCAFile", "file of certificates (PEM) to trust; default: the system's store"),
    OptionInfo::file("tlsCertificateKeyFile", "file of the client's certificate and key (PEM)"),
    OptionInfo::new("tlsAllowInvalidCertificates", "true: the certificate is not checked"),
    OptionInfo::new("tlsAllowInvalidHostnames", "true: the certificate may be for another host"),
    OptionInfo::new("tlsInsecure", "as tlsAllowInvalidCertificates"),
    OptionInfo::file("socket", "path of the server's Unix socket, instead of TCP"),
    OptionInfo::new("connectTimeoutMS", "for one attempt to connect; default: 10 s"),
    OptionInfo::new("serverSelectionTimeoutMS", "until a server is found; default: 2 s"),
    OptionInfo::new("appName", "how the server's log names this client; default: kurabe"),
    OptionInfo::new("readPreference", "members that serve reads: primary (default), secondary, nearest …"),
    OptionInfo::new("readPreferenceTags", "tags of the members that serve reads: dc:tokyo,rack:1"),
    OptionInfo::new("maxStalenessSeconds", "maximum replication lag of a secondary that serves reads"),
    OptionInfo::new(
        "retryWrites",
        "true: writes carry a number by which the server executes them once, and are sent again once if the primary \
         is lost; default: false",
    ),
    OptionInfo::new("retryReads", "accepted and ignored: Kurabe sends each request once"),
    OptionInfo::new("maxPoolSize", POOL),
    OptionInfo::new("minPoolSize", POOL),
    OptionInfo::new("maxIdleTimeMS", POOL),
    OptionInfo::new("maxConnecting", POOL),
    OptionInfo::new("waitQueueTimeoutMS", POOL),
];

const POOL: &str = "accepted and ignored: each client has its own connection, unless --pool is set";

const PORT: u16 = 27_017;

const DATABASE: &str = "kurabe";

/// Default server selection timeout. That of MongoDB's drivers, 30 s, suits failovers, not a wrong port.
const SELECTION: Duration = Duration::from_secs(2);

/// Default timeout of one attempt to connect.
const CONNECT: Duration = Duration::from_secs(10);

/// Connection settings. The `Debug` output contains no password.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) hosts: Vec<Place>,
    /// Whether only the member that is named is used, whatever it is.
    pub(super) is_direct: bool,
    pub(super) set: Option<String>,
    pub(super) credential: Option<Credential>,
    pub(super) database: String,
    pub(super) tls: tls::Mode,
    pub(super) writes: WriteConcern,
    pub(super) reads: Option<String>,
    /// Read preference outside transactions; `None` means the primary.
    pub(super) preference: Option<ReadPreference>,
    pub(super) retries_writes: bool,
    /// `maxPoolSize` of the URL, which is not used.
    pub(super) pool_size: Option<u32>,
    /// The compression that the URL asks for, the preferred first.
    pub(super) compressors: Vec<Method>,
    pub(super) connect_timeout: Duration,
    pub(super) selection_timeout: Duration,
    pub(super) application: String,
}

impl Config {
    pub(super) fn from_url(url: &TargetUrl) -> Result<Self> {
        let hosts = hosts(url)?;
        let tls = tls(url)?;
        for place in &hosts {
            tls.check(place, url)?;
        }
        let set = url.option("replicaSet").map(ToOwned::to_owned);
        if set.as_deref() == Some("") {
            return Err(url.wrong("replicaSet= names no replica set"));
        }
        let is_direct = truth(url, "directConnection")?.unwrap_or(false);
        if is_direct && hosts.len() > 1 {
            return Err(url.wrong("directConnection=true is for one host"));
        }
        let reads = url.option("readConcernLevel").map(ToOwned::to_owned);
        let levels = ["local", "available", "majority", "linearizable", "snapshot"];
        if let Some(level) = reads.as_deref().filter(|level| !levels.contains(level)) {
            return Err(url.wrong(format!("readConcernLevel={level} is unknown")).hint(levels.join(", ")));
        }
        let pool_size = number(url, "maxPoolSize")?;
        if pool_size == Some(0) {
            return Err(url.wrong("maxPoolSize must be at least 1"));
        }
        for ignored in ["minPoolSize", "maxIdleTimeMS", "maxConnecting", "waitQueueTimeoutMS"] {
            number::<u32>(url, ignored)?;
        }
        truth(url, "retryReads")?;
        let timeout = |name: &str, default: Duration| -> Result<Duration> {
            // 0 is no timeout; then that of the run is the only one.
            Ok(match number(url, name)? {
                None => default,
                Some(0) => Duration::MAX,
                Some(milliseconds) => Duration::from_millis(milliseconds),
            })
        };
        Ok(Self {
            is_direct,
            set,
            credential: Credential::from_url(url, &tls)?,
            database: if url.path.is_empty() { DATABASE.to_owned() } else { url.path.clone() },
            writes: WriteConcern::from_url(url)?,
            reads,
            preference: ReadPreference::from_url(url)?,
            retries_writes: truth(url, "retryWrites")?.unwrap_or(false),
            pool_size,
            compressors: compressors(url)?,
            connect_timeout: timeout("connectTimeoutMS", CONNECT)?,
            selection_timeout: timeout("serverSelectionTimeoutMS", SELECTION)?,
            application: url.option("appName").unwrap_or("kurabe").to_owned(),
            hosts,
            tls,
        })
    }

    /// The compression to offer, the preferred first.
    pub(super) fn offered(&self, compression: Compression) -> Vec<Method> {
        match compression {
            Compression::Off => self.compressors.clone(),
            Compression::Zlib => vec![Method::Zlib(Method::ZLIB_LEVEL)],
            Compression::Zstd => vec![Method::Zstd],
        }
    }

    /// The compression that the URL asks for.
    pub(super) fn compressor_names(&self) -> Option<String> {
        let names: Vec<&str> = self.compressors.iter().map(|method| method.name()).collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    /// Hosts and ports, for messages.
    pub(super) fn place(&self) -> String {
        let mut text = String::new();
        for (n, place) in self.hosts.iter().enumerate() {
            let _ = write!(text, "{}{place}", if n == 0 { "" } else { "," });
        }
        text
    }

    /// The server's endpoint, if the URL names exactly one server.
    pub(super) fn endpoint(&self) -> Endpoint {
        match &*self.hosts {
            [only] => only.endpoint(),
            _ => Endpoint::Elsewhere("it is one of several servers".to_owned()),
        }
    }
}

/// The error of a URL whose hosts DNS knows.
fn srv(url: &TargetUrl) -> Error {
    let host = url.host.as_deref().unwrap_or("HOST");
    url.wrong("the hosts behind this name are in DNS records that Kurabe does not read").hint(format!(
        "name them: `dig +short SRV _mongodb._tcp.{host}` prints port and host of each, and `dig +short TXT {host}` \
         options; then mongodb://USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?tls=true&OPTIONS"
    ))
}

/// The servers that the URL names; a replica set may have others.
pub(super) fn servers(url: &TargetUrl) -> Result<Vec<ServerPlace>> {
    Ok(hosts(url)?.into_iter().map(ServerPlace::from).collect())
}

fn hosts(url: &TargetUrl) -> Result<Vec<Place>> {
    if url.scheme != "mongodb" {
        return Err(srv(url));
    }
    let Some(text) = url.host.as_deref().filter(|text| text.contains(',') && url.option("socket").is_none())
    else {
        return Ok(vec![match url.host.as_deref() {
            Some(path) if path.starts_with('/') && url.option("socket").is_none() => Place::Unix(path.into()),
            _ => Place::from_url(url, PORT),
        }]);
    };
    let wrong =
        |part: &str| url.wrong(format!("'{part}' among the hosts is no host")).hint("host:port,host:port");
    text.split(',').map(|part| host(part).ok_or_else(|| wrong(part))).collect()
}

/// A host with a port, or the path of a Unix socket.
pub(super) fn host(text: &str) -> Option<Place> {
    if text.starts_with('/') { Some(Place::Unix(text.into())) } else { place(text, PORT) }
}

fn compressors(url: &TargetUrl) -> Result<Vec<Method>> {
    let level: Option<i32> = number(url, "zlibCompressionLevel")?;
    let level = match level {
        None | Some(-1) => Method::ZLIB_LEVEL,
        Some(level @ 0..=9) => level.unsigned_abs(),
        Some(level) => return Err(url.wrong(format!("zlibCompressionLevel={level} is not from -1 to 9"))),
    };
    let Some(names) = url.option("compressors") else { return Ok(Vec::new()) };
    let mut methods = Vec::new();
    for name in names.split(',') {
        match name {
            "zlib" => methods.push(Method::Zlib(level)),
            "zstd" => methods.push(Method::Zstd),
            // The next one is used, as by clients that are built without it.
            "snappy" => {}
            other => {
                return Err(url.wrong(format!("compressors={other} is unknown")).hint("one of: zstd, zlib"));
            }
        }
    }
    if methods.is_empty() {
        let message = "mongodb: compression by snappy is not supported";
        return Err(Error::unsupported(message).hint("use zstd or zlib"));
    }
    Ok(methods)
}

pub(super) fn tls(url: &TargetUrl) -> Result<tls::Mode> {
    let asked = match (truth(url, "tls")?, truth(url, "ssl")?) {
        (Some(tls), Some(ssl)) if tls != ssl => {
            return Err(url.wrong("tls and ssl contradict each other").hint("remove one"));
        }
        (tls, ssl) => tls.or(ssl),
    };
    let (ca, key) = (url.option("tlsCAFile"), url.option("tlsCertificateKeyFile"));
    let certificates = truth(url, "tlsAllowInvalidCertificates")?;
    let names = truth(url, "tlsAllowInvalidHostnames")?;
    let insecure = truth(url, "tlsInsecure")?;
    if insecure.is_some() && (certificates.is_some() || names.is_some()) {
        return Err(
            url.wrong("tlsInsecure does not go with tlsAllowInvalidCertificates or tlsAllowInvalidHostnames")
        );
    }
    let implied = ca.is_some() || key.is_some() || certificates.or(names).or(insecure).is_some();
    match asked {
        Some(false) if implied => {
            return Err(url.wrong("tls=false does not go with the other options of TLS"));
        }
        Some(false) => return Ok(tls::Mode::Off),
        None if !implied => return Ok(tls::Mode::Off),
        _ => {}
    }
    let check = match (certificates == Some(true) || insecure == Some(true), names) {
        (true, _) => Check::Nothing,
        (false, Some(true)) => Check::Authority,
        (false, _) => Check::Host,
    };
    let identity = key.map(|file| Identity::new(file, None::<&str>));
    tls::Mode::on(Wanted { check, ca: ca.map(Into::into), crl: None, identity })
}

#[cfg(test)]
mod tests;
