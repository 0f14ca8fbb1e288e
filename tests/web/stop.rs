//! Starting and stopping.

use super::common::{App, Said, wait_for_answers};
use crate::servers::common::sql;
use crate::support::eventually;
use kurabe_testbed::testing;
use std::io::Write;
use std::net::TcpStream;

#[test]
fn running_requests_finish_before_shutdown() {
    let Some(server) = testing::server("memcached") else { return };
    for signal in ["-TERM", "-INT"] {
        let app = App::start(server.url(), &["--workers", "1", "--queue", "1"]);
        let mut idle = app.connect();
        assert_eq!(app.get("/kv/read").status, 200);
        server.pause().unwrap();
        let mut streams: Vec<TcpStream> = (0..4).map(|_| app.connect()).collect();
        for stream in &mut streams {
            stream.write_all(b"GET /kv/read?key=9 HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        }
        // The other two are at the worker and in the queue.
        wait_for_answers(&streams, 2);
        app.signal(signal);
        let address = app.address;
        let closed = eventually(60, || TcpStream::connect(address).is_err().then_some(()));
        assert!(closed.is_some(), "it still listens");
        server.resume().unwrap();
        let said: Vec<Said> = streams.iter_mut().map(Said::read).collect();
        let good: Vec<&Said> = said.iter().filter(|said| said.status == 200).collect();
        assert_eq!(good.len(), 2, "{said:?}");
        assert!(good.iter().all(|said| said.field("connection").as_deref() == Some("close")), "{said:?}");
        assert_eq!(std::io::Read::read(&mut idle, &mut [0; 1]).unwrap(), 0);
        app.ended().success();
    }
}

#[test]
fn tables_are_removed_even_after_database_restart() {
    let Some(server) = testing::server("postgres") else { return };
    let tables = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'kurabe%'";
    for outage in [false, true] {
        let app = App::start(server.url(), &[]);
        assert_eq!(app.post("/kv/write").status, 200);
        assert!(sql(&server, "", tables).unwrap().contains("kurabe_0_kv_w"));
        if outage {
            server.kill_hard().unwrap();
            server.restart().unwrap();
        }
        let answer = app.stop().success();
        assert_eq!(sql(&server, "", tables).unwrap().trim(), "", "{answer:?}");
    }
}
