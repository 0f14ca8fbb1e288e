//! What of the memcached driver only a real server shows.

use kurabe_core::ErrorKind;
use kurabe_core::driver::Driver;
use kurabe_core::target::TargetUrl;
use kurabe_testbed::{Server, testing};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

fn open(url: &str) -> Box<dyn Driver> {
    kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap()
}

/// Sends a request to a server behind the driver's back, and gives so many lines of the answer.
fn say(server: &Server, request: &str, lines: usize) -> Vec<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    BufReader::new(stream).lines().take(lines).map(Result::unwrap).collect()
}

#[test]
fn claim_expires_and_is_not_taken_from_another_run() {
    for settings in [&[][..], &[("C", "")]] {
        let choose = |options| {
            settings.iter().fold(options, |options: kurabe_testbed::StartOptions, (name, value)| {
                options.set(*name, value)
            })
        };
        let Some(server) = testing::server_with("memcached", choose) else { return };
        let driver = open(server.url());
        let mut one = driver.namespace().unwrap();
        one.claim("first").unwrap();
        // Seconds that it has left.
        let left = say(&server, "mg kurabe_claim t", 1).remove(0);
        let left: i64 = left.strip_prefix("HD t").unwrap().parse().unwrap();
        assert!((50..=60).contains(&left), "{left}");
        // The same run may reach the server by another target.
        let again = server.url().replace("127.0.0.1", "localhost");
        let mut same = open(&again).namespace().unwrap();
        same.claim("first").unwrap();
        drop(same);
        let error = open(&again).namespace().unwrap().claim("second").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InUse, "{error}");
        assert!(error.to_string().contains("run first"), "{error}");
        // It expired, say because this machine slept, and another run has it now.
        assert_eq!(say(&server, "set kurabe_claim 0 60 5\r\nother", 1), ["STORED"]);
        drop(one);
        assert_eq!(say(&server, "get kurabe_claim", 2)[1], "other");
        assert_eq!(say(&server, "delete kurabe_claim", 1), ["DELETED"]);
        driver.namespace().unwrap().claim("third").unwrap();
        assert_eq!(say(&server, "get kurabe_claim", 1), ["END"]);
    }
}
