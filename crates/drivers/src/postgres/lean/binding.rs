//! Binding of SCRAM to the TLS connection (RFC 5929, "tls-server-end-point"): whoever relays the exchange over another
//! connection is found out.

use crate::der::element;
use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

/// Signature algorithms by the bytes of their object identifiers, and the hash of each. MD5 and SHA-1 become SHA-256.
const ALGORITHMS: [(&[u8], &Algorithm); 9] = [
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11], &SHA256),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], &SHA384),
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], &SHA512),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1], &SHA256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2], &SHA256),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3], &SHA384),
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4], &SHA512),
];

/// The hash of a server's certificate (DER) by the hash of its signature; `None` if the signature has no single one.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate: a sequence of what is signed, the algorithm, and the signature.
    let (whole, _) = element(certificate, 0x30)?;
    let (_, after) = element(whole, 0x30)?;
    let (algorithm, _) = element(after, 0x30)?;
    let (name, _) = element(algorithm, 0x06)?;
    let (_, hash) = ALGORITHMS.iter().find(|(known, _)| *known == name)?;
    Some(digest(hash, certificate).as_ref().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_is_hashed_by_the_hash_of_its_signature() {
        // What is signed has 200 bytes, whose length takes two.
        let certificate = |oid: &[u8]| {
            let algorithm = [&[0x06, oid.len() as u8][..], oid].concat();
            let parts =
                [&[0x30, 0x81, 200][..], &[7; 200], &[0x30, algorithm.len() as u8], &algorithm].concat();
            let signed = [&parts[..], &[3, 2, 0, 9]].concat();
            [&[0x30, 0x81, signed.len() as u8][..], &signed].concat()
        };
        for (oid, hash) in ALGORITHMS {
            let der = certificate(oid);
            assert_eq!(end_point(&der).as_deref(), Some(digest(hash, &der).as_ref()), "{oid:?}");
        }
        // Ed25519 has no hash of its own (RFC 8032).
        assert_eq!(end_point(&certificate(&[0x2b, 0x65, 0x70])), None);
        let whole = certificate(ALGORITHMS[2].0);
        for end in 0..210 {
            assert_eq!(end_point(&whole[..end]), None, "{end}");
        }
        assert_eq!(end_point(&[0x30, 0xff]), None);
    }
}
