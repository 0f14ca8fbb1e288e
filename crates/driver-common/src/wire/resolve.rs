//! Host names: looked up within the time allowed, and cached, so that the resolver is not measured.

use crate::watchdog::within;
use kurabe_reactor::{Guard, Lock};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

type Addresses = Arc<[SocketAddr]>;

static FOUND: LazyLock<Lock<HashMap<(String, u16), Addresses>>> = LazyLock::new(Lock::default);

fn found() -> Guard<'static, HashMap<(String, u16), Addresses>> {
    FOUND.lock()
}

/// The addresses of a host: the host itself if it is an address, otherwise the cached result of its lookup.
pub fn addresses(host: &str, port: u16, timeout: Duration) -> io::Result<Addresses> {
    addresses_by(host, port, timeout, |name| name.to_socket_addrs().map(Iterator::collect))
}

/// Like [`addresses`], with this resolver.
fn addresses_by(
    host: &str,
    port: u16,
    timeout: Duration,
    resolver: impl FnOnce(&(String, u16)) -> io::Result<Addresses> + Send + 'static,
) -> io::Result<Addresses> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(Arc::new([SocketAddr::new(address, port)]));
    }
    let name = (host.to_owned(), port);
    if let Some(known) = found().get(&name) {
        return Ok(Arc::clone(known));
    }
    let asked = name.clone();
    let looked = within(timeout, move || resolver(&asked), drop);
    let all: Addresses = looked.map_err(io::Error::other)?.ok_or(io::ErrorKind::TimedOut)??;
    if all.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    }
    found().insert(name, Arc::clone(&all));
    Ok(all)
}

/// Removes a name from the cache, because none of its addresses answered.
pub fn forget(host: &str, port: u16) {
    found().remove(&(host.to_owned(), port));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn name_is_looked_up_once_until_it_is_forgotten() {
        let first = addresses("localhost", 4711, Duration::from_secs(20)).unwrap();
        // A lookup would time out.
        let second = addresses("localhost", 4711, Duration::ZERO).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        forget("localhost", 4711);
        let third = addresses("localhost", 4711, Duration::from_secs(20)).unwrap();
        assert!(!Arc::ptr_eq(&first, &third));
    }

    #[test]
    fn lookup_times_out() {
        let began = Instant::now();
        let hangs = |_: &(String, u16)| {
            std::thread::sleep(Duration::from_secs(20));
            Ok(Arc::new([]) as Addresses)
        };
        let error = addresses_by("hangs.invalid", 1, Duration::from_millis(50), hangs).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }

    #[test]
    fn address_needs_no_lookup() {
        let found = addresses("::1", 5, Duration::ZERO).unwrap();
        assert_eq!(found[..], ["[::1]:5".parse().unwrap()]);
    }
}
