//! The ways to a server: TCP, TLS, Unix sockets.

use crate::common::{CLIENTS, ENGINES, by, connect, once, open, refusal, with, with_password};
use kurabe_core::ErrorKind;
use kurabe_core::operation::Operation;
use kurabe_testbed::testing;

#[test]
fn tls_is_used_where_it_is_asked_for_and_only_with_whom_it_should() {
    for engine in ENGINES {
        let Some(server) = testing::server_with(engine, |options| options.with_tls().with_password("secret"))
        else {
            continue;
        };
        let ca = server.ca().unwrap().display().to_string();
        for client in CLIENTS {
            let url = with_password(&by(&server, client), "secret");
            let context = format!("{engine} {client}");
            for option in ["tls=require".to_owned(), format!("tls=verify&ca={ca}")] {
                let url = with(&url, &option);
                let facts =
                    open(&url).unwrap().describe().unwrap_or_else(|e| panic!("{context} {option}: {e}"));
                assert!(
                    facts.transport.starts_with("TCP with TLS"),
                    "{context} {option}: {}",
                    facts.transport
                );
                let mut session = connect(&url).unwrap();
                once(&mut *session, &Operation::Ping, &[]).unwrap();
                session.close().unwrap();
            }
            let error = refusal(&with(&url, "tls=verify"));
            assert_eq!(error.kind(), ErrorKind::Denied, "{context}: {error}");
            assert!(error.to_string().contains("ca=FILE"), "{context}: {error}");
            let facts = open(&with(&url, "tls=off")).unwrap().describe().unwrap();
            assert_eq!(facts.transport, "TCP", "{context}");
        }
    }
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    // MySQL and MariaDB make themselves a certificate unless they are told not to.
    let Some(server) = testing::server("postgres") else { return };
    for client in CLIENTS {
        let error = refusal(&with(&by(&server, client), "tls=require"));
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{client}: {error}");
        assert!(error.to_string().contains("no TLS"), "{client}: {error}");
    }
}

#[test]
fn a_unix_socket_is_used_where_it_is_named() {
    for engine in ENGINES {
        let Some(server) = testing::server(engine) else { continue };
        let Some(socket) = server.socket() else { panic!("{engine} has no socket") };
        for client in CLIENTS {
            let url = with(&by(&server, client), &format!("socket={}", socket.display()));
            let facts = open(&url).unwrap().describe().unwrap_or_else(|e| panic!("{url}: {e}"));
            assert_eq!(facts.transport, "Unix socket");
            let error = refusal(&url.replace(".sock", ".nothing").replace(".s.PGSQL.", ".nothing/.s.PGSQL."));
            assert_eq!(error.kind(), ErrorKind::Unreachable, "{engine} {client}: {error}");
        }
    }
}
