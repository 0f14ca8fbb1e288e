//! TLS where the URL asks for it: `tls=off` (the default), `tls=require`, `tls=verify` with `ca=FILE`.
//!
//! There is no `prefer`: a run must not be encrypted on one day and plain on another without saying so.

use super::Place;
use crate::info::OptionInfo;
use crate::prelude::*;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The option that asks for it, of engines that are plain unless it does.
pub(crate) const OPTION: OptionInfo =
    OptionInfo::new("tls", "off (default), require (encrypted), verify (certificate checked too)");

/// The option that names whom to trust.
pub(crate) const CA: OptionInfo =
    OptionInfo::new("ca", "file of certificates (PEM) to trust with tls=verify; default: Mozilla's list");

/// What the URL says of TLS.
#[derive(Clone)]
pub(crate) enum Mode {
    /// Plain text.
    Off,
    /// Encrypted; whoever answers is believed, as with libpq's `sslmode=require`.
    Require(Arc<ClientConfig>),
    /// Encrypted, and the certificate is for this host and signed by a known authority.
    Verify {
        /// The file of the authorities, where it is not Mozilla's list.
        ca: Option<PathBuf>,
        /// Made once per driver: reading the roots for every connection would be charged to connecting.
        config: Arc<ClientConfig>,
    },
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Require(_) => "require",
            Self::Verify { .. } => "verify",
        })
    }
}

impl Mode {
    /// Reads `tls=` and `ca=`; `secure`: the scheme stands for a certificate that is looked at, as in every client.
    ///
    /// # Errors
    /// Usage, where they are unknown or do not go together; the file's error where `ca=` holds no certificate.
    pub(crate) fn from_url(url: &TargetUrl, secure: bool) -> Result<Self> {
        let ca = url.option("ca").map(PathBuf::from);
        let mode = url.option("tls").unwrap_or(if secure || ca.is_some() { "verify" } else { "off" });
        match mode {
            "off" | "require" if ca.is_some() => {
                Err(url.wrong(format!("ca= does not go with tls={mode}")).hint("use tls=verify"))
            }
            "off" => Ok(Self::Off),
            "require" => Ok(Self::Require(Arc::new(config(Arc::new(Anyone::new()))?))),
            "verify" => {
                let roots = roots(ca.as_deref())?;
                let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                    .build()
                    .map_err(|e| Error::new(ErrorKind::Environment, format!("tls=verify: {e}")))?;
                Ok(Self::Verify { ca, config: Arc::new(config(verifier)?) })
            }
            other => Err(url.wrong(format!("tls={other} is unknown")).hint("one of: off, require, verify")),
        }
    }

    /// Refuses TLS on a Unix socket.
    pub(crate) fn check(&self, place: &Place, url: &TargetUrl) -> Result<()> {
        if self.is_off() || matches!(place, Place::Tcp { .. }) {
            return Ok(());
        }
        Err(url.wrong("TLS is for TCP, and a Unix socket needs none").hint("leave tls= or socket= out"))
    }

    pub(crate) fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    /// The settings for rustls; none where TLS is off.
    pub(crate) fn config(&self) -> Option<&Arc<ClientConfig>> {
        match self {
            Self::Off => None,
            Self::Require(config) | Self::Verify { config, .. } => Some(config),
        }
    }

    /// A new TLS session with `host`.
    pub(crate) fn session(&self, host: &str) -> Result<ClientConnection> {
        let config = self.config().ok_or_else(|| Error::new(ErrorKind::Internal, "TLS is off"))?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::usage(format!("'{host}' cannot be a TLS server's name")))?;
        ClientConnection::new(Arc::clone(config), name)
            .map_err(|e| Error::new(ErrorKind::Environment, format!("no TLS session: {e}")))
    }
}

/// The error for people of a TLS session that was not to be.
pub(crate) fn failed(error: &rustls::Error) -> Error {
    let message = format!("no TLS connection: {error}");
    match error {
        rustls::Error::InvalidCertificate(_) => Error::new(ErrorKind::Denied, message)
            .hint("name the authority that signed the server's certificate with ca=FILE, or use tls=require"),
        _ => Error::new(ErrorKind::Protocol, message),
    }
}

/// `ring`, by name: with two providers in the tree rustls would refuse to choose.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// For crates that ask rustls for the process's provider instead of being given one.
pub(crate) fn install_provider() {
    // An error says that there is one already, which is as good.
    let _ = ring::default_provider().install_default();
}

fn config(verifier: Arc<dyn ServerCertVerifier>) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::new(ErrorKind::Environment, format!("no TLS: {e}")))?;
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    };
    let bad = |why: String| Error::usage(format!("ca={}: {why}", path.display()));
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| bad(e.to_string()))? {
        let certificate = certificate.map_err(|e| bad(e.to_string()))?;
        roots.add(certificate).map_err(|e| bad(e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(bad("holds no certificate".to_owned()).hint("it must be in PEM format"));
    }
    Ok(roots)
}

/// Believes every certificate, and still checks that the peer holds the key of the one it shows.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl Anyone {
    fn new() -> Self {
        Self(provider())
    }
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
