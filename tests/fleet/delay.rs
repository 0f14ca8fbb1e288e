//! A relay that holds back all bytes for a while, as a long cable does, or until it is mended.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

/// A relay. Its connections stay open until one of their ends closes them.
pub(crate) struct Relay {
    address: String,
    cut: Arc<AtomicBool>,
}

impl Relay {
    /// Relays connections to `address`, and delays each direction by `delay`.
    pub(crate) fn start(address: &str, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let (address, cut) = (address.to_owned(), Arc::new(AtomicBool::new(false)));
        let is_cut = Arc::clone(&cut);
        thread::spawn(move || {
            for near in listener.incoming() {
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(&address)) else { continue };
                let (Ok(near_too), Ok(far_too)) = (near.try_clone(), far.try_clone()) else { continue };
                one_way(near, far, delay, Arc::clone(&is_cut));
                one_way(far_too, near_too, delay, Arc::clone(&is_cut));
            }
        });
        Self { address: own, cut }
    }

    /// Its own address, as that of a broker.
    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Holds back all bytes, or no longer.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.cut.store(is_cut, Ordering::Relaxed);
    }
}

fn one_way(mut from: TcpStream, mut to: TcpStream, delay: Duration, is_cut: Arc<AtomicBool>) {
    let _ = to.set_nodelay(true);
    let (held, due) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut bytes = vec![0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if held.send((Instant::now() + delay, bytes[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (at, bytes) in due {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            while is_cut.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
