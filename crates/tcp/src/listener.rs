//! The listener: accepts connections of all roles, each in a thread of its own.

use crate::content;
use crate::protocol::{Answer, Greeting, Hello, LARGEST_BLOCK, Received, Request, Role, receive, send};
use crate::results::Results;
use crate::socket;
use crate::turn::{Held, Turn};
use kurabe_os::account::{Accounts, Peer};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The maximum number of connections. Further ones are closed at once.
const MAX_CONNECTIONS: usize = 512;
/// The time limit of a greeting, and of the connection for which buffers were set.
const PATIENCE: Duration = Duration::from_secs(10);
/// Idle time after which the kernel checks that the other end still exists.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// The stack of a connection's thread, in bytes; its blocks are elsewhere.
const STACK: usize = 256 * 1024;
/// The length of a queue of connections that are not accepted yet.
const BACKLOG: i32 = 128;

/// A listener that is bound to its two ports.
pub struct Listener {
    automatic: TcpListener,
    sized: TcpListener,
    shared: Arc<Shared>,
}

struct Shared {
    /// The second listening socket, whose buffers new connections inherit.
    sized: Socket,
    hello: Hello,
    /// Who may change these buffers.
    turn: Turn,
    results: Results,
    connections: AtomicUsize,
    /// Looks up whose a connection is: those of other accounts are closed. `None`: everybody may connect.
    accounts: Option<Mutex<Accounts>>,
}

impl Listener {
    /// Binds to an address and a port (0: any free one), and to a second port of the same address, which the kernel
    /// chooses. With `accounts`, connections of other accounts are closed.
    pub fn bind(address: SocketAddr, accounts: Option<Accounts>) -> io::Result<Self> {
        let second = SocketAddr::new(address.ip(), 0);
        let sized = listening(second)?;
        // Last, since a connection to it means that the listener is ready.
        let automatic = listening(address)?;
        let hello = Hello {
            sized_port: local(&sized)?.port(),
            largest_receive: socket::kernel_limit(socket::RECEIVE_LIMIT),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel: socket::kernel(),
            congestion: socket::congestion(&automatic),
        };
        let (turn, results, connections) = (Turn::default(), Results::default(), AtomicUsize::new(0));
        let (accepting, accounts) = (sized.try_clone()?.into(), accounts.map(Mutex::new));
        let shared = Arc::new(Shared { sized, hello, turn, results, connections, accounts });
        Ok(Self { automatic: automatic.into(), sized: accepting, shared })
    }

    /// Its address and first port.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.automatic.local_addr()
    }

    /// Serves until the process ends.
    ///
    /// # Errors
    /// If a thread cannot be started, or a listening socket fails.
    pub fn serve(self) -> io::Result<()> {
        let (sized, shared) = (self.sized, Arc::clone(&self.shared));
        let accepting = thread::Builder::new().name("sized".to_owned());
        accepting.spawn(move || accept(&sized, &shared))?;
        accept(&self.automatic, &self.shared)
    }
}

impl Shared {
    fn admits(&self, stream: &TcpStream, from: SocketAddr) -> bool {
        let Some(accounts) = &self.accounts else { return true };
        let mut accounts = accounts.lock().unwrap_or_else(PoisonError::into_inner);
        stream.local_addr().and_then(|local| accounts.peer(local, from)).is_ok_and(|peer| peer == Peer::Own)
    }
}

fn listening(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

fn local(socket: &Socket) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) -> io::Result<()> {
    loop {
        // The client has left already, or there are too many open files: neither ends the listener.
        let Ok((stream, from)) = listener.accept() else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if !shared.admits(&stream, from) {
            continue;
        }
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let its = Arc::clone(shared);
        let serve = move || {
            // What went wrong with a connection, its client learns by its end.
            let _ = connection(stream, &its);
            its.connections.fetch_sub(1, Ordering::Relaxed);
        };
        let started = thread::Builder::new().name("connection".to_owned()).stack_size(STACK).spawn(serve);
        if started.is_err() {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn connection(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    let Greeting { role, block, token } = Greeting::receive(&mut stream)?;
    // Small answers must not wait for acknowledgements. A stream sends nothing back but its facts.
    stream.set_nodelay(true)?;
    if role == Role::Control {
        return control(stream, shared);
    }
    send(&socket::connected(&stream)?, &mut stream)?;
    // A client may pause for as long as it likes, and one that has vanished is found by the kernel.
    stream.set_read_timeout(None)?;
    let block = block.min(LARGEST_BLOCK) as usize;
    if role == Role::Echo {
        return echo(&mut stream, block);
    }
    let received = compare(&mut stream, block)?;
    shared.results.keep(token, received);
    Ok(())
}

fn control(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    send(&shared.hello, &mut stream)?;
    let mut held: Option<Held<'_>> = None;
    loop {
        stream.set_read_timeout(held.is_some().then_some(PATIENCE))?;
        // At the end of the connection it is an error, which ends this thread.
        let answer: Answer = match receive(&mut stream)? {
            Request::Ping => Ok(None),
            Request::Connected => {
                held = None;
                Ok(None)
            }
            Request::Buffers(bytes) => {
                // Held twice, it would wait for itself.
                drop(held.take());
                held = shared.turn.take(PATIENCE);
                let set = match held {
                    Some(_) => socket::set_buffers(&shared.sized, bytes).map_err(|error| error.to_string()),
                    None => Err("another client is about to connect".to_owned()),
                };
                if set.is_err() {
                    held = None;
                }
                set.map(|()| None)
            }
            Request::Result(token) => {
                let received = shared.results.take(token, PATIENCE);
                received.map(Some).ok_or_else(|| "no stream with this token has ended".to_owned())
            }
        };
        send(&answer, &mut stream)?;
    }
}

/// Receives blocks until the end of the connection, and compares every byte. Each read asks for the rest of a block.
fn compare(stream: &mut TcpStream, length: usize) -> io::Result<Received> {
    let expected = content::block(length);
    let mut buffer = vec![0; length];
    let mut received = Received::default();
    let (mut filled, mut number) = (0, 0);
    let before = socket::thread_cpu_ns();
    loop {
        let got = match stream.read(&mut buffer[filled..]) {
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        filled += got;
        if filled == length || got == 0 {
            if received.wrong_at.is_none() {
                let wrong = content::first_difference(&buffer[..filled], &expected, number);
                received.wrong_at = wrong.map(|at| received.bytes + at as u64);
            }
            received.bytes += filled as u64;
            number += 1;
            filled = 0;
        }
        if got == 0 {
            received.cpu_ns = socket::thread_cpu_ns().saturating_sub(before);
            return Ok(received);
        }
    }
}

/// Sends each block back, until the end of the connection.
fn echo(stream: &mut TcpStream, length: usize) -> io::Result<()> {
    let mut buffer = vec![0; length];
    loop {
        match stream.read_exact(&mut buffer) {
            Ok(()) => stream.write_all(&buffer)?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Connected;

    fn start() -> SocketAddr {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
        let address = listener.address().unwrap();
        thread::spawn(move || listener.serve());
        address
    }

    fn open(address: SocketAddr, buffers: u64, greeting: Greeting) -> TcpStream {
        let mut stream = socket::connect(address, buffers, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        send(&greeting, &mut stream).unwrap();
        stream
    }

    fn control(address: SocketAddr) -> (TcpStream, Hello) {
        let mut stream = open(address, 0, Greeting { role: Role::Control, block: 0, token: 0 });
        let hello = receive(&mut stream).unwrap();
        (stream, hello)
    }

    fn ask(control: &mut TcpStream, request: Request) -> Answer {
        send(&request, control).unwrap();
        receive(control).unwrap()
    }

    /// Sends `blocks` blocks, of which `alter` may change each; returns the listener's result.
    fn stream(blocks: u64, token: u64, alter: impl Fn(u64, &mut Vec<u8>)) -> Received {
        let address = start();
        let mut sending = open(address, 0, Greeting { role: Role::Stream, block: 1_000, token });
        receive::<Connected>(&mut sending).unwrap();
        for number in 0..blocks {
            let mut block = content::block(1_000);
            content::set_number(&mut block, number);
            alter(number, &mut block);
            sending.write_all(&block).unwrap();
        }
        drop(sending);
        let (mut control, _) = control(address);
        ask(&mut control, Request::Result(token)).unwrap().unwrap()
    }

    #[test]
    fn stream_is_counted_and_compared() {
        let received = stream(300, 5, |_, _| {});
        assert_eq!((received.bytes, received.wrong_at), (300_000, None));
        assert!(received.cpu_ns > 0);
    }

    #[test]
    fn changed_missing_and_repeated_bytes_are_found_where_they_are() {
        let flipped = stream(30, 1, |number, block| block[10] ^= u8::from(number == 20));
        assert_eq!((flipped.bytes, flipped.wrong_at), (30_000, Some(20_010)));
        let short = stream(30, 2, |number, block| block.truncate(if number == 7 { 999 } else { 1_000 }));
        assert_eq!((short.bytes, short.wrong_at), (29_999, Some(7_999)));
        let swapped =
            stream(30, 3, |number, block| content::set_number(block, number ^ u64::from(number == 9)));
        assert_eq!(swapped.wrong_at, Some(9_000));
        let cut = stream(3, 4, |number, block| block.truncate(if number == 2 { 500 } else { 1_000 }));
        assert_eq!((cut.bytes, cut.wrong_at), (2_500, None));
    }

    #[test]
    fn block_is_sent_back_by_echo() {
        let address = start();
        let mut echo = open(address, 0, Greeting { role: Role::Echo, block: 70_000, token: 0 });
        receive::<Connected>(&mut echo).unwrap();
        let block = content::block(70_000);
        for _ in 0..3 {
            echo.write_all(&block).unwrap();
            let mut back = vec![0; block.len()];
            echo.read_exact(&mut back).unwrap();
            assert!(back == block);
        }
    }

    #[test]
    fn connection_to_second_port_has_the_buffers_that_were_set() {
        let address = start();
        let (mut control, hello) = control(address);
        let sized = SocketAddr::new(address.ip(), hello.sized_port);
        for buffers in [16 * 1024, 64 * 1024, 32 * 1024] {
            assert_eq!(ask(&mut control, Request::Buffers(buffers)), Ok(None));
            let mut stream = open(sized, buffers, Greeting { role: Role::Echo, block: 1, token: 0 });
            let theirs: Connected = receive(&mut stream).unwrap();
            assert_eq!(ask(&mut control, Request::Connected), Ok(None));
            let ours = socket::connected(&stream).unwrap();
            for buffer in [ours.send_buffer, ours.receive_buffer, theirs.send_buffer, theirs.receive_buffer] {
                assert_eq!(buffer, 2 * buffers);
            }
            assert!(theirs.segment > 500 && !theirs.congestion.is_empty(), "{theirs:?}");
        }
    }

    #[test]
    fn turn_of_a_client_that_leaves_is_free_again() {
        let address = start();
        let (mut first, _) = control(address);
        assert_eq!(ask(&mut first, Request::Buffers(32 * 1024)), Ok(None));
        drop(first);
        let (mut second, _) = control(address);
        assert_eq!(ask(&mut second, Request::Buffers(32 * 1024)), Ok(None));
    }

    #[test]
    fn other_protocol_ends_its_own_connection_only() {
        let address = start();
        let mut http = TcpStream::connect(address).unwrap();
        http.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n        ").unwrap();
        let mut answer = Vec::new();
        // Closed with unread bytes, which is a reset.
        let _ = http.read_to_end(&mut answer);
        assert!(answer.is_empty());
        let (mut control, hello) = control(address);
        assert_eq!(hello.version, env!("CARGO_PKG_VERSION"));
        assert_eq!(ask(&mut control, Request::Ping), Ok(None));
    }
}
