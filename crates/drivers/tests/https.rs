//! Applications over TLS.

use crate::common::open;
use kurabe_core::ErrorKind;
use kurabe_core::driver::ConnectOptions;
use kurabe_core::operation::Operation;
use kurabe_core::value::{Reply, Value};
use kurabe_testbed::{Server, StartOptions, testing};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The throwaway certificate of a server's.
fn config(server: &Server) -> Arc<ServerConfig> {
    let file = |name: &str| server.ca().unwrap().with_file_name(name);
    let chain = vec![CertificateDer::from_pem_file(file("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(file("server-key.pem")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

/// Answers each request with the same page, and counts connections. Gives the port.
fn application(server: &Server) -> (u16, Arc<AtomicUsize>) {
    let config = config(server);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, connections) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&connections);
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            std::thread::spawn(move || {
                let mut stream = StreamOwned::new(session, socket);
                let mut said = Vec::new();
                let mut piece = [0; 4_096];
                while let Ok(got @ 1..) = stream.read(&mut piece) {
                    said.extend_from_slice(&piece[..got]);
                    if said.ends_with(b"\r\n\r\n") {
                        said.clear();
                        let page = b"{\"seed\": 1, \"records\": 300}";
                        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
                        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(page));
                        if sent.and_then(|()| stream.flush()).is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (port, connections)
}

#[test]
fn application_is_asked_over_tls_by_whom_its_certificate_names() {
    let Some(server) = testing::server_with("redis", StartOptions::with_tls) else { return };
    let (port, connections) = application(&server);
    let ca = server.ca().unwrap().display();
    for options in [format!("ca={ca}"), "tls=require".to_owned()] {
        let driver = open(&format!("https://127.0.0.1:{port}?{options}"));
        assert_eq!(driver.describe().unwrap().transport, "TCP with TLS");
        let before = connections.load(Ordering::SeqCst);
        let mut session = driver.connect(&ConnectOptions::default()).unwrap();
        let page = session.prepare(&Operation::Page { writes: false, last: false }).unwrap();
        let mut out = Reply::new();
        for _ in 0..3 {
            session.execute(&page, &[Value::Text("/kv")], &mut out).unwrap();
            assert!(out.field_bytes(0, 0).unwrap().starts_with(b"{\"seed\""));
        }
        // A connection that rested is used again, since nothing came meanwhile.
        std::thread::sleep(Duration::from_millis(1_200));
        session.execute(&page, &[Value::Text("/kv")], &mut out).unwrap();
        session.close_checked().unwrap();
        assert_eq!(connections.load(Ordering::SeqCst) - before, 1);
        // What TLS sends for itself, such as tickets, is not what an application sends unasked.
        let began = Instant::now();
        let unused = driver.connect(&ConnectOptions::default()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
        unused.close_checked().unwrap();
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
    let error = open(&format!("https://127.0.0.1:{port}")).describe().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert!(error.to_string().contains("ca=FILE"), "{error}");
    // An application without TLS answers with what is no handshake.
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = plain.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut socket in plain.incoming().flatten() {
            let _ = socket.read(&mut [0; 512]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let error = open(&format!("https://127.0.0.1:{port}")).describe().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Protocol | ErrorKind::ConnectionLost), "{error}");
}
