//! A login to MongoDB or its substitute: SCRAM-SHA-256 (RFC 5802, RFC 7677) in its commands `saslStart` and `saslContinue`.

use std::io::{Read, Write};

use ring::digest::{SHA256, digest};
use ring::{hmac, pbkdf2};

use crate::password::base64;
use crate::wire;

/// No other client logs in with it at the same time.
const NONCE: &str = "kurabe-testbed";

/// Logs in as the testbed's user.
pub(super) fn log_in(stream: &mut (impl Read + Write), password: &str) -> Result<(), String> {
    let bare = format!("n=kurabe,r={NONCE}");
    let fields = [
        wire::bson_number("saslStart", 1),
        wire::bson_text("mechanism", "SCRAM-SHA-256"),
        wire::bson_binary("payload", format!("n,,{bare}").as_bytes()),
    ];
    let challenge = payload(&command(stream, "saslStart", &fields)?)?;
    let part = |name: &str| {
        let part = challenge.split(',').find_map(|part| part.strip_prefix(name));
        part.ok_or_else(|| format!("no {name} in the challenge of a login"))
    };
    let (nonce, salt) = (part("r=")?, from_base64(part("s=")?));
    let iterations = part("i=")?.parse().map_err(|_| "the iterations of a login are no number".to_owned())?;
    let proven = format!("c=biws,r={nonce}");
    let proof = proof(password, &salt, iterations, &format!("{bare},{challenge},{proven}"));
    let fields = [
        wire::bson_number("saslContinue", 1),
        wire::bson_number("conversationId", 1),
        wire::bson_binary("payload", format!("{proven},p={proof}").as_bytes()),
    ];
    let end = command(stream, "saslContinue", &fields)?;
    // Some servers wait for one more message, which has nothing.
    if end.windows(7).any(|part| part == b"\x08done\0\x00") {
        let fields = [
            wire::bson_number("saslContinue", 1),
            wire::bson_number("conversationId", 1),
            wire::bson_binary("payload", b""),
        ];
        command(stream, "saslContinue", &fields)?;
    }
    Ok(())
}

fn command(stream: &mut (impl Read + Write), name: &str, fields: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let fields = [&fields.concat()[..], &wire::bson_text("$db", "admin")].concat();
    wire::mongodb_exchange(stream, fields).map_err(|error| error.to_string()).and_then(wire::mongodb_ok(name))
}

/// The text in the binary field `payload`: a kind, a name, a length, a sort, the bytes.
fn payload(answer: &[u8]) -> Result<String, String> {
    const NAME: &[u8] = b"\x05payload\0";
    let found = answer.windows(NAME.len()).position(|part| part == NAME).and_then(|at| {
        let (length, rest) = answer.get(at + NAME.len()..)?.split_first_chunk()?;
        rest.get(1..=u32::from_le_bytes(*length) as usize)
    });
    found.map(|text| String::from_utf8_lossy(text).into_owned()).ok_or_else(|| "no challenge".to_owned())
}

fn proof(password: &str, salt: &[u8], iterations: std::num::NonZeroU32, exchanged: &str) -> String {
    let mut salted = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, password.as_bytes(), &mut salted);
    let client = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &salted), b"Client Key");
    let stored = hmac::Key::new(hmac::HMAC_SHA256, digest(&SHA256, client.as_ref()).as_ref());
    let signature = hmac::sign(&stored, exchanged.as_bytes());
    let both = client.as_ref().iter().zip(signature.as_ref());
    base64(&both.map(|(one, other)| one ^ other).collect::<Vec<_>>())
}

/// The bytes of a text in base64.
fn from_base64(text: &str) -> Vec<u8> {
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|digit| *digit != b'=').map(value).collect();
    let group = |group: &[u8]| {
        let bits =
            group.iter().chain(&[0; 3]).take(4).fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit));
        bits.to_be_bytes()[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_as_it_was_written() {
        for text in ["", "f", "fo", "foo", "foob", "\u{fb}\u{ff}\u{bf}"] {
            assert_eq!(from_base64(&base64(text.as_bytes())), text.as_bytes());
        }
    }

    /// The example of RFC 7677.
    #[test]
    fn proof_is_that_of_the_standard() {
        let salt = from_base64("W22ZaJ0SNY7soEsUEjb6gQ==");
        let exchanged = "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                         s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let iterations = 4_096.try_into().unwrap();
        assert_eq!(
            proof("pencil", &salt, iterations, exchanged),
            "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
    }
}
