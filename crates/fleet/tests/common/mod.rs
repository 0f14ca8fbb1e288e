//! A broker for tests.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A process that ends with this value.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running `nats-server`.
pub struct Broker {
    pub url: String,
    _process: Process,
}

impl Broker {
    /// Starts one; `None`, with a visible skip, if it is not installed.
    pub fn start() -> Option<Self> {
        if !Command::new("nats-server").arg("--version").output().is_ok_and(|output| output.status.success())
        {
            println!("skipped: nats-server is not installed");
            return None;
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut broker = Command::new("nats-server");
        broker.args(["-a", "127.0.0.1", "-p", &port.to_string()]);
        broker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(broker.spawn().unwrap());
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(&address).is_err() {
            assert!(Instant::now() < until, "nats-server does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Some(Self { url: format!("nats://{address}"), _process: process })
    }
}
