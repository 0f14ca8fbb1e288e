//! SCRAM-SHA-256, with and without channel binding (RFC 5802 and RFC 7677), the client's side.

use crate::prelude::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::{hmac, pbkdf2};
use std::num::NonZeroU32;

/// The name of the mechanism.
pub(super) const MECHANISM: &str = "SCRAM-SHA-256";

/// The name of the mechanism with channel binding.
pub(super) const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// How the exchange is bound to the connection (RFC 5802, section 6).
pub(super) enum Binding {
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
const MOST_ITERATIONS: u64 = 1_000_000;

/// An exchange that has begun: the client's first message, without its header.
pub(super) struct Begun {
    bare: String,
    nonce: String,
    binding: Binding,
}

/// An exchange in which the client has proved that it knows the password.
pub(super) struct Proved {
    /// The last message of the client.
    pub(super) message: String,
    /// What the server signs with its key.
    exchanged: String,
    server_key: hmac::Key,
}

impl Begun {
    /// Begins an exchange. `nonce` is random, printable and without a comma. `user` is empty for PostgreSQL, which takes it
    /// from the start-up message.
    pub(super) fn new(user: &str, nonce: String, binding: Binding) -> Self {
        Self { bare: format!("n={user},r={nonce}"), nonce, binding }
    }

    /// The client's first message.
    pub(super) fn message(&self) -> String {
        format!("{}{}", self.binding.header(), self.bare)
    }

    /// Answers the server's first message, `r=nonce,s=salt,i=iterations`.
    pub(super) fn prove(&self, password: &[u8], first: &[u8]) -> Result<Proved> {
        let wrong = || malformed("SCRAM: the server's first message is invalid");
        let first = std::str::from_utf8(first).map_err(|_| wrong())?;
        let mut parts = first.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name)).ok_or_else(wrong);
        let (nonce, salt, iterations) = (part("r=")?, part("s=")?, part("i=")?);
        let salt = STANDARD.decode(salt).map_err(|_| wrong())?;
        let iterations: u64 = iterations.parse().map_err(|_| wrong())?;
        if iterations > MOST_ITERATIONS {
            return Err(malformed(format!("SCRAM: the server requests {iterations} iterations")));
        }
        if !nonce.starts_with(&self.nonce) {
            return Err(malformed("SCRAM: the server's nonce does not continue ours"));
        }
        let iterations = u32::try_from(iterations).ok().and_then(NonZeroU32::new).ok_or_else(wrong)?;
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, &prepared(password), &mut salted);
        let client = keyed(&salted, b"Client Key");
        let stored = digest(&SHA256, client.as_ref());
        let last = format!("{},r={nonce}", self.binding.repeated());
        let all = format!("{},{first},{last}", self.bare);
        let mask = keyed(stored.as_ref(), all.as_bytes());
        let proof: Vec<u8> = client.as_ref().iter().zip(mask.as_ref()).map(|(a, b)| a ^ b).collect();
        let server_key = hmac::Key::new(hmac::HMAC_SHA256, keyed(&salted, b"Server Key").as_ref());
        let message = format!("{last},p={}", STANDARD.encode(proof));
        Ok(Proved { message, exchanged: all, server_key })
    }
}

impl Proved {
    /// Checks the server's last message, `v=signature`: it knows the password too. An error is `e=reason`.
    pub(super) fn check(&self, last: &[u8]) -> Result<()> {
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

fn keyed(key: &[u8], text: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text)
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
        Begun::new("user", NONCE.to_owned(), Binding::None)
    }

    #[test]
    fn messages_are_those_of_the_standard() {
        assert_eq!(begun().message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let proved = begun().prove(b"pencil", FIRST.as_bytes()).unwrap();
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
            let begun = Begun::new("", NONCE.to_owned(), binding);
            assert_eq!(begun.message(), format!("{header}n=,r={NONCE}"));
            let proved = begun.prove(b"pencil", FIRST.as_bytes()).unwrap();
            assert!(proved.message.starts_with(&format!("{repeated},r={NONCE}")), "{}", proved.message);
        }
    }

    #[test]
    fn invalid_first_messages_are_rejected() {
        for (first, part) in [
            ("r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not continue ours"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096", "is invalid"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0", "is invalid"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==", "is invalid"),
            ("m=x,r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "is invalid"),
            ("r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=1000001", "1000001 iterations"),
        ] {
            let error = begun().prove(b"pencil", first.as_bytes()).map(|proved| proved.message).unwrap_err();
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
