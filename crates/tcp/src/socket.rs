//! Socket options: buffers of a fixed size, and what the kernel reports.

use crate::protocol::Connected;
use rustix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The kernel's limit of a receive buffer that a process asks for.
pub const RECEIVE_LIMIT: &str = "net.core.rmem_max";
/// The kernel's limit of a send buffer that a process asks for.
pub const SEND_LIMIT: &str = "net.core.wmem_max";

/// A setting of the kernel by its name, as text on one line; empty if it cannot be read.
pub fn kernel_setting(name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A limit of the kernel in bytes; the largest number if it cannot be read.
pub fn kernel_limit(name: &str) -> u64 {
    kernel_setting(name).parse().unwrap_or(u64::MAX)
}

/// The kernel and its version.
pub fn kernel() -> String {
    let of = |name: &str| kernel_setting(&format!("kernel.{name}"));
    format!("{} {}", of("ostype"), of("osrelease"))
}

/// Sets both buffers of a socket. Linux adds as much again for its own bookkeeping, and never gives more than its
/// limits (`socket(7)`).
///
/// # Errors
/// [`OutOfMemory`](io::ErrorKind::OutOfMemory) if the kernel gives less; or its own error.
pub fn set_buffers(socket: &Socket, bytes: u64) -> io::Result<()> {
    let size = bytes as usize;
    socket.set_recv_buffer_size(size)?;
    socket.set_send_buffer_size(size)?;
    let given = [
        (socket.recv_buffer_size()?, "receive", RECEIVE_LIMIT),
        (socket.send_buffer_size()?, "send", SEND_LIMIT),
    ];
    match given.into_iter().find(|(given, ..)| *given < 2 * size) {
        None => Ok(()),
        Some((given, which, limit)) => Err(io::Error::new(
            io::ErrorKind::OutOfMemory,
            format!(
                "a {which} buffer of {bytes} bytes was asked for and the kernel gave {}: {limit}",
                given / 2
            ),
        )),
    }
}

/// Connects a socket whose buffers have this size; the kernel chooses and changes it if it is 0.
pub fn connect(address: SocketAddr, buffers: u64, timeout: Duration) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if buffers > 0 {
        set_buffers(&socket, buffers)?;
    }
    socket.connect_timeout(&SockAddr::from(address), timeout)?;
    Ok(socket.into())
}

/// What the kernel reports of a connection.
pub fn connected(stream: &TcpStream) -> io::Result<Connected> {
    let socket = SockRef::from(stream);
    Ok(Connected {
        receive_buffer: socket.recv_buffer_size()? as u64,
        send_buffer: socket.send_buffer_size()? as u64,
        segment: u64::from(socket.tcp_mss()?),
        congestion: congestion(&socket),
    })
}

/// The congestion control of a socket; empty if the kernel does not report it.
pub(crate) fn congestion(socket: &Socket) -> String {
    let name = socket.tcp_congestion().unwrap_or_default();
    let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}

/// CPU time of the calling thread, user and system, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_above_the_limit_of_the_kernel_is_refused() {
        let limit = kernel_limit(RECEIVE_LIMIT).min(kernel_limit(SEND_LIMIT));
        let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        set_buffers(&socket(), limit.min(64 * 1024)).unwrap();
        if limit < 1 << 29 {
            let error = set_buffers(&socket(), limit + 4_096).unwrap_err();
            assert!(
                error.kind() == io::ErrorKind::OutOfMemory && error.to_string().contains("mem_max"),
                "{error}"
            );
        }
    }

    #[test]
    fn thread_cpu_grows_with_work_of_this_thread() {
        let before = thread_cpu_ns();
        while thread_cpu_ns() < before + 1_000_000 {}
    }
}
