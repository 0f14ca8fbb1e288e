//! Variants connect as they say: the database counts.

use super::{Stack, there};
use crate::servers::common::sql;
use kurabe_testbed::{Server, testing};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Requests of a page.
const REQUESTS: u64 = 20;
const WORKERS: u64 = 4;

/// Connections that the server has accepted. Asking is one more.
fn accepted(server: &Server) -> Option<u64> {
    let answer = sql(server, "", "SHOW GLOBAL STATUS LIKE 'Connections'")?;
    Some(answer.split_whitespace().last().unwrap().parse().unwrap())
}

fn get(address: SocketAddr, path: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert_eq!(answer.split(' ').nth(1), Some("200"), "{path}: {answer}");
}

/// The connections that the server accepts while a page is requested.
fn opened(server: &Server, address: SocketAddr, path: &str) -> Option<u64> {
    let before = accepted(server)?;
    for _ in 0..REQUESTS {
        get(address, path);
    }
    Some(accepted(server)? - before - 1)
}

fn variants_connect_as_they_say(stack: &str) {
    if !there(stack, "mariadb") {
        return;
    }
    let Some(server) = testing::server("mariadb") else { return };
    let variants = kurabe_testbed::variants(stack).unwrap().iter();
    for variant in variants.filter(|variant| variant.databases.contains(&"mariadb")) {
        let workers = WORKERS.to_string();
        let running = Stack::before(stack, server.url(), &["--variant", variant.name, "--workers", &workers]);
        let Some(read) = opened(&server, running.address, "/connect/read") else { return };
        match variant.connection {
            Some("per-request") => assert_eq!(read, REQUESTS, "{stack}/{}", variant.name),
            _ => assert!(read <= WORKERS, "{stack}/{}: {read}", variant.name),
        }
        let new = opened(&server, running.address, "/connect/new");
        assert_eq!(new, Some(REQUESTS), "{stack}/{}", variant.name);
    }
}

/// A test of one stack.
macro_rules! connections {
    ($($name:ident: $stack:literal;)*) => {
        $(#[test]
        fn $name() {
            variants_connect_as_they_say($stack);
        })*
    };
}

connections! {
    variants_of_php_connect_as_they_say: "php";
    variants_of_java_connect_as_they_say: "java";
    variants_of_python_connect_as_they_say: "python";
    variants_of_node_connect_as_they_say: "node";
    variants_of_mod_php_connect_as_they_say: "mod_php";
    variants_of_perl_connect_as_they_say: "perl";
}
