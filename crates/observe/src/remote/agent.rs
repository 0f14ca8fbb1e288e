//! The agent's side: `kurabe observe`.

use super::channel::{self, Channel, Token};
use super::{Answer, RemoteSample, Request, boot};
use crate::monitor::Monitor;
use kurabe_core::observation::{Observer, ServerUse};
use rustix::net::sockopt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of concurrent runs.
const MOST: usize = 32;
/// The maximum number of unauthenticated connections, in all and from one address. They are counted apart from runs.
const MAX_UNAUTHENTICATED: usize = 32;
const MAX_UNAUTHENTICATED_PER_PEER: usize = 8;
/// A run that neither sends requests nor observes is disconnected after this time.
const IDLE: Duration = Duration::from_secs(60);
const TOO_MANY: &str = "too many runs are observed at the same time";
/// The timeout for authentication.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which the stop flag is checked.
const POLL: Duration = Duration::from_millis(100);
/// A run that disappears without closing its connection is detected after this time.
const SILENCE: Duration = Duration::from_secs(30);

/// An event of the agent, for its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// A run began to observe the server at this port; the name of the server's program.
    Watched(SocketAddr, u16),
    /// A run requested what cannot be observed here, or the connection failed; why, as a clause.
    Refused(SocketAddr, String),
}

/// Reports this host's server metrics to remote runs.
#[derive(Debug)]
pub struct Agent {
    listener: TcpListener,
    token: Token,
}

impl Agent {
    /// Listens.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn listen(address: SocketAddr, token: Token) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, token })
    }

    /// The address at which it listens.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the stop flag is set; reports events.
    pub fn serve(&self, stop: &AtomicBool, events: &Sender<AgentEvent>) {
        let busy = Slots::default();
        let unauthenticated: Mutex<Vec<IpAddr>> = Mutex::new(Vec::new());
        let monitor = Monitor::new();
        std::thread::scope(|scope| {
            while !stop.load(Ordering::Relaxed) {
                let Ok((stream, from)) = self.listener.accept() else {
                    std::thread::sleep(POLL);
                    continue;
                };
                let (busy, unauthenticated, monitor, events) =
                    (&busy, &unauthenticated, &monitor, events.clone());
                let Some(unauthenticated) = Unauthenticated::admit(unauthenticated, from.ip()) else {
                    let why = channel::TOO_MANY_UNAUTHENTICATED;
                    let _ = prepare(&stream).map(|()| channel::refuse(stream, why));
                    let _ = events.send(AgentEvent::Refused(from, why.to_owned()));
                    continue;
                };
                let started = std::thread::Builder::new().name("agent".to_owned()).spawn_scoped(scope, {
                    let events = events.clone();
                    move || {
                        let heard = self.meet(stream, unauthenticated, busy);
                        let served = heard
                            .and_then(|(channel, _slot)| serve_run(channel, from, monitor, stop, &events));
                        if let Err(why) = served {
                            let _ = events.send(AgentEvent::Refused(from, why));
                        }
                    }
                });
                // Without a thread the connection is closed.
                let _ = started;
            }
        });
    }

    /// Authenticates the other side, and reserves a slot for the run.
    fn meet<'a>(
        &self,
        stream: TcpStream,
        unauthenticated: Unauthenticated<'_>,
        busy: &'a Slots,
    ) -> Result<(Channel, Slot<'a>), String> {
        prepare(&stream).map_err(|error| error.to_string())?;
        let closing = stream.try_clone().map_err(|error| error.to_string())?;
        let channel = channel::within(closing, TIMEOUT, || Channel::accept(stream, &self.token))?;
        drop(unauthenticated);
        match busy.take() {
            Some(slot) => Ok((channel, slot)),
            None => Err(turn_away(channel)),
        }
    }
}

/// Sends a run the reason why it is rejected.
fn turn_away(mut channel: Channel) -> String {
    // Its request is read and answered, so that it reads the reason.
    let _ = channel.receive::<Request>();
    let _ = channel.send(&Answer::Not(TOO_MANY.to_owned()));
    TOO_MANY.to_owned()
}

fn serve_run(
    mut channel: Channel,
    from: SocketAddr,
    monitor: &Monitor,
    stop: &AtomicBool,
    events: &Sender<AgentEvent>,
) -> Result<(), String> {
    while let Some(Request::Begin { host, port }) = next(&mut channel, stop, Some(IDLE))? {
        let endpoint = crate::find::here(&host, port);
        if let Err(why) = crate::find::listeners(&endpoint) {
            channel.send(&Answer::Not(why.clone()))?;
            let _ = events.send(AgentEvent::Refused(from, why));
            continue;
        }
        let guard = monitor.begin(&endpoint);
        channel.send(&Answer::Begun { boot: boot() })?;
        let _ = events.send(AgentEvent::Watched(from, port));
        // A peer that closes the connection meanwhile does not need the answer.
        let Some(Request::End) = next(&mut channel, stop, None)? else { return Ok(()) };
        let seen = guard.end();
        let wire = seen.wire.unwrap_or_default();
        channel.send(&match seen.server {
            ServerUse::Seen(server) => Answer::Ended(Box::new(RemoteSample {
                server: *server,
                host: seen.host,
                samples: seen.samples,
                classified: wire.classified,
                at_server: wire.at_server,
            })),
            ServerUse::NotObserved(why) => Answer::Not(why),
            ServerUse::InClient => Answer::Not("it has no process of its own".to_owned()),
        })?;
    }
    Ok(())
}

/// The number of authenticated runs.
#[derive(Debug, Default)]
struct Slots(AtomicUsize);

impl Slots {
    fn take(&self) -> Option<Slot<'_>> {
        let slot = Slot(self);
        (self.0.fetch_add(1, Ordering::Relaxed) < MOST).then_some(slot)
    }
}

/// The slot of one run, released on drop.
struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An unauthenticated connection.
struct Unauthenticated<'a> {
    all: &'a Mutex<Vec<IpAddr>>,
    peer: IpAddr,
}

impl<'a> Unauthenticated<'a> {
    /// `None` if there are too many, from this peer or in all.
    fn admit(all: &'a Mutex<Vec<IpAddr>>, peer: IpAddr) -> Option<Self> {
        let mut known = all.lock().unwrap_or_else(PoisonError::into_inner);
        let of_peer = known.iter().filter(|other| **other == peer).count();
        if known.len() >= MAX_UNAUTHENTICATED || of_peer >= MAX_UNAUTHENTICATED_PER_PEER {
            return None;
        }
        known.push(peer);
        Some(Self { all, peer })
    }
}

impl Drop for Unauthenticated<'_> {
    fn drop(&mut self) {
        let mut known = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = known.iter().position(|other| *other == self.peer) {
            known.swap_remove(at);
        }
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    Ok(())
}

/// The next request; `None` if the run has ended, or sent no request for the time `idle`. A trial may be long: while
/// it is observed, only the end of the connection or of this program ends the wait.
fn next(channel: &mut Channel, stop: &AtomicBool, idle: Option<Duration>) -> Result<Option<Request>, String> {
    let since = Instant::now();
    loop {
        let _ = channel.stream().set_read_timeout(Some(POLL));
        match channel.stream().peek(&mut [0]) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if stop.load(Ordering::Relaxed) || idle.is_some_and(|idle| since.elapsed() >= idle) {
                    return Ok(None);
                }
            }
            _ => break,
        }
    }
    let _ = channel.stream().set_read_timeout(Some(TIMEOUT));
    channel.receive()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Remote;
    use kurabe_core::observation::{Endpoint, MonitorGuard};
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::thread::JoinHandle;

    const TOKEN: &str = "a token of some length";

    struct Running {
        port: u16,
        stop: Arc<AtomicBool>,
        events: Receiver<AgentEvent>,
        thread: Option<JoinHandle<()>>,
    }

    impl Running {
        fn start() -> Self {
            let token = Token::new(TOKEN).unwrap();
            let agent = Agent::listen("127.0.0.1:0".parse().unwrap(), token).unwrap();
            let port = agent.address().unwrap().port();
            let stop = Arc::new(AtomicBool::new(false));
            let (sender, events) = channel();
            let flag = Arc::clone(&stop);
            let thread = Some(std::thread::spawn(move || agent.serve(&flag, &sender)));
            Self { port, stop, events, thread }
        }

        fn monitor(&self, token: &str, server: &Endpoint) -> Monitor {
            let mut monitor = Monitor::new();
            let remote = Remote::new("127.0.0.1", self.port, Token::new(token).unwrap());
            monitor.use_agent(server.clone(), remote);
            monitor
        }

        fn stop(&mut self) {
            self.stop.store(true, Ordering::Relaxed);
            self.thread.take().unwrap().join().unwrap();
        }
    }

    /// A listening process that uses the CPU. It is not this process, which an agent refuses to observe.
    struct Listener(Child, u16);

    impl Listener {
        fn start() -> Self {
            let program = std::env::current_exe().unwrap();
            let args =
                ["--exact", "remote::agent::tests::listening_busy_process", "--ignored", "--nocapture"];
            let mut command = Command::new(program);
            let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
            let mut ports = lines.filter_map(|line| line.split("listens at ").nth(1)?.parse().ok());
            Self(child, ports.next().unwrap())
        }

        fn endpoint(&self) -> Endpoint {
            Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: self.1 }
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    #[ignore = "the tests below run it in a process of its own"]
    #[allow(clippy::print_stdout, reason = "it is how it says where it listens")]
    fn listening_busy_process() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        println!("\nlistens at {}", listener.local_addr().unwrap().port());
        let gone = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&gone);
        // Until its parent has ended.
        std::thread::spawn(move || {
            let _ = io::Read::read(&mut io::stdin(), &mut [0]);
            flag.store(true, Ordering::Relaxed);
        });
        while !gone.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }

    fn watched(guard: Box<dyn MonitorGuard>) -> ServerUse {
        std::thread::sleep(Duration::from_millis(200));
        guard.end().server
    }

    #[test]
    fn server_is_observed_through_agent() {
        let (mut observer, server) = (Running::start(), Listener::start());
        let monitor = observer.monitor(TOKEN, &server.endpoint());
        let ServerUse::Seen(seen) = watched(monitor.begin(&server.endpoint())) else { panic!("not seen") };
        assert!(seen.name.starts_with("kurabe_observe"), "{seen:?}");
        assert!(seen.cpu_ns > 10_000_000, "{seen:?}");
        assert!(matches!(observer.events.recv().unwrap(), AgentEvent::Watched(_, port) if port == server.1));
        observer.stop();
    }

    #[test]
    fn unauthenticated_connections_take_no_run_slot_and_time_out() {
        let (mut observer, server) = (Running::start(), Listener::start());
        // They send nothing, or a byte from time to time.
        let idle: Vec<TcpStream> =
            (0..MOST + 8).map(|_| TcpStream::connect(("127.0.0.1", observer.port)).unwrap()).collect();
        let refused = |event: &AgentEvent| matches!(event, AgentEvent::Refused(_, why) if why.contains("unauthenticated"));
        assert!(observer.events.iter().take(MOST).all(|event| refused(&event)));
        let began = Instant::now();
        // Accepted connections are closed at their timeout, even if they send single bytes.
        let dripping = idle.iter().find(|stream| stream.peer_addr().is_ok()).unwrap();
        while began.elapsed() < TIMEOUT + Duration::from_secs(1) {
            let _ = io::Write::write(&mut &*dripping, &[0]);
            std::thread::sleep(Duration::from_millis(300));
        }
        let monitor = observer.monitor(TOKEN, &server.endpoint());
        let seen = watched(monitor.begin(&server.endpoint()));
        assert!(matches!(seen, ServerUse::Seen(_)), "{seen:?}");
        drop(idle);
        observer.stop();
    }

    #[test]
    fn run_over_the_limit_is_rejected_with_reason() {
        let mut observer = Running::start();
        let server = Listener::start();
        let token = || Token::new(TOKEN).unwrap();
        let open =
            || Channel::open(TcpStream::connect(("127.0.0.1", observer.port)).unwrap(), &token()).unwrap();
        let runs: Vec<Channel> = (0..MOST).map(|_| open()).collect();
        let remote = || Remote::new("127.0.0.1", observer.port, token());
        let why = remote().try_out("127.0.0.1", server.1).unwrap_err();
        assert!(why.contains(TOO_MANY), "{why}");
        drop(runs);
        let mut left = 500;
        while remote().try_out("127.0.0.1", server.1).is_err() && left > 0 {
            left -= 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(left > 0, "no slot became free");
        observer.stop();
    }

    #[test]
    fn unobservable_server_is_reported_with_reason() {
        let (mut observer, server) = (Running::start(), Listener::start());
        let not = |use_: ServerUse| match use_ {
            ServerUse::NotObserved(why) => why,
            other => panic!("{other:?}"),
        };
        let monitor = observer.monitor("another token of a length", &server.endpoint());
        let why = not(watched(monitor.begin(&server.endpoint())));
        assert!(why.contains("another token") && why.contains(&observer.port.to_string()), "{why}");
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let nobody = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: free };
        let why = not(watched(observer.monitor(TOKEN, &nobody).begin(&nobody)));
        assert!(why.contains("no process here listens"), "{why}");
        // The server ends during the observation, and does not exist for the next.
        let monitor = observer.monitor(TOKEN, &server.endpoint());
        let guard = monitor.begin(&server.endpoint());
        observer.stop();
        let why = not(watched(guard));
        assert!(why.contains("closed the connection"), "{why}");
        let why = not(watched(monitor.begin(&server.endpoint())));
        assert!(why.contains("nothing listens there"), "{why}");
    }
}
