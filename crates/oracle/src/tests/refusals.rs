//! Listeners that refuse connections, hang, send invalid data or use TLS. Each gives an error of the right kind, in
//! time, without a panic.

use super::super::link::Link;
use super::config;
use super::listener::{Listener, RESEND, packet, receive_connect, refuse, wait_for_end};
use kurabe_core::{Error, ErrorKind};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ALLOWED: Duration = Duration::from_secs(2);

/// The error of connecting. It must come in time and must not show the password.
fn refused(url: &str) -> Error {
    let began = Instant::now();
    let error = Link::connect(&config(url), ALLOWED).err().expect(url);
    let took = began.elapsed();
    assert!(took < ALLOWED + Duration::from_secs(5), "{url}: {took:?}: {error}");
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("hunter2"), "{text}");
    }
    error
}

fn of(serve: impl Fn(TcpStream) + Send + Sync + 'static, rest: &str) -> Error {
    refused(&Listener::start(serve).url(rest))
}

fn says(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "'{part}' is not in: {error}");
    }
}

#[test]
fn unknown_service_or_sid_is_reported() {
    let unknown = |number: u16| {
        move |mut stream: TcpStream| {
            let asked = receive_connect(&mut stream).unwrap();
            assert!(asked.contains("SERVICE_NAME=shop") || asked.contains("SID=shop"), "{asked}");
            refuse(
                &mut stream,
                &format!(
                    "(DESCRIPTION=(TMP=)(VSNNUM=318767104)(ERR={number})(ERROR_STACK=(ERROR=(CODE={number})(EMFI=4))))"
                ),
            );
        }
    };
    let error = of(unknown(12_514), "/shop");
    says(&error, ErrorKind::NotFound, &["no service 'shop'", "127.0.0.1:", "ORA-12514", "lsnrctl services"]);
    let error = of(unknown(12_505), "?sid=shop");
    says(&error, ErrorKind::NotFound, &["no SID 'shop'", "ORA-12505", "if it is a service name"]);
    let error = of(unknown(12_519), "/shop");
    says(&error, ErrorKind::Limit, &["ORA-12519", "fewer clients"]);
    let error = of(unknown(12_528), "/shop");
    says(&error, ErrorKind::Unreachable, &["ORA-12528", "starting"]);
}

#[test]
fn refusal_without_reason_or_with_invalid_reason_is_reported() {
    let error = of(
        |mut stream| {
            receive_connect(&mut stream);
            refuse(&mut stream, "");
        },
        "/shop",
    );
    says(&error, ErrorKind::Unreachable, &["refused", "log"]);
    // The crate unwraps the parsed number.
    let error = of(
        |mut stream| {
            receive_connect(&mut stream);
            refuse(&mut stream, "(ERR=what)");
        },
        "/shop",
    );
    says(&error, ErrorKind::Protocol, &["oracledb", "127.0.0.1:", "connecting"]);
}

#[test]
fn request_is_resent_on_demand() {
    let error = of(
        |mut stream| {
            receive_connect(&mut stream).unwrap();
            stream.write_all(&packet(RESEND, 0, &[])).unwrap();
            receive_connect(&mut stream).unwrap();
            refuse(&mut stream, "(ERR=12514)");
        },
        "/shop",
    );
    says(&error, ErrorKind::NotFound, &["ORA-12514"]);
}

#[test]
fn endless_resend_requests_time_out() {
    let error = of(
        |mut stream| {
            while receive_connect(&mut stream).is_some() {
                std::thread::sleep(Duration::from_millis(20));
                if stream.write_all(&packet(RESEND, 0, &[])).is_err() {
                    return;
                }
            }
        },
        "/shop",
    );
    says(&error, ErrorKind::Timeout, &["within the time allowed"]);
}

#[test]
fn panic_at_unknown_packet_is_contained() {
    // An acknowledgement instead of an accept: the crate panics.
    let error = of(
        |mut stream| {
            receive_connect(&mut stream);
            let _ = stream.write_all(&packet(3, 0, &[0, 0]));
            wait_for_end(&mut stream);
        },
        "/shop",
    );
    says(&error, ErrorKind::Protocol, &["oracledb", "not yet implemented", "report it"]);
}

#[test]
fn invalid_data_is_an_error_without_panic() {
    let nonsense: [&[u8]; 5] = [
        &[0; 64],
        b"\x00\x05\x00\x00\x02",
        b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
        b"220 mail.example.com ESMTP\r\n",
        &[0xff; 9_000],
    ];
    for bytes in nonsense {
        let error = of(
            move |mut stream| {
                let _ = stream.write_all(bytes);
                receive_connect(&mut stream);
            },
            "/shop",
        );
        assert!(
            matches!(error.kind(), ErrorKind::Protocol | ErrorKind::ConnectionLost | ErrorKind::Timeout),
            "{bytes:.8?}: {error}"
        );
        assert!(error.to_string().contains("127.0.0.1:"), "{error}");
    }
}

#[test]
fn closing_or_silent_listener_is_reported() {
    let error = of(drop, "/shop");
    says(&error, ErrorKind::ConnectionLost, &["closed the connection", "tls=verify"]);
    let error = of(|mut stream| wait_for_end(&mut stream), "/shop");
    says(&error, ErrorKind::Timeout, &["within the time allowed"]);
}

#[test]
fn closed_port_is_reported_at_once() {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let took = || {
        let began = Instant::now();
        let error = refused(&format!("oracle://scott@127.0.0.1:{port}/shop"));
        says(&error, ErrorKind::Unreachable, &["nothing listens at 127.0.0.1:", "lsnrctl status"]);
        began.elapsed()
    };
    // By default, the crate sleeps for a second after each failure. Several attempts, because a busy machine may be
    // slow.
    let soonest = (0..5).map(|_| took()).min().unwrap();
    assert!(soonest < Duration::from_millis(900), "{soonest:?}");
}

#[test]
fn tls_to_plain_listener_and_plain_to_tls_listener_are_reported() {
    let error = of(
        |mut stream| {
            // A plain listener replies to a TLS hello with a refusal in plain text.
            refuse(&mut stream, "(ERR=12560)");
            wait_for_end(&mut stream);
        },
        "/shop?tls=verify",
    );
    says(&error, ErrorKind::Protocol, &["no TLS connection", "one of TLS"]);
    let listener = tls_listener();
    // The first packet is not a TLS hello: the listener sends an alert and closes the connection.
    let error = refused(&listener.url("/shop"));
    assert!(matches!(error.kind(), ErrorKind::ConnectionLost | ErrorKind::Protocol), "{error}");
    assert!(error.to_string().contains("TLS") || error.to_string().contains("oracledb"), "{error}");
    // With TLS, no trusted certificate authority signed its certificate.
    let error = refused(&listener.url("/shop?tls=verify"));
    says(&error, ErrorKind::Denied, &["ertificate", "wallet="]);
    let error = refused(&listener.url("/shop?tls=verify&wallet=/nowhere"));
    says(&error, ErrorKind::NotFound, &["/nowhere", "ewallet.pem"]);
}

/// A TLS listener with a self-signed certificate.
fn tls_listener() -> Listener {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
    let config = Arc::new(config);
    Listener::start(move |mut stream| {
        let mut connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        while connection.is_handshaking() {
            if connection.complete_io(&mut stream).is_err() {
                // The alert.
                let _ = connection.write_tls(&mut stream);
                return;
            }
        }
    })
}

/// Creates a certificate for 127.0.0.1 and its key with the `openssl` program.
fn certificate(folder: &std::path::Path) -> (String, String) {
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| folder.join(name));
    let made = std::process::Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (std::fs::read_to_string(certificate).unwrap(), std::fs::read_to_string(key).unwrap())
}
