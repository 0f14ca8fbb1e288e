//! TLS, as the URL requests it: `tls=off` (the default), `tls=require`, or `tls=verify` with `ca=FILE`; with
//! `cert=FILE` and `key=FILE` if the server requires a client certificate.
//!
//! There is no `prefer`: whether a run is encrypted must not depend on the server.

use super::Place;
use crate::options::OptionInfo;
use crate::prelude::*;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The option `tls`, of engines that use plain text by default.
pub const OPTION: OptionInfo =
    OptionInfo::new("tls", "off (default), require (encrypted), verify (certificate checked too)");

/// The option for trusted certificates.
pub const CA: OptionInfo = OptionInfo::file(
    "ca",
    "file of certificates (PEM) to trust with tls=verify; default: the system's store",
);

/// The option for the client's certificate.
pub const CERT: OptionInfo =
    OptionInfo::file("cert", "file of the client's certificate (PEM), if the server requires one");
/// The option for the key of the client's certificate.
pub const KEY: OptionInfo =
    OptionInfo::file("key", "file of the private key of cert= (PEM); default: the file of cert=");

/// How a server's certificate is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// Not at all: any certificate is accepted, as with libpq's `sslmode=require`.
    Nothing,
    /// It must be signed by a trusted authority, as with libpq's `sslmode=verify-ca`.
    Authority,
    /// It must also be valid for this host.
    Host,
}

/// Requested TLS settings.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How the certificate is checked.
    pub check: Check,
    /// The file of trusted authorities, instead of the system's store.
    pub ca: Option<PathBuf>,
    /// The file of revoked certificates, if any. A certificate whose authority has no list in it is refused.
    pub crl: Option<PathBuf>,
    /// The client's certificate, if any.
    pub identity: Option<Identity>,
}

/// The files of the client's certificate.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate (PEM).
    pub certificate: PathBuf,
    /// Its private key (PEM).
    pub key: PathBuf,
}

impl Identity {
    /// A certificate, with its key in `key` or in the same file.
    pub fn new(certificate: impl Into<PathBuf>, key: Option<impl Into<PathBuf>>) -> Self {
        let certificate = certificate.into();
        let key = key.map_or_else(|| certificate.clone(), Into::into);
        Self { certificate, key }
    }
}

/// Whether connections are encrypted, and how.
#[derive(Clone)]
pub enum Mode {
    /// Plain text.
    Off,
    /// With TLS.
    On {
        /// The requested settings.
        wanted: Wanted,
        /// Created once per driver: reading the roots for every connection would slow down connecting.
        config: Arc<ClientConfig>,
    },
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::On { wanted, .. } => wanted.fmt(f),
        }
    }
}

impl Mode {
    /// Reads `tls=`, `ca=`, `cert=` and `key=`; `secure`: the scheme implies a verified certificate, as in every
    /// client.
    ///
    /// # Errors
    /// Usage, if they are unknown or conflict, or if a file is unreadable or has no certificate.
    pub fn from_url(url: &TargetUrl, secure: bool) -> Result<Self> {
        let file = |name: &str| url.option(name).map(PathBuf::from);
        let (ca, certificate, key) = (file("ca"), file("cert"), file("key"));
        if certificate.is_none() && key.is_some() {
            return Err(url.wrong("key= goes with cert=, the certificate"));
        }
        let identity = certificate.map(|certificate| Identity::new(certificate, key));
        let asked = secure || ca.is_some() || identity.is_some();
        let mode = url.option("tls").unwrap_or(if asked { "verify" } else { "off" });
        let check = match mode {
            "off" if identity.is_some() => {
                return Err(url.wrong("cert= does not go with tls=off").hint("use tls=verify"));
            }
            "off" | "require" if ca.is_some() => {
                return Err(url.wrong(format!("ca= does not go with tls={mode}")).hint("use tls=verify"));
            }
            "off" => return Ok(Self::Off),
            "require" => Check::Nothing,
            "verify" => Check::Host,
            other => {
                return Err(url
                    .wrong(format!("tls={other} is unknown"))
                    .hint("one of: off, require, verify"));
            }
        };
        Self::on(Wanted { check, ca, crl: None, identity })
    }

    /// Creates a mode with these settings, and reads their files.
    ///
    /// # Errors
    /// Usage, with the file's error.
    pub fn on(wanted: Wanted) -> Result<Self> {
        let verifier: Arc<dyn ServerCertVerifier> = match wanted.check {
            Check::Nothing => Arc::new(Lenient { authority: None, provider: provider() }),
            Check::Authority => {
                let authority = Some(verifier(&wanted)?);
                Arc::new(Lenient { authority, provider: provider() })
            }
            Check::Host => verifier(&wanted)?,
        };
        let config = Arc::new(config(verifier, wanted.identity.as_ref())?);
        Ok(Self::On { wanted, config })
    }

    /// Refuses TLS on a Unix socket.
    pub fn check(&self, place: &Place, url: &TargetUrl) -> Result<()> {
        if self.is_off() || matches!(place, Place::Tcp { .. }) {
            return Ok(());
        }
        Err(url.wrong("TLS is for TCP, and a Unix socket needs none").hint("leave tls= or socket= out"))
    }

    /// Whether the connection is plain.
    pub fn is_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    /// The transport of clients that do not report TLS's version.
    pub fn transport(&self, place: &Place) -> &'static str {
        match (self, place) {
            (Self::Off, Place::Unix(_)) => "Unix socket",
            (Self::Off, Place::Tcp { .. }) => "TCP",
            (Self::On { .. }, _) => "TCP with TLS",
        }
    }

    /// Whether the server's certificate must be valid for the host.
    pub fn checks_host(&self) -> bool {
        matches!(self, Self::On { wanted: Wanted { check: Check::Host, .. }, .. })
    }

    /// The settings for rustls; `None` if TLS is off.
    pub fn config(&self) -> Option<&Arc<ClientConfig>> {
        match self {
            Self::Off => None,
            Self::On { config, .. } => Some(config),
        }
    }

    /// A new TLS session with `host`.
    pub fn session(&self, host: &str) -> Result<ClientConnection> {
        let config = self.config().ok_or_else(|| Error::new(ErrorKind::Internal, "TLS is off"))?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::usage(format!("'{host}' cannot be a TLS server's name")))?;
        ClientConnection::new(Arc::clone(config), name)
            .map_err(|e| Error::new(ErrorKind::Environment, format!("no TLS session: {e}")))
    }
}

/// The `ring` provider, explicitly: with two providers in the dependency tree rustls would panic.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Installs the provider of the process, for crates that use rustls's default.
pub fn install_provider() {
    // An error means that one is installed already.
    let _ = ring::default_provider().install_default();
}

fn config(verifier: Arc<dyn ServerCertVerifier>, identity: Option<&Identity>) -> Result<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::new(ErrorKind::Environment, format!("no TLS: {e}")))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let Some(Identity { certificate, key }) = identity else { return Ok(builder.with_no_client_auth()) };
    let bad = |file: &Path, why: &dyn fmt::Display| {
        Error::usage(format!("the client's certificate: {}: {why}", file.display()))
    };
    let chain = certificates(certificate).map_err(|why| bad(certificate, &why))?;
    let is_encrypted = |bytes: &Vec<u8>| bytes.windows(9).any(|part| part == b"ENCRYPTED");
    if std::fs::read(key).is_ok_and(|bytes| is_encrypted(&bytes)) {
        return Err(bad(key, &"it is encrypted, and encrypted keys are not supported")
            .hint("write it without a password: openssl pkey -in KEY -out FILE"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|why| bad(key, &why))?;
    builder.with_client_auth_cert(chain, private).map_err(|why| bad(key, &why))
}

/// A verifier that requires a certificate for the host, signed by a trusted authority.
fn verifier(wanted: &Wanted) -> Result<Arc<Trusting>> {
    let (roots, own) = roots(wanted.ca.as_deref())?;
    let roots = Arc::new(roots);
    let mut builder = WebPkiServerVerifier::builder_with_provider(roots, provider());
    if let Some(path) = &wanted.crl {
        let bad = |why: String| {
            Error::usage(format!("the list of revoked certificates: {}: {why}", path.display()))
        };
        let lists = CertificateRevocationListDer::pem_file_iter(path);
        let lists = lists.and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|e| bad(e.to_string()))?;
        if lists.is_empty() {
            return Err(bad("contains no list in PEM format".to_owned()));
        }
        builder = builder.with_crls(lists).enforce_revocation_expiration();
    }
    let built = builder.build().map_err(|e| Error::new(ErrorKind::Environment, format!("tls=verify: {e}")));
    Ok(Arc::new(Trusting { authorities: built?, own }))
}

/// All certificates of a PEM file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|e| e.to_string())?;
    if all.is_empty() { Err("contains no certificate in PEM format".to_owned()) } else { Ok(all) }
}

/// The trusted certificates, and those among them that the user has named.
fn roots(ca: Option<&Path>) -> Result<(RootCertStore, Vec<CertificateDer<'static>>)> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        let found = rustls_native_certs::load_native_certs();
        // A store may have certificates of other times, which no library reads.
        roots.add_parsable_certificates(found.certs);
        return if roots.is_empty() { Err(no_store(&found.errors)) } else { Ok((roots, Vec::new())) };
    };
    let bad = |why: String| Error::usage(format!("ca={}: {why}", path.display()));
    let named = certificates(path).map_err(bad)?;
    for certificate in &named {
        roots.add(certificate.clone()).map_err(|e| bad(e.to_string()))?;
    }
    Ok((roots, named))
}

/// Checks a certificate by its authority. As in OpenSSL, one that the user has named himself needs no other: a self-signed
/// certificate is its own authority, which the library refuses as a server's.
#[derive(Debug)]
struct Trusting {
    authorities: Arc<WebPkiServerVerifier>,
    /// The certificates that the user has named.
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // Its time was checked before what it may be used for.
            Err(rustls::Error::InvalidCertificate(CertificateError::Other(_)))
                if self.own.iter().any(|own| own.as_ref() == end_entity.as_ref()) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// The error of a system without certificate authorities.
fn no_store(errors: &[rustls_native_certs::Error]) -> Error {
    let why = errors.first().map_or_else(String::new, |error| format!(" ({error})"));
    let what = format!("no certificate authority was found in the system's store{why}");
    Error::new(ErrorKind::Environment, what).hint(
        "install the system's list (package ca-certificates), name one with SSL_CERT_FILE, or name the authority of the \
         server with ca=FILE",
    )
}

/// Checks a certificate's authority but not its host; without an authority, neither. It always checks that the peer has
/// the certificate's key.
#[derive(Debug)]
struct Lenient {
    authority: Option<Arc<Trusting>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        // The name is checked last, after everything else is valid.
        match authority.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. })) => {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A certificate for `localhost` that has signed itself (`openssl req -x509`).
    const SELF_SIGNED: &str = "-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUMP+CvGu5WWQIGtClrbbqdItBfw4wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyODE2MTYwNFoYDzIxMjYxMTA0
MTYxNjA0WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATFFHbRlZXbKrqIYaLzvPYIi665INcQqgebnjSl4H1st5cTkNrzpkxy
j/e8Keo/dxv1DIMKZ9YZsbhjde/CM5Slo2kwZzAdBgNVHQ4EFgQUKSaYUgFsqDLG
gXJ/QoEDCwQIvo8wHwYDVR0jBBgwFoAUKSaYUgFsqDLGgXJ/QoEDCwQIvo8wDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
RwAwRAIgGL7fvY67mCaVO7ATBKHjidiqIw/ptj6L1wU8FaHzODQCIAlZxRZ8N8HE
i6hy4yV6aIIcfN0vEdWDuCRDfHFpMTt8
-----END CERTIFICATE-----
";

    /// Whether a server with the self-signed certificate is accepted under this name.
    fn accepts(check: Check, name: &'static str, after: Duration) -> Result<(), rustls::Error> {
        let file = std::env::temp_dir().join(format!("kurabe-self-signed-{}-{check:?}", std::process::id()));
        std::fs::write(&file, format!("Sécurité\n{SELF_SIGNED}")).unwrap();
        let wanted = Wanted { check, ca: Some(file.clone()), crl: None, identity: None };
        let certificate = certificates(&file).unwrap().remove(0);
        let trusting = verifier(&wanted).unwrap();
        std::fs::remove_file(&file).unwrap();
        let verifier: Arc<dyn ServerCertVerifier> = match check {
            Check::Host => trusting,
            _ => Arc::new(Lenient { authority: Some(trusting), provider: provider() }),
        };
        let name = ServerName::try_from(name).unwrap();
        // 2027.
        let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000) + after);
        verifier.verify_server_cert(&certificate, &[], &name, &[], now).map(drop)
    }

    #[test]
    fn self_signed_certificate_is_its_own_authority() {
        let century = Duration::from_secs(101 * 366 * 86_400);
        assert_eq!(accepts(Check::Host, "localhost", Duration::ZERO), Ok(()));
        assert_eq!(accepts(Check::Authority, "db.example", Duration::ZERO), Ok(()));
        assert!(accepts(Check::Host, "db.example", Duration::ZERO).is_err());
        assert!(accepts(Check::Authority, "localhost", century).is_err(), "it has expired");
    }
}
