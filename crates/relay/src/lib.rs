//! A relay of connections to a server. A [`Hook`] decides what becomes of each piece of data: it forwards it, replaces it,
//! delays it ([`Late`]), answers it itself, or ends the connection. Only the account of this process may connect, and root, unless
//! [`Listen`] says that all may.

mod admission;
mod hook;
mod late;
mod listener;
mod lock;
mod own_socket;
mod pump;
mod queue;
mod socket;
mod stream;
mod tls;

pub use admission::{Clients, Refused};
pub use hook::{End, Ends, Hook, Through, forward_both, on_piece};
pub use late::Late;
pub use listener::{At, Listen, Listener};
pub use lock::lock;
pub use queue::Queue;
pub use socket::{Socket, Way};
pub use stream::{Server, Stream};
pub use tls::Tls;

use hook::NO_THREAD;
use listener::POLL;
use pump::{Passing, Pump};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Any free port of loopback.
pub const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Open files of each connection, and those of all else.
const FILES_OF_CONNECTION: u64 = 2;
const FILES: u64 = 256;

/// A relay, which listens until it is dropped.
pub struct Relay {
    listener: Listener,
    shared: Arc<Shared>,
}

struct Shared {
    server: Server,
    open: Arc<Mutex<HashMap<usize, Open>>>,
    /// The shared threads, if connections have none of their own.
    pump: Option<Pump>,
}

/// A connection while it is open; it has no sockets until the server is reached.
struct Open {
    hook: Arc<dyn Hook>,
    sockets: Vec<Socket>,
}

impl Relay {
    /// Listens, and makes a hook for each connection, which are numbered from 0. Each connection has threads of its own.
    ///
    /// # Errors
    /// If the address cannot be used, or there is no thread. [`Unsupported`](io::ErrorKind::Unsupported) if the system does not
    /// say which account a connection is of.
    pub fn start(
        listen: impl Into<Listen>,
        server: Server,
        make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static,
    ) -> io::Result<Self> {
        Self::listen(listen.into(), server, make, false)
    }

    /// As [`Relay::start`], with a few threads for all connections. [`Hook::piece`] must not wait, and [`Hook::serve`] is
    /// not called.
    ///
    /// # Errors
    /// As [`Relay::start`].
    pub fn on_shared_threads(
        listen: impl Into<Listen>,
        server: Server,
        make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static,
    ) -> io::Result<Self> {
        Self::listen(listen.into(), server, make, true)
    }

    fn listen(
        listen: Listen,
        server: Server,
        make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static,
        is_shared: bool,
    ) -> io::Result<Self> {
        let open = Arc::default();
        let of_pump = Arc::clone(&open);
        let pump =
            is_shared.then(|| Pump::start(move |number, hook| close(&of_pump, number, hook))).transpose()?;
        let shared = Arc::new(Shared { server, open, pump });
        let (accepting, next) = (Arc::clone(&shared), AtomicUsize::new(0));
        let listener = Listener::start(listen, move |client| {
            let number = next.fetch_add(1, Ordering::SeqCst);
            let hook = make(number);
            let open = {
                let mut open = lock(&accepting.open);
                open.insert(number, Open { hook: Arc::clone(&hook), sockets: Vec::new() });
                open.len() as u64
            };
            kurabe_os::limits::allow_open_files(FILES + FILES_OF_CONNECTION * open);
            let (shared, opened) = (Arc::clone(&accepting), Arc::clone(&hook));
            // Connecting to the server may take long, and must not delay other clients.
            let run = move || shared.run(number, client, &opened);
            if thread::Builder::new().name("relay".to_owned()).spawn(run).is_err() {
                hook.ended(Way::ToServer, End::Unreachable(NO_THREAD.to_owned()));
                close(&accepting.open, number, &*hook);
            }
        })?;
        Ok(Self { listener, shared })
    }

    /// Where it listens.
    pub fn at(&self) -> &At {
        self.listener.at()
    }

    /// Its address of TCP, or [`LOOPBACK`] if it listens at a Unix socket.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// The connections that were refused so far.
    pub fn refused(&self) -> &Refused {
        self.listener.refused()
    }

    /// Takes no further connections, waits up to this time for open ones to end, and shuts down the others.
    pub fn stop(&mut self, grace: Duration) {
        self.listener.stop();
        let until = Instant::now() + grace;
        while !lock(&self.shared.open).is_empty() && Instant::now() < until {
            thread::sleep(POLL);
        }
        for (_, open) in std::mem::take(&mut *lock(&self.shared.open)) {
            open.hook.ended(Way::ToServer, End::Relay);
            open.sockets.iter().for_each(|socket| socket.shutdown(Shutdown::Both));
        }
        if let Some(pump) = &self.shared.pump {
            pump.stop();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl Shared {
    fn run(&self, number: usize, client: Socket, hook: &Arc<dyn Hook>) {
        let connected = Socket::connect(&self.server).map(|server| (client, server));
        let served = connected.and_then(|(client, server)| {
            let kept = vec![client.handle(), server.handle()];
            // It is no longer there if the relay has stopped.
            let open = lock(&self.open).get_mut(&number).map(|open| open.sockets = kept);
            match &self.pump {
                _ if open.is_none() => Ok(false),
                Some(pump) => Ok(pump.add(Passing::new(number, Arc::clone(hook), client, server)?)),
                None => {
                    hook.serve(client, server);
                    Ok(false)
                }
            }
        });
        match served {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => hook.ended(Way::ToServer, End::Unreachable(error.to_string())),
        }
        close(&self.open, number, &**hook);
    }
}

fn close(open: &Mutex<HashMap<usize, Open>>, number: usize, hook: &dyn Hook) {
    hook.closed();
    lock(open).remove(&number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, ErrorKind, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::process::CommandExt as _;
    use std::process::Stdio;

    /// A relay before a listener of the test, a client that is connected through it, and the server's end.
    fn relayed(make: impl Fn(usize) -> Arc<dyn Hook> + Send + 'static) -> (Relay, TcpStream, TcpStream) {
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        let relay = Relay::start(LOOPBACK, listener.local_addr().unwrap().into(), make).unwrap();
        let client = TcpStream::connect(relay.address()).unwrap();
        (relay, client, listener.accept().unwrap().0)
    }

    /// The answer that a client of another account gets for what it sends, and the refusals of others and of clients that had closed; `None` if this process
    /// cannot start one.
    fn of_another_account(clients: Clients, account: u32) -> Option<(Vec<u8>, [u64; 2], Option<u32>)> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let listener = TcpListener::bind(LOOPBACK).unwrap();
        listener.set_nonblocking(true).unwrap();
        let server = listener.local_addr().unwrap().into();
        let relay =
            Relay::start(Listen { at: LOOPBACK.into(), clients }, server, |_| Arc::new(Through)).unwrap();
        // One that closes at once, as `echo FLUSHALL > /dev/tcp/…` does, and one that waits for an answer.
        let port = relay.address().port();
        let script = format!(
            "(echo FLUSHALL >/dev/tcp/127.0.0.1/{port}) || true; exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3; cat <&3"
        );
        let mut command = std::process::Command::new("bash");
        let command = command
            .args(["-c", &script])
            .uid(account)
            .gid(account)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while child.try_wait().unwrap().is_none() && Instant::now() < until {
            if let Ok((mut far, _)) = listener.accept() {
                far.set_nonblocking(false).unwrap();
                let mut line = String::new();
                std::io::BufReader::new(far.try_clone().unwrap()).read_line(&mut line).unwrap();
                far.write_all(format!("got {line}").as_bytes()).unwrap();
            }
            thread::sleep(POLL);
        }
        let mut answer = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut answer).unwrap();
        // Nothing of a client that is refused waits at the server either. One that may connect can arrive late.
        let reached = listener.accept().is_ok();
        assert!(!reached || clients == Clients::All || account == 0);
        let refused = relay.refused();
        Some((answer, [refused.others(), refused.gone()], refused.account()))
    }

    #[test]
    fn other_account_reaches_no_server_unless_all_may() {
        if let Some((answer, refused, account)) = of_another_account(Clients::Own, 54_321) {
            assert_eq!((answer, refused.iter().sum::<u64>(), account), (Vec::new(), 2, Some(54_321)));
        }
        if let Some((answer, refused, account)) = of_another_account(Clients::All, 54_321) {
            assert_eq!((&*answer, refused, account), (&b"got hello\n"[..], [0, 0], None));
        }
        if let Some((answer, [others, _], _)) = of_another_account(Clients::Own, 0) {
            assert_eq!((&*answer, others), (&b"got hello\n"[..], 0));
        }
    }

    #[test]
    fn late_requests_keep_their_distances_and_answers_are_not_delayed() {
        let delay = Duration::from_millis(60);
        let late = move |_| Arc::new(Late::new(delay, Duration::ZERO, &Arc::default())) as Arc<dyn Hook>;
        let (_relay, mut client, mut far) = relayed(late);
        let began = Instant::now();
        for _ in 0..3 {
            client.write_all(b"request").unwrap();
        }
        client.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        far.read_to_end(&mut received).unwrap();
        assert!(began.elapsed() >= delay);
        assert_eq!(received, b"request".repeat(3), "an end does not overtake data");
        far.write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
        // Closing one end closes the other.
        drop(far);
        assert_eq!(client.read(&mut answer).unwrap(), 0);
    }

    #[test]
    fn hook_replaces_answers_itself_and_cuts() {
        let (_relay, mut client, mut far) = relayed(|_| {
            on_piece(|way, piece, ends| match (way, &*piece) {
                (Way::ToServer, b"ping") => ends.from.write_all(b"pong"),
                (Way::ToServer, _) => ends.to.write_all(b"other"),
                (Way::ToClient, _) => Err(ErrorKind::ConnectionAborted.into()),
            })
        });
        let mut five = [0; 5];
        client.write_all(b"ping").unwrap();
        client.read_exact(&mut five[..4]).unwrap();
        assert_eq!(&five[..4], b"pong");
        client.write_all(b"this").unwrap();
        far.read_exact(&mut five).unwrap();
        assert_eq!(&five, b"other");
        far.write_all(b"answer").unwrap();
        assert_eq!(client.read(&mut five).unwrap_or(0), 0);
    }
}
