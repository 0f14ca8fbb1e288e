//! The rate of loopback itself, measured beside a trial: the limit of whatever is moved between processes of one machine.

use crate::prelude::*;
use kurabe_core::job::Side;
use kurabe_core::observation::{Endpoint, Observation};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const LOOPBACK: Metric = Metric::new(
    "loopback",
    Unit::Bytes,
    Better::Neither,
    "bytes per second that one thread sent another over TCP on this machine, just after the trial: what the network \
     alone gives",
);
pub(super) const LOOPBACK_SHARE: Metric = Metric::new(
    "share of loopback",
    Unit::Share,
    Better::Neither,
    "bytes of the trial on the wire per second, divided by that",
);

/// Bytes of each send and receive, as iperf3 has by default. Shorter ones give less.
const BLOCK: usize = 128 * 1024;
/// How long bytes flow before they are counted, and while they are.
const WARM_UP: Duration = Duration::from_millis(20);
const COUNTED: Duration = Duration::from_millis(100);
/// The longest wait for a single block.
const STALLED: Duration = Duration::from_secs(2);

/// Measures loopback, if a trial's server was reached by it, and relates the trial's bytes on the wire to it. Empty if
/// not, or if it cannot be measured.
pub(super) fn metrics(
    endpoint: &Endpoint,
    observed: Option<&Observation>,
    elapsed: Duration,
    pin: &(dyn Fn(Side) + Sync),
) -> Vec<MetricValue> {
    if !is_loopback(endpoint) {
        return Vec::new();
    }
    let Ok(rate) = rate(pin) else { return Vec::new() };
    let wire = observed.and_then(|observed| observed.wire);
    let share = wire.map(|wire| {
        let bytes = (wire.sent_bytes + wire.received_bytes) as f64;
        LOOPBACK_SHARE.value(bytes / elapsed.as_secs_f64().max(f64::MIN_POSITIVE) / rate)
    });
    [LOOPBACK.value(rate)].into_iter().chain(share).collect()
}

fn is_loopback(endpoint: &Endpoint) -> bool {
    let Endpoint::Tcp { host, .. } = endpoint else { return false };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Bytes per second from a thread on the servers' processors to one on the clients'.
fn rate(pin: &(dyn Fn(Side) + Sync)) -> io::Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, peer) = listener.accept()?;
    if peer != sender.local_addr()? {
        return Err(io::Error::other("another process connected"));
    }
    sender.set_write_timeout(Some(STALLED))?;
    receiver.set_read_timeout(Some(STALLED))?;
    thread::scope(|scope| {
        let sending = thread::Builder::new().name("loopback".to_owned()).spawn_scoped(scope, move || {
            pin(Side::Servers);
            let block = vec![0; BLOCK];
            // Until the receiver closes the connection.
            while sender.write_all(&block).is_ok() {}
        })?;
        let counting = thread::Builder::new().name("loopback".to_owned()).spawn_scoped(scope, move || {
            pin(Side::Clients);
            count(&mut receiver)
        })?;
        let counted = counting.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked")));
        let _ = sending.join();
        counted
    })
}

/// Counts the bytes that arrive in [`COUNTED`], as a rate.
fn count(receiver: &mut TcpStream) -> io::Result<f64> {
    let mut block = vec![0; BLOCK];
    let mut receive = |until: Instant| -> io::Result<u64> {
        let mut bytes = 0;
        while Instant::now() < until {
            match receiver.read(&mut block)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => bytes += got as u64,
            }
        }
        Ok(bytes)
    };
    receive(Instant::now() + WARM_UP)?;
    let began = Instant::now();
    let bytes = receive(began + COUNTED)?;
    Ok(bytes as f64 / began.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kurabe_core::observation::WireUse;

    fn found(endpoint: &Endpoint, observed: Option<&Observation>, seconds: u64) -> Vec<MetricValue> {
        metrics(endpoint, observed, Duration::from_secs(seconds), &|_| {})
    }

    fn tcp(host: &str) -> Endpoint {
        Endpoint::Tcp { host: host.to_owned(), port: 1 }
    }

    #[test]
    fn share_is_that_of_the_bytes_on_the_wire() {
        let wire = WireUse { sent_bytes: 1_000, received_bytes: 9_000, ..WireUse::default() };
        let observed = Observation { wire: Some(wire), ..Observation::default() };
        let values = found(&tcp("127.0.0.1"), Some(&observed), 2);
        let [rate, share] = &values[..] else { panic!("{values:?}") };
        assert_eq!((rate.name.as_str(), share.name.as_str()), (LOOPBACK.name, LOOPBACK_SHARE.name));
        // Slower than any machine is.
        assert!(rate.value > 1e6, "{rate:?}");
        assert!((share.value * rate.value - 5_000.0).abs() < 1.0, "{values:?}");
        assert_eq!(found(&tcp("::1"), None, 1).len(), 1);
    }

    #[test]
    fn server_that_is_not_reached_by_loopback_has_no_such_limit() {
        let others = [tcp("10.0.0.1"), tcp("db.example"), Endpoint::InProcess, Endpoint::Unix("/s".into())];
        for endpoint in others {
            assert_eq!(found(&endpoint, None, 1), []);
        }
    }
}
