//! A throwaway certificate authority, and the server's certificate.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use crate::TestbedError;
use crate::folder::write_private;
use crate::os_user::OsUser;

/// The files of a server with TLS, all PEM.
#[derive(Debug, Clone)]
pub(crate) struct TlsFiles {
    /// The authority's certificate.
    pub ca: PathBuf,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Creates the files in `folder`; only the server's user can read the key.
pub(crate) fn make(folder: &Path, os_user: Option<&OsUser>) -> Result<TlsFiles, TestbedError> {
    let (ca, certificate, key) = sign().map_err(TestbedError::io("making a certificate"))?;
    let files = TlsFiles {
        ca: folder.join("ca.pem"),
        certificate: folder.join("server.pem"),
        key: folder.join("server-key.pem"),
    };
    for (path, text) in [(&files.ca, ca), (&files.certificate, certificate)] {
        fs::write(path, text).map_err(TestbedError::io(format!("writing {}", path.display())))?;
        if let Some(os_user) = os_user {
            let failed = TestbedError::io(format!("giving {} away", path.display()));
            chown(path, Some(os_user.uid), Some(os_user.gid)).map_err(failed)?;
        }
    }
    write_private(&files.key, key.as_bytes(), os_user)?;
    Ok(files)
}

/// Creates the authority's certificate, the server's, and the server's key. The authority's key is discarded.
fn sign() -> Result<(String, String, String), rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Kurabe throwaway authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let ca = params.self_signed(&key)?;
    let issuer = Issuer::new(params, key);

    let mut params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "Kurabe throwaway server");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok((ca.pem(), certificate.pem(), key.serialize_pem()))
}
