//! MariaDB's `ed25519` (Knowledge Base, "Authentication Plugin - ed25519"): the client signs the server's nonce as
//! Ed25519 does (RFC 8032, section 5.1), with the password in place of the 32 random bytes of a private key. `ring` takes only
//! 32 bytes, so that the steps are here.

use curve25519_dalek::{EdwardsPoint, Scalar, scalar::clamp_integer};
use ring::digest::{SHA512, digest};

/// Signs `nonce`: 32 bytes of a point and 32 of a scalar.
pub(super) fn sign(password: &[u8], nonce: &[u8]) -> [u8; 64] {
    let hash = sha512(&[password]);
    let mut secret = [0; 32];
    secret.copy_from_slice(&hash[..32]);
    let public = EdwardsPoint::mul_base_clamped(secret).compress();
    let random = Scalar::from_bytes_mod_order_wide(&sha512(&[&hash[32..], nonce]));
    let point = EdwardsPoint::mul_base(&random).compress();
    let challenge = Scalar::from_bytes_mod_order_wide(&sha512(&[point.as_bytes(), public.as_bytes(), nonce]));
    let scalar = challenge * Scalar::from_bytes_mod_order(clamp_integer(secret)) + random;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(point.as_bytes());
    signature[32..].copy_from_slice(scalar.as_bytes());
    signature
}

fn sha512(parts: &[&[u8]]) -> [u8; 64] {
    let mut out = [0; 64];
    out.copy_from_slice(digest(&SHA512, &parts.concat()).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysql::lean::tests::{bytes, digits};
    use proptest::prelude::*;
    use ring::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};

    /// RFC 8032, section 7.1, tests 1 to 3: a private key is a password of 32 bytes.
    #[test]
    fn signatures_are_those_of_the_standard() {
        for (key, message, signature) in [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
            ),
        ] {
            assert_eq!(digits(&sign(&bytes(key), &bytes(message))), signature);
        }
    }

    /// Made by a program in Python with whole numbers and affine coordinates, which gives the signatures above too.
    #[test]
    fn password_of_another_length_signs() {
        let nonce: Vec<u8> = (0..32).collect();
        let expected = "395a5ad3e669c87001c38929fab0227498c6fe6069220c0e6419a0660a3c87fa\
                        14600b784b26a120f08decf975b43da5643fe9bc44be0d7b63322aeaf8660a01";
        assert_eq!(digits(&sign(b"pass word", &nonce)), expected);
    }

    proptest! {
        /// `ring` signs equally with 32 bytes, and accepts the signatures of any password.
        #[test]
        fn signatures_are_those_of_ring(
            key in prop::array::uniform32(any::<u8>()),
            password in prop::collection::vec(any::<u8>(), 0..80),
            nonce in prop::array::uniform32(any::<u8>()),
        ) {
            let pair = Ed25519KeyPair::from_seed_unchecked(&key).unwrap();
            let theirs = pair.sign(&nonce);
            prop_assert_eq!(&sign(&key, &nonce)[..], theirs.as_ref());
            let secret = *sha512(&[&password]).first_chunk::<32>().unwrap();
            let public = EdwardsPoint::mul_base_clamped(secret).compress().to_bytes();
            UnparsedPublicKey::new(&ED25519, public).verify(&nonce, &sign(&password, &nonce)).unwrap();
        }
    }
}
