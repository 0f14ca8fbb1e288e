//! SCRAM-SHA-1 and SCRAM-SHA-256, with and without channel binding (RFC 5802 and RFC 7677), the client's side.

use crate::prelude::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kurabe_reactor::Lock;
use ring::digest::digest;
use ring::rand::{SystemRandom, generate};
use ring::{hmac, pbkdf2};
use std::num::NonZeroU32;

/// The hash of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    #[cfg(feature = "mongodb")]
    Sha1,
    Sha256,
}

impl Hash {
    fn hmac(self) -> hmac::Algorithm {
        match self {
            #[cfg(feature = "mongodb")]
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
        }
    }

    fn keyed(self, key: &[u8], text: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(self.hmac(), key), text)
    }

    /// `Hi` of the standard. It takes as long as the server asks.
    fn salted(self, password: &[u8], salt: &[u8], iterations: NonZeroU32) -> Vec<u8> {
        let (algorithm, length) = match self {
            #[cfg(feature = "mongodb")]
            Self::Sha1 => (pbkdf2::PBKDF2_HMAC_SHA1, 20),
            Self::Sha256 => (pbkdf2::PBKDF2_HMAC_SHA256, 32),
        };
        let mut salted = vec![0; length];
        pbkdf2::derive(algorithm, iterations, salt, password, &mut salted);
        salted
    }
}

/// The salted password of the last exchange, with what it was made of, for clients that keep it as most drivers of their
/// engine do. It is that of one password.
#[derive(Default)]
pub(crate) struct Kept(Lock<Option<Salted>>);

struct Salted {
    of: (Hash, Vec<u8>, NonZeroU32),
    salted: Vec<u8>,
}

impl Kept {
    fn get(&self, hash: Hash, password: &[u8], salt: &[u8], iterations: NonZeroU32) -> Vec<u8> {
        let of = (hash, salt.to_vec(), iterations);
        if let Some(found) = self.0.lock().as_ref().filter(|kept| kept.of == of) {
            return found.salted.clone();
        }
        // Without the lock: it may take a while, and other clients of this thread may wait for it.
        let salted = hash.salted(&prepared(password), salt, iterations);
        *self.0.lock() = Some(Salted { of, salted: salted.clone() });
        salted
    }
}

/// How the exchange is bound to the connection (RFC 5802, section 6).
pub(crate) enum Binding {
    /// Not at all.
    None,
    /// The client could, and the server does not offer it.
    NotOffered,
    /// To the server's certificate, by this hash of it (RFC 5929).
    EndPoint(Vec<u8>),
}

impl Binding {
    /// The header of the first message (RFC 5802, section 7: `gs2-header`).
    fn header(&self) -> &'static str {
        match self {
            Self::None => "n,,",
            Self::NotOffered => "y,,",
            Self::EndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// The header and the hash in base64, as the last message repeats them.
    fn repeated(&self) -> String {
        let hash = if let Self::EndPoint(hash) = self { hash } else { &[][..] };
        format!("c={}", STANDARD.encode([self.header().as_bytes(), hash].concat()))
    }
}

/// Maximum number of iterations that a server may request: they use CPU time, and no deadline interrupts them.
/// PostgreSQL's default is 4,096 (`scram_iterations`).
const MAX_ITERATIONS: u64 = 1_000_000;

/// An exchange that has begun: the client's first message, without its header.
pub(crate) struct Begun {
    hash: Hash,
    bare: String,
    nonce: String,
    binding: Binding,
}

/// An exchange in which the client has proved that it knows the password.
pub(crate) struct Proved {
    /// The last message of the client.
    pub(crate) message: String,
    /// What the server signs with its key.
    exchanged: String,
    server_key: hmac::Key,
}

impl Begun {
    /// Begins an exchange. `user` is empty for PostgreSQL, which takes it from the start-up message.
    pub(crate) fn new(hash: Hash, user: &str, binding: Binding) -> Result<Self> {
        let none = |_| Error::new(ErrorKind::Environment, "the system gives no random bytes");
        let random: [u8; 18] = generate(&SystemRandom::new()).map_err(none)?.expose();
        Ok(Self::with_nonce(hash, user, STANDARD.encode(random), binding))
    }

    /// Begins an exchange. `nonce` is random, printable and without a comma.
    fn with_nonce(hash: Hash, user: &str, nonce: String, binding: Binding) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Self { hash, bare: format!("n={user},r={nonce}"), nonce, binding }
    }

    /// The hash of the mechanism.
    #[cfg(feature = "mongodb")]
    pub(crate) fn hash(&self) -> Hash {
        self.hash
    }

    /// The client's first message.
    pub(crate) fn message(&self) -> String {
        format!("{}{}", self.binding.header(), self.bare)
    }

    /// Answers the server's first message, `r=nonce,s=salt,i=iterations`. `fewest` is the number of iterations that the
    /// client requires.
    pub(crate) fn prove(
        &self,
        password: &[u8],
        first: &[u8],
        fewest: u64,
        kept: Option<&Kept>,
    ) -> Result<Proved> {
        let wrong = || malformed("SCRAM: the server's first message is invalid");
        let first = std::str::from_utf8(first).map_err(|_| wrong())?;
        let mut parts = first.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or_else(wrong);
        let (nonce, salt, iterations) = (part("r=")?, part("s=")?, part("i=")?);
        let salt = STANDARD.decode(salt).map_err(|_| wrong())?;
        let iterations: u64 = iterations.parse().map_err(|_| wrong())?;
        if iterations > MAX_ITERATIONS || iterations < fewest {
            return Err(malformed(format!("SCRAM: the server requests {iterations} iterations")));
        }
        if !nonce.starts_with(&self.nonce) {
            return Err(malformed("SCRAM: the server's nonce does not continue ours"));
        }
        let iterations = u32::try_from(iterations).ok().and_then(NonZeroU32::new).ok_or_else(wrong)?;
        let hash = self.hash;
        let salted = match kept {
            None => hash.salted(&prepared(password), &salt, iterations),
            Some(kept) => kept.get(hash, password, &salt, iterations),
        };
        let client = hash.keyed(&salted, b"Client Key");
        let stored = digest(hash.hmac().digest_algorithm(), client.as_ref());
        let last = format!("{},r={nonce}", self.binding.repeated());
        let all = format!("{},{first},{last}", self.bare);
        let mask = hash.keyed(stored.as_ref(), all.as_bytes());
        let proof: Vec<u8> = client.as_ref().iter().zip(mask.as_ref()).map(|(a, b)| a ^ b).collect();
        let server_key = hmac::Key::new(hash.hmac(), hash.keyed(&salted, b"Server Key").as_ref());
        let message = format!("{last},p={}", STANDARD.encode(proof));
        Ok(Proved { message, exchanged: all, server_key })
    }
}

impl Proved {
    /// Checks the server's last message, `v=signature`: it knows the password too. An error is `e=reason`.
    pub(crate) fn check(&self, last: &[u8]) -> Result<()> {
        if let Some(reason) = last.strip_prefix(b"e=") {
            let reason = String::from_utf8_lossy(reason);
            return Err(malformed(format!("SCRAM: the server reports: {reason}")));
        }
        let signature = last.strip_prefix(b"v=").and_then(|text| STANDARD.decode(text).ok());
        let is_right = signature.is_some_and(|signature| {
            hmac::verify(&self.server_key, self.exchanged.as_bytes(), &signature).is_ok()
        });
        if is_right { Ok(()) } else { Err(malformed("SCRAM: the server's proof is wrong")) }
    }
}

/// The password in the normal form of SASL (RFC 4013), so that equal characters are equal bytes. As in libpq, one that
/// has no such form is used as it is: PostgreSQL allows any password.
fn prepared(password: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(password).ok();
    let normal = text.and_then(|text| stringprep::saslprep(text).ok());
    normal.map_or_else(|| password.to_vec(), |text| text.into_owned().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3.
    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const VERIFIER: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn begun() -> Begun {
        Begun::with_nonce(Hash::Sha256, "user", NONCE.to_owned(), Binding::None)
    }

    #[test]
    fn messages_are_those_of_the_standard() {
        assert_eq!(begun().message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let proved = begun().prove(b"pencil", FIRST.as_bytes(), 4_096, None).unwrap();
        assert_eq!(proved.message, LAST);
        proved.check(VERIFIER.as_bytes()).unwrap();
        for (last, part) in [
            ("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "proof is wrong"),
            ("v=", "proof is wrong"),
            ("", "proof is wrong"),
            ("e=other-error", "reports: other-error"),
        ] {
            let error = proved.check(last.as_bytes()).unwrap_err();
            assert!(error.to_string().contains(part), "{last}: {error}");
        }
    }

    /// The exchange of RFC 5802, section 5, with and without a salted password that was kept.
    #[cfg(feature = "mongodb")]
    #[test]
    fn messages_by_sha_1_are_those_of_the_standard() {
        let begun =
            || Begun::with_nonce(Hash::Sha1, "user", "fyko+d2lbbFgONRv9qkxdawL".to_owned(), Binding::None);
        let first = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";
        let kept = Kept::default();
        for _ in 0..2 {
            let proved = begun().prove(b"pencil", first, 4_096, Some(&kept)).unwrap();
            assert_eq!(
                proved.message,
                "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="
            );
            proved.check(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=").unwrap();
        }
        // What is kept is of this salt and this number of iterations.
        let other = b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4097";
        let proved = |kept| begun().prove(b"pencil", other, 1, kept).unwrap().message;
        assert_eq!(proved(Some(&kept)), proved(None));
    }

    #[test]
    fn names_of_users_are_escaped() {
        let begun = Begun::with_nonce(Hash::Sha256, "a=b,c", NONCE.to_owned(), Binding::None);
        assert_eq!(begun.message(), format!("n,,n=a=3Db=2Cc,r={NONCE}"));
    }

    #[test]
    fn header_says_how_the_exchange_is_bound() {
        for (binding, header, repeated) in [
            (Binding::NotOffered, "y,,", "c=eSws"),
            (
                Binding::EndPoint(vec![1, 2, 3]),
                "p=tls-server-end-point,,",
                // By Python's `base64` of the header and the hash.
                "c=cD10bHMtc2VydmVyLWVuZC1wb2ludCwsAQID",
            ),
        ] {
            let begun = Begun::with_nonce(Hash::Sha256, "", NONCE.to_owned(), binding);
            assert_eq!(begun.message(), format!("{header}n=,r={NONCE}"));
            let proved = begun.prove(b"pencil", FIRST.as_bytes(), 1, None).unwrap();
            assert!(proved.message.starts_with(&format!("{repeated},r={NONCE}")), "{}", proved.message);
        }
    }

    #[test]
    fn invalid_first_messages_are_rejected() {
        for (first, part) in [
            ("r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not continue ours"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096", "is invalid"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0", "0 iterations"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==", "is invalid"),
            ("m=x,r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "is invalid"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001", "1000001 iterations"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4095", "4095 iterations"),
        ] {
            let proved = begun().prove(b"pencil", first.as_bytes(), 4_096, None);
            let error = proved.map(|proved| proved.message).unwrap_err();
            assert!(
                error.kind() == ErrorKind::Protocol && error.to_string().contains(part),
                "{first}: {error}"
            );
        }
    }

    /// The examples of RFC 4013, section 3, but for the password that is used as it is.
    #[test]
    fn passwords_are_in_normal_form() {
        for (password, normal) in [
            ("I\u{ad}X", "IX"),
            ("user", "user"),
            ("USER", "USER"),
            ("\u{aa}", "a"),
            ("\u{2168}", "IX"),
            ("\u{7}", "\u{7}"),
            ("\u{627}1", "\u{627}1"),
        ] {
            assert_eq!(prepared(password.as_bytes()), normal.as_bytes(), "{password:?}");
        }
        assert_eq!(prepared(b"\xff"), b"\xff");
    }
}
