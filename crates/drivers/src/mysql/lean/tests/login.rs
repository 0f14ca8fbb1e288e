//! How a client logs in.

use super::*;

fn config() -> Config {
    Config::from_url(&TargetUrl::parse("mysql://u:secret@h/d").unwrap()).unwrap()
}

pub(super) fn greeting() -> Vec<u8> {
    greeting_of("caching_sha2_password", b"abcdefghijklmnopqrst\0")
}

/// The greeting of a server with this default authentication method and its data.
fn greeting_of(plugin: &str, data: &[u8]) -> Vec<u8> {
    let mut out = b"\x0a9.7.0\0\x01\0\0\0".to_vec();
    out.extend_from_slice(&data[..8]);
    out.extend_from_slice(&[0, 0xff, 0xf7, 45, 2, 0, 0xff, 0xdf, data.len() as u8]);
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&data[8..]);
    out.extend_from_slice(plugin.as_bytes());
    out.push(0);
    out
}

pub(super) fn log_in(answers: Vec<u8>, piece: usize) -> (Result<()>, Vec<u8>) {
    log_in_with(&config(), answers, piece, false)
}

fn log_in_with(config: &Config, answers: Vec<u8>, piece: usize, private: bool) -> (Result<()>, Vec<u8>) {
    let mut packets = Packets::new(Wire::new(Script::in_pieces(answers, piece)));
    let result = handshake::Greeting::read(&mut packets).and_then(|greeting| {
        let agreed = greeting.agree(false, Compression::Off, Access::ReadWrite)?;
        handshake::log_in(&mut packets, config, &greeting, agreed, private).map(drop)
    });
    (result, packets.wire.stream().sent.clone())
}

#[test]
fn password_is_never_sent_in_plain_text_unencrypted() {
    let switch = b"\xfemysql_clear_password\0".to_vec();
    let answers = [packets(0, &[greeting()]), packets(2, &[switch])].concat();
    let (result, sent) = log_in(answers, 100);
    let error = result.unwrap_err();
    assert!(error.to_string().contains("plain text"), "{error}");
    let full = [packets(0, &[greeting()]), packets(2, &[b"\x01\x04".to_vec()])].concat();
    // By default the client requests no key: another server in its place could send its own, and read the password.
    let (result, sent_in_full) = log_in(full.clone(), 100);
    let error = result.unwrap_err();
    assert_eq!(error.server_code(), Some("2061"), "{error}");
    assert!(error.to_string().contains("get_server_public_key=true"), "{error}");
    let url = TargetUrl::parse("mysql://u:secret@h/d?get_server_public_key=true").unwrap();
    let (result, sent_to_asked) = log_in_with(&Config::from_url(&url).unwrap(), full, 100, false);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::ConnectionLost);
    // A packet of one byte, 2, asks for the key.
    let asks = |sent: &[u8]| sent.ends_with(b"\x01\0\0\x03\x02");
    assert!(asks(&sent_to_asked) && !asks(&sent_in_full));
    for sent in [sent, sent_in_full, sent_to_asked] {
        assert!(!sent.windows(6).any(|bytes| bytes == b"secret"));
    }
}

#[test]
fn password_is_sent_in_plain_text_only_if_url_allows_it() {
    let switch = b"\xfemysql_clear_password\0".to_vec();
    let switched = [packets(0, &[greeting()]), packets(2, &[switch]), packets(4, &[OK.to_vec()])].concat();
    let by_default = greeting_of("mysql_clear_password", &[0; 21]);
    let greeted = [packets(0, &[by_default]), packets(2, &[OK.to_vec()])].concat();
    let url = "mysql://u:secret@h/d?tls=verify";
    let config = |url: &str| Config::from_url(&TargetUrl::parse(url).unwrap()).unwrap();
    let (plain, allowed) = (config(url), config(&format!("{url}&enable_cleartext_plugin=true")));
    let sends = |sent: &[u8]| sent.windows(7).any(|bytes| bytes == b"secret\0");
    for answers in [switched, greeted] {
        // Encryption is not enough: an unverified server would receive the password.
        for (config, private) in [(&plain, false), (&plain, true), (&allowed, false)] {
            let (result, sent) = log_in_with(config, answers.clone(), 100, private);
            let error = result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
            assert!(error.to_string().contains("enable_cleartext_plugin=true") && !sends(&sent), "{error}");
        }
        let (result, sent) = log_in_with(&allowed, answers, 100, true);
        result.unwrap();
        assert!(sends(&sent));
    }
}

#[test]
fn ed25519_signs_whole_nonce_with_trailing_zero_byte() {
    let nonce = [&[7; 31][..], &[0]].concat();
    let proof = ed25519::sign(b"secret", &nonce);
    let switch = [&b"\xfeclient_ed25519\0"[..], &nonce].concat();
    let switched = [packets(0, &[greeting()]), packets(2, &[switch]), packets(4, &[OK.to_vec()])].concat();
    let by_default = greeting_of("client_ed25519", &nonce);
    let greeted = [packets(0, &[by_default]), packets(2, &[OK.to_vec()])].concat();
    for answers in [switched, greeted] {
        let (result, sent) = log_in(answers, 100);
        result.unwrap();
        assert!(sent.windows(proof.len()).any(|bytes| bytes == proof));
    }
    let short = b"\xfeclient_ed25519\0too short".to_vec();
    let (result, _) = log_in([packets(0, &[greeting()]), packets(2, &[short])].concat(), 100);
    assert!(result.unwrap_err().to_string().contains("a nonce of 9 bytes"));
}
