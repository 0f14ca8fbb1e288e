//! Who connects, and how that is proved.

use crate::prelude::*;
use crate::scram::Hash;
use crate::wire::tls::{self, Wanted};

/// An authentication mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    /// SCRAM by a hash; `None`: by the best that the server has for the user.
    Scram(Option<Hash>),
    Plain,
    X509,
}

impl Mechanism {
    pub(super) fn name(self) -> &'static str {
        // Otherwise by what the server has.
        MECHANISMS.iter().find(|(_, known)| *known == self).map_or("SCRAM", |(name, _)| name)
    }
}

const MECHANISMS: [(&str, Mechanism); 4] = [
    ("SCRAM-SHA-256", Mechanism::Scram(Some(Hash::Sha256))),
    ("SCRAM-SHA-1", Mechanism::Scram(Some(Hash::Sha1))),
    ("MONGODB-X509", Mechanism::X509),
    ("PLAIN", Mechanism::Plain),
];

/// Who connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) mechanism: Mechanism,
    /// With a certificate, `None` is the one of the certificate.
    pub(super) user: Option<String>,
    pub(super) password: Secret,
    /// The database that defines the user.
    pub(super) source: String,
}

impl Credential {
    /// `None` if the URL names no user.
    pub(super) fn from_url(url: &TargetUrl, tls: &tls::Mode) -> Result<Option<Self>> {
        let mechanism = match url.option("authMechanism") {
            None => Mechanism::Scram(None),
            Some(_) => url.choice("authMechanism", &MECHANISMS)?,
        };
        let source = url.option("authSource");
        if source == Some("") {
            return Err(url.wrong("authSource= names no database"));
        }
        let needs = |what: &str| {
            let name = url.option("authMechanism").unwrap_or("authMechanism");
            Err(url.wrong(format!("{name} needs {what}")))
        };
        let database = Some(url.path.as_str()).filter(|path| !path.is_empty());
        let default = match mechanism {
            Mechanism::Scram(_) => database.unwrap_or("admin"),
            Mechanism::Plain => database.unwrap_or("$external"),
            Mechanism::X509 => "$external",
        };
        let source = source.unwrap_or(default);
        if mechanism == Mechanism::X509 {
            if url.password.is_some() {
                return Err(url.wrong("MONGODB-X509 goes without a password"));
            }
            if source != "$external" {
                return Err(url.wrong("MONGODB-X509 has no authSource but $external"));
            }
            if !matches!(tls, tls::Mode::On { wanted: Wanted { identity: Some(_), .. }, .. }) {
                return needs("tlsCertificateKeyFile, the client's certificate");
            }
        } else if url.user.is_none() {
            return match url.option("authMechanism") {
                Some(_) => needs("a user"),
                None => Ok(None),
            };
        } else if url.password.is_none() {
            let message = "mongodb: the user has no password in the URL";
            return Err(Error::usage(message).hint("mongodb://USER:PASSWORD@HOST"));
        }
        let password = url.password.clone().unwrap_or_default();
        Ok(Some(Self { mechanism, user: url.user.clone(), password, source: source.to_owned() }))
    }
}
