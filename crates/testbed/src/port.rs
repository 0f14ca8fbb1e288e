//! A free loopback port.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};

use crate::TestbedError;

/// Below the ports that Linux uses for outgoing connections (32768 and above), so that none of those takes a server's
/// port during a restart.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that is free now. Another process may bind it before the server does; then the caller tries again.
pub(crate) fn free() -> Result<u16, TestbedError> {
    for _ in 0..64 {
        // std's hash keys are its only source of randomness, and sufficient here.
        let random = RandomState::new().build_hasher().finish();
        let port = RANGE.start + (random % RANGE.len() as u64) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    let failed = || TestbedError::io("finding a free port on 127.0.0.1");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed())?;
    Ok(listener.local_addr().map_err(failed())?.port())
}

#[cfg(test)]
mod tests {
    #[test]
    fn free_port_can_be_bound() {
        let port = super::free().unwrap();
        assert!(std::net::TcpListener::bind(("127.0.0.1", port)).is_ok());
    }
}
