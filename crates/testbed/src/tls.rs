//! A throwaway certificate authority, and the certificates of a server and a client that it signs.

use std::io;
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

/// Creates the files in `folder`; only the server's user can read its key.
pub(crate) fn make(folder: &Path, os_user: Option<&OsUser>) -> Result<TlsFiles, TestbedError> {
    let signed = sign("Kurabe throwaway", &["localhost", "127.0.0.1"])
        .map_err(TestbedError::io("creating a certificate"))?;
    let files = TlsFiles {
        ca: folder.join("ca.pem"),
        certificate: folder.join("server.pem"),
        key: folder.join("server-key.pem"),
    };
    for (path, text) in
        [(&files.ca, signed.ca), (&files.certificate, signed.server.0), (&files.key, signed.server.1)]
    {
        write_private(path, text.as_bytes(), os_user)?;
    }
    // The current user reads the client's files.
    let [certificate, key] = client_files(&files.ca);
    write_private(&certificate, signed.client.0.as_bytes(), None)?;
    write_private(&key, signed.client.1.as_bytes(), None)?;
    Ok(files)
}

/// The client's certificate and its key, in the folder of the authority's certificate.
pub(crate) fn client_files(ca: &Path) -> [PathBuf; 2] {
    ["client.pem", "client-key.pem"].map(|name| ca.with_file_name(name))
}

/// The authority's certificate, and certificates with their keys, as PEM.
pub struct Signed {
    pub ca: String,
    pub server: (String, String),
    pub client: (String, String),
}

impl std::fmt::Debug for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the keys.
        f.debug_struct("Signed").field("ca", &self.ca).finish_non_exhaustive()
    }
}

/// Creates an authority, and a certificate for a server with these names and addresses; both are called what `for_what`
/// says. The authority's own key is discarded.
///
/// # Errors
/// If a name is none, or the system gives no random numbers.
pub fn sign(for_what: &str, names: &[&str]) -> io::Result<Signed> {
    signed(for_what, names).map_err(io::Error::other)
}

fn signed(for_what: &str, names: &[&str]) -> Result<Signed, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("{for_what} authority"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let ca = params.self_signed(&key)?;
    let issuer = Issuer::new(params, key);
    let one = |names: &[&str], name: &str, purpose| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        Ok::<_, rcgen::Error>((certificate.pem(), key.serialize_pem()))
    };
    let (server, client) = (ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth);
    Ok(Signed {
        ca: ca.pem(),
        server: one(names, &format!("{for_what} server"), server)?,
        // PostgreSQL compares this name with the user's.
        client: one(&[], "kurabe", client)?,
    })
}
