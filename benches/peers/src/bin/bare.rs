//! The least that a client can pay for a point read: one `recv` and one `send` of the driver's own bytes a read, and one `epoll_wait`
//! for all clients that have an answer. No check, no clock, no histogram. `cargo xtask bench peers` has it as a row.
//!
//! It knows no protocol. The driver logs in and prepares; then, for each key, its socket is replaced by one end of a pair while it
//! reads that key, so that the request and the length of the answer are what the driver itself sent and received.
//!
//! `bare URL CLIENTS SECONDS` prints reads, seconds, those of CPU in user space and in the kernel, and system calls.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../../crates/drivers/benches/prelude/mod.rs"]
mod prelude;

use prelude::*;
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::os::fd::FromRawFd;
use std::time::Duration;

const ROWS: i64 = 10_000;
const TABLE: &str = "kurabe_bench_bare";
/// Requests that are recorded in all, and of a client at least.
const RECORDED: usize = 4_096;
const OF_A_CLIENT: usize = 16;
/// Reads between two looks at the clock.
const UNCLOCKED: u64 = 4_096;

/// A connection, with what the driver sent for each of its keys and the length of each answer.
struct Client {
    /// Kept: its end closes the connection.
    _session: Box<dyn Session>,
    socket: OwnedFd,
    requests: Vec<(Vec<u8>, usize)>,
    next: usize,
    /// Bytes of the answer that have not arrived.
    missing: usize,
}

impl Client {
    fn new(fixture: &Fixture, keys: impl Iterator<Item = i64>) -> Self {
        let before = sockets();
        let (mut session, get) = fixture.worker(&fixture.get());
        let number = *sockets().difference(&before).next().expect("the driver opened a socket");
        // SAFETY: the session owns this descriptor and lives as long as the client; it is never closed here.
        let mut driven = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
        let socket = driven.try_clone().unwrap();
        let requests = keys.map(|key| recorded(&mut *session, &get, key, &mut driven, &socket)).collect();
        Self { _session: session, socket, requests, next: 0, missing: 0 }
    }

    fn send(&mut self) {
        let (request, answer) = &self.requests[self.next];
        self.next = (self.next + 1) % self.requests.len();
        self.missing = *answer;
        assert_eq!(send(&self.socket, request, SendFlags::NOSIGNAL).unwrap(), request.len());
    }

    /// Whether the answer is complete.
    fn receive(&mut self, buffer: &mut [u8]) -> bool {
        let (got, _) = recv(&self.socket, buffer, RecvFlags::empty()).unwrap();
        assert!(got > 0, "the server closed a connection");
        self.missing = self.missing.saturating_sub(got);
        self.missing == 0
    }
}

/// The numbers of all sockets of this process.
fn sockets() -> BTreeSet<i32> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_socket = |path: &std::path::Path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    all.filter(|entry| is_socket(&entry.path()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// What the driver sends to read a key, and the length of the server's answer.
fn recorded(
    session: &mut dyn Session,
    get: &Prepared,
    key: i64,
    driven: &mut OwnedFd,
    server: &OwnedFd,
) -> (Vec<u8>, usize) {
    let (theirs, ours) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    let kept = server.try_clone().unwrap();
    rustix::io::dup2(&theirs, driven).unwrap();
    let (mut request, mut answer, mut buffer) = (Vec::new(), 0, vec![0; 1 << 16]);
    std::thread::scope(|scope| {
        let read = scope.spawn(|| session.execute(get, &[Value::Int(key)], &mut Reply::new()).unwrap());
        while !read.is_finished() {
            let mut fds = [PollFd::new(&ours, PollFlags::IN), PollFd::new(&kept, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 1_000_000 })).unwrap();
            let [from_driver, from_server] = [0, 1].map(|at| fds[at].revents().contains(PollFlags::IN));
            if from_driver {
                let (got, _) = recv(&ours, &mut buffer[..], RecvFlags::empty()).unwrap();
                request.extend_from_slice(&buffer[..got]);
                send(&kept, &buffer[..got], SendFlags::NOSIGNAL).unwrap();
            }
            if from_server {
                let (got, _) = recv(&kept, &mut buffer[..], RecvFlags::empty()).unwrap();
                answer += got;
                send(&ours, &buffer[..got], SendFlags::NOSIGNAL).unwrap();
                // Mostly the answer was whole.
                (0..100).take_while(|_| !read.is_finished()).for_each(|_| std::thread::yield_now());
            }
        }
    });
    rustix::io::dup2(&kept, driven).unwrap();
    assert!(!request.is_empty() && answer > 0);
    (request, answer)
}

/// Ticks of CPU of this process in user space and in the kernel.
fn ticks() -> [u64; 2] {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let mut fields = stat.rsplit(')').next().unwrap().split_whitespace().skip(11);
    [(); 2].map(|()| fields.next().unwrap().parse().unwrap())
}

/// Reads for this long. Returns the numbers of reads and of system calls.
fn read_for(clients: &mut [Client], time: Duration) -> [u64; 2] {
    let (mut reads, mut calls, mut buffer) = (0, 0, vec![0; 1 << 16]);
    let began = std::time::Instant::now();
    let is_over = |reads: u64| reads.is_multiple_of(UNCLOCKED) && began.elapsed() >= time;
    if let [client] = clients {
        // A lone client blocks, as the driver's does.
        loop {
            client.send();
            calls += 1;
            loop {
                calls += 1;
                if client.receive(&mut buffer) {
                    break;
                }
            }
            reads += 1;
            if is_over(reads) {
                return [reads, calls];
            }
        }
    }
    let all = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    for (number, client) in clients.iter_mut().enumerate() {
        epoll::add(
            &all,
            client.socket.as_fd(),
            epoll::EventData::new_u64(number as u64),
            epoll::EventFlags::IN,
        )
        .unwrap();
        client.send();
    }
    let mut events = [MaybeUninit::uninit(); 256];
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let mut outstanding = clients.len();
    let mut ends = false;
    while outstanding > 0 {
        let (ready, _) = epoll::wait(&all, &mut events, Some(&limit)).unwrap();
        assert!(!ready.is_empty(), "no answer for ten seconds");
        calls += 1;
        for event in ready {
            let client = &mut clients[event.data.u64() as usize];
            calls += 1;
            if client.receive(&mut buffer) {
                reads += 1;
                ends |= is_over(reads);
                if ends {
                    outstanding -= 1;
                } else {
                    client.send();
                    calls += 1;
                }
            }
        }
    }
    [reads, calls]
}

fn main() {
    let [url, clients, seconds] = arguments().try_into().expect("bare URL CLIENTS SECONDS");
    let (count, seconds): (usize, f64) = (clients.parse().unwrap(), seconds.parse().unwrap());
    let fixture = Fixture::new(&url, collection(TABLE, FieldType::Int, FieldType::Bytes { max: 100 }));
    let (mut session, insert) = fixture.worker(&fixture.insert());
    let begins = session.prepare(&Operation::Begin);
    if let Ok(begin) = &begins {
        session.execute(begin, &[], &mut Reply::new()).unwrap();
    }
    for key in 0..ROWS {
        session.execute(&insert, &[Value::Int(key), Value::Bytes(&[b'x'; 100])], &mut Reply::new()).unwrap();
    }
    if begins.is_ok() {
        once(&mut *session, &Operation::Commit, &[]);
    }
    let keys = (RECORDED / count).max(OF_A_CLIENT);
    let mut all: Vec<Client> = (0..count)
        .map(|client| Client::new(&fixture, (0..keys).map(|n| ((client * keys + n) as i64 * 7_919) % ROWS)))
        .collect();
    read_for(&mut all, Duration::from_millis(100));
    let (before, mut made) = (ticks(), [0, 0]);
    let (cpu, clock) =
        cost(ClockId::ProcessCPUTime, 1, || made = read_for(&mut all, Duration::from_secs_f64(seconds)));
    let [user, kernel] = [0, 1].map(|at| (ticks()[at] - before[at]) as f64 / 100.0);
    println!(
        "reads: {} seconds: {:.4} cpu: {:.4} user: {user} kernel: {kernel} calls: {}",
        made[0],
        clock / 1e6,
        cpu / 1e6,
        made[1]
    );
    drop(all);
    fixture.remove();
}
