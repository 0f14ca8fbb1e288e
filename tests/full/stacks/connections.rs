//! Variants connect as they say: the database counts.

use super::{Stack, there};
use crate::servers::common::sql;
use kurabe_testbed::{Server, testing};
use std::process::Command;

/// Requests of a page.
const REQUESTS: u64 = 20;
const WORKERS: u64 = 4;

/// Connections that the server has accepted. Asking is one more.
fn accepted(server: &Server) -> Option<u64> {
    let answer = sql(server, "", "SHOW GLOBAL STATUS LIKE 'Connections'")?;
    Some(answer.split_whitespace().last().unwrap().parse().unwrap())
}

fn get(stack: &Stack, path: &str) {
    let url = format!("http://{}{}{path}", stack.login, stack.address);
    let answer = Command::new("curl").args(["-s", "-0", "-w", "%{http_code}", &url]).output().unwrap();
    let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
    assert!(answer.ends_with("200"), "{path}: {answer}");
}

/// The connections that the server accepts while a page is requested.
fn opened(server: &Server, stack: &Stack, path: &str) -> Option<u64> {
    let before = accepted(server)?;
    for _ in 0..REQUESTS {
        get(stack, path);
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
        let Some(read) = opened(&server, &running, "/connect/read") else { return };
        match variant.connection {
            Some("per-request") => assert_eq!(read, REQUESTS, "{stack}/{}", variant.name),
            _ => assert!(read <= WORKERS, "{stack}/{}: {read}", variant.name),
        }
        let new = opened(&server, &running, "/connect/new");
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
