//! Authentication, by a server of the tests that knows a password. Its arithmetic is that of RFC 5802, by `ring`.

use super::fake::{Fake, Reaction, alone};
use super::{connect, open, run};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use kurabe_core::driver::ConnectOptions;
use kurabe_core::operation::Operation;
use kurabe_core::{Error, ErrorKind};
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;
use std::sync::Mutex;

const SALT: &[u8] = b"salt of the tests";
const PASSWORD: &str = "p@ss";

/// What the server does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    WrongProof,
    FewIterations,
    /// It does not answer the part of `hello` that begins to authenticate, and ends with an empty exchange.
    Old,
}

fn payload(text: &str) -> Bson {
    Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: text.as_bytes().to_vec() })
}

fn text(command: &Document) -> String {
    String::from_utf8(command.get_binary_generic("payload").unwrap().clone()).unwrap()
}

/// A server with the user `bob`, whose password is known by SCRAM with these mechanisms.
fn server(mechanisms: &'static [&'static str], fault: Fault) -> Fake {
    let conversation: Mutex<(String, String)> = Mutex::default();
    let first = move |command: &Document, state: &Mutex<(String, String)>| {
        let (mechanism, sent) = (command.get_str("mechanism").unwrap(), text(command));
        if !mechanisms.contains(&mechanism) {
            return None;
        }
        let bare = sent.strip_prefix("n,,").unwrap().to_owned();
        let nonce = bare.strip_prefix("n=bob,r=").unwrap().to_owned();
        let iterations = if fault == Fault::FewIterations { 1 } else { 4_096 };
        let answer = format!("r={nonce}server,s={},i={iterations}", STANDARD.encode(SALT));
        *state.lock().unwrap() = (mechanism.to_owned(), format!("{bare},{answer}"));
        Some(doc! { "conversationId": 1, "done": false, "payload": payload(&answer), "ok": 1.0 })
    };
    Fake::start(move |fake, request| match request.name() {
        "hello" => {
            let mut hello = alone(fake);
            if request.command.contains_key("saslSupportedMechs") {
                assert_eq!(request.command.get_str("saslSupportedMechs").ok(), Some("admin.bob"));
                hello.insert("saslSupportedMechs", mechanisms.to_vec());
            }
            if let (Ok(begun), false) =
                (request.command.get_document("speculativeAuthenticate"), fault == Fault::Old)
            {
                assert_eq!(begun.get_str("db").ok(), Some("admin"));
                hello.extend(
                    first(begun, &conversation)
                        .map(|first| ("speculativeAuthenticate".to_owned(), first.into())),
                );
            }
            Reaction::Answer(hello)
        }
        "saslStart" => Reaction::Answer(first(&request.command, &conversation).unwrap_or_else(denied)),
        "saslContinue" if text(&request.command).is_empty() => {
            Reaction::Answer(doc! { "conversationId": 1, "done": true, "payload": payload(""), "ok": 1.0 })
        }
        "saslContinue" => {
            let (mechanism, exchanged) = conversation.lock().unwrap().clone();
            Reaction::Answer(last(&mechanism, &exchanged, &text(&request.command), fault))
        }
        "buildInfo" => Reaction::Answer(doc! { "version": "8.0.4", "ok": 1.0 }),
        _ => Reaction::Answer(doc! { "ok": 1.0 }),
    })
}

fn denied() -> Document {
    doc! { "ok": 0.0, "errmsg": "Authentication failed.", "code": 18, "codeName": "AuthenticationFailed" }
}

/// Checks the client's proof, and answers with the server's.
fn last(mechanism: &str, exchanged: &str, sent: &str, fault: Fault) -> Document {
    let (hash, derive, length, password) = match mechanism {
        "SCRAM-SHA-1" => {
            let password = format!("{:x}", md5::compute(format!("bob:mongo:{PASSWORD}")));
            (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, pbkdf2::PBKDF2_HMAC_SHA1, 20, password)
        }
        _ => (hmac::HMAC_SHA256, pbkdf2::PBKDF2_HMAC_SHA256, 32, PASSWORD.to_owned()),
    };
    let mut salted = vec![0; length];
    pbkdf2::derive(derive, NonZeroU32::new(4_096).unwrap(), SALT, password.as_bytes(), &mut salted);
    let sign = |key: &[u8], text: &str| hmac::sign(&hmac::Key::new(hash, key), text.as_bytes());
    let client = sign(&salted, "Client Key");
    let stored = digest::digest(hash.digest_algorithm(), client.as_ref());
    let (without_proof, proof) = sent.rsplit_once(",p=").unwrap();
    let all = format!("{exchanged},{without_proof}");
    let signature = sign(stored.as_ref(), &all);
    let key: Vec<u8> =
        STANDARD.decode(proof).unwrap().iter().zip(signature.as_ref()).map(|(a, b)| a ^ b).collect();
    if key != client.as_ref() {
        return denied();
    }
    let all = if fault == Fault::WrongProof { "another exchange" } else { &all };
    let proof = sign(sign(&salted, "Server Key").as_ref(), all);
    let proof = format!("v={}", STANDARD.encode(proof));
    doc! { "conversationId": 1, "done": fault != Fault::Old, "payload": payload(&proof), "ok": 1.0 }
}

fn logged_in(fake: &Fake, user: &str, options: &str) -> Result<usize, Error> {
    let driver = open(&format!("mongodb://{user}@127.0.0.1:{}/?{options}", fake.port));
    driver.connect(&ConnectOptions::default())?;
    run(connect(driver.as_ref()).as_mut(), &Operation::Ping, &[])?;
    Ok(fake.requests("saslStart").len() + fake.requests("saslContinue").len())
}

#[test]
fn user_is_let_in_by_the_better_mechanism_that_the_server_has() {
    // Two connections of two round trips each, of which the first is that of `hello` where the server takes it.
    for (mechanisms, fault, options, requests) in [
        (&["SCRAM-SHA-1", "SCRAM-SHA-256"][..], Fault::None, "", 2),
        (&["SCRAM-SHA-256"], Fault::None, "authMechanism=SCRAM-SHA-256", 2),
        (&["SCRAM-SHA-1"], Fault::None, "authMechanism=SCRAM-SHA-1", 2),
        (&["SCRAM-SHA-1"], Fault::None, "", 4),
        (&["SCRAM-SHA-256"], Fault::Old, "", 6),
    ] {
        let fake = server(mechanisms, fault);
        assert_eq!(logged_in(&fake, "bob:p%40ss", options), Ok(requests), "{mechanisms:?} {options}");
    }
}

#[test]
fn wrong_password_and_servers_without_proof_are_refused() {
    for (user, fault, options, kind, part) in [
        ("bob:hunter2", Fault::None, "", ErrorKind::Denied, "authSource"),
        ("bob:p%40ss", Fault::None, "authMechanism=SCRAM-SHA-1", ErrorKind::Denied, "Authentication failed"),
        ("bob:p%40ss", Fault::WrongProof, "", ErrorKind::Protocol, "proof is wrong"),
        ("bob:p%40ss", Fault::FewIterations, "", ErrorKind::Protocol, "requests 1 iterations"),
        ("bob:p%40ss", Fault::None, "authMechanism=PLAIN", ErrorKind::Denied, "plain text"),
    ] {
        let fake = server(&["SCRAM-SHA-256"], fault);
        let error = logged_in(&fake, user, options).unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(part), "{user} {options}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
