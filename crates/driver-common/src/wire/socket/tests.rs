use super::*;
use crate::wire::{Stream, Wire};
use kurabe_core::driver::ConnectOptions;
use kurabe_reactor::Reactor;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use std::net::TcpListener;
use std::thread;
use std::time::Instant;

const ALLOWED: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs one task.
fn in_task<T>(task: impl FnOnce() -> T) -> T {
    in_tasks(vec![task]).remove(0)
}

fn in_tasks<T>(tasks: Vec<impl FnOnce() -> T>) -> Vec<T> {
    let ended = Reactor::new(tasks, 256 * 1024).unwrap().run();
    ended.into_iter().map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
}

fn server() -> (TcpListener, Place) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, Place::Tcp { host: "127.0.0.1".to_owned(), port })
}

fn connected(place: &Place, allowed: Duration) -> Socket {
    let mut socket = Socket::connect(place, allowed).unwrap();
    socket.ready();
    socket
}

/// One exchange of a few bytes with a server that sends them back.
fn exchange(socket: &mut Socket) {
    socket.begin().unwrap();
    socket.write_all(b"ping").unwrap();
    let mut answer = [0; 4];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"ping");
}

fn echo(listener: TcpListener) {
    thread::spawn(move || {
        while let Ok((mut client, _)) = listener.accept() {
            thread::spawn(move || {
                let mut reader = client.try_clone().unwrap();
                let _ = io::copy(&mut reader, &mut client);
            });
        }
    });
}

#[test]
fn connecting_to_a_full_unix_queue_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("full.sock");
    let server = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&server, 0).unwrap();
    let place = Place::Unix(path);
    let attempt = || {
        let (began, mut met) = (Instant::now(), Vec::new());
        let error = loop {
            match Socket::connect(&place, ALLOWED) {
                Ok(socket) => met.push(socket),
                Err(error) => break error,
            }
        };
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
        assert!(met.len() < 10 && began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    };
    attempt();
    in_task(attempt);
}

#[test]
fn task_is_refused_as_a_thread_is() {
    let (listener, place) = server();
    drop(listener);
    let kind = || Socket::connect(&place, PATIENCE).unwrap_err().kind();
    assert_eq!((kind(), in_task(kind)), (io::ErrorKind::ConnectionRefused, io::ErrorKind::ConnectionRefused));
}

#[test]
fn socket_follows_its_user_from_a_thread_to_tasks_and_back() {
    let (listener, place) = server();
    echo(listener);
    let mut socket = connected(&place, PATIENCE);
    for _ in 0..3 {
        exchange(&mut socket);
        in_task(|| exchange(&mut socket));
        in_task(|| exchange(&mut socket));
    }
    let mut of_task = in_task(|| connected(&place, ALLOWED));
    exchange(&mut of_task);
    // A socket of a task has no timeouts in the kernel, until it blocks.
    of_task.begin().unwrap();
    let error = of_task.read(&mut [0]).unwrap_err();
    assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
}

#[test]
fn exchange_of_a_task_times_out_while_others_go_on() {
    let (listener, silent) = server();
    let (echoing, place) = server();
    echo(echoing);
    let waits = || -> usize {
        let mut socket = connected(&silent, ALLOWED);
        socket.begin().unwrap();
        socket.write_all(b"ping").unwrap();
        let error = socket.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        0
    };
    let goes_on = || {
        let (mut socket, began, mut exchanges) = (connected(&place, PATIENCE), Instant::now(), 0);
        while began.elapsed() < ALLOWED * 2 {
            exchange(&mut socket);
            exchanges += 1;
        }
        exchanges
    };
    let exchanges = in_tasks::<usize>(vec![Box::new(waits) as Box<dyn FnOnce() -> usize>, Box::new(goes_on)]);
    assert!(exchanges[1] > 10, "{exchanges:?}");
    drop(listener);
}

#[test]
fn pieces_of_an_answer_share_the_deadline_of_a_task() {
    let (listener, place) = server();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        // Each piece comes in time, the whole answer does not.
        while client.write_all(b"x").is_ok() {
            thread::sleep(ALLOWED / 8);
        }
    });
    in_task(|| {
        let mut socket = connected(&place, ALLOWED);
        socket.begin().unwrap();
        let began = Instant::now();
        let error = loop {
            if let Err(error) = socket.read(&mut [0; 16]) {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() < Duration::from_secs(20));
    });
    server.join().unwrap();
}

#[test]
fn end_that_arrives_with_the_last_bytes_is_received() {
    for pause in [0, 5] {
        let (listener, place) = server();
        in_task(|| {
            let mut socket = connected(&place, PATIENCE);
            let (mut client, _) = listener.accept().unwrap();
            socket.begin().unwrap();
            client.write_all(b"last words").unwrap();
            kurabe_reactor::sleep(Duration::from_millis(pause));
            drop(client);
            kurabe_reactor::sleep(Duration::from_millis(pause));
            let mut all = Vec::new();
            socket.read_to_end(&mut all).unwrap();
            assert_eq!(all, b"last words");
            // Once more, since nothing is reported again.
            assert_eq!(socket.read(&mut [0]).unwrap(), 0);
        });
    }
}

#[test]
fn task_receives_all_of_what_fills_its_buffer() {
    let (listener, place) = server();
    in_task(|| {
        let mut socket = connected(&place, PATIENCE);
        let (mut client, _) = listener.accept().unwrap();
        for round in 0..3 {
            socket.begin().unwrap();
            client.write_all(&[round; 100]).unwrap();
            let mut all = Vec::new();
            while all.len() < 100 {
                let mut piece = [0; 10];
                let got = socket.read(&mut piece).unwrap();
                all.extend_from_slice(&piece[..got]);
            }
            assert_eq!(all, [round; 100]);
        }
    });
}

#[test]
fn long_values_pass_in_both_directions_while_both_sides_wait() {
    const LENGTH: usize = 8 << 20;
    let (listener, place) = server();
    echo(listener);
    in_task(|| {
        let mut socket = connected(&place, PATIENCE);
        let sent: Vec<u8> = (0..LENGTH).map(|i| (i % 251) as u8).collect();
        let (mut at, mut received) = (0, Vec::new());
        socket.begin().unwrap();
        // The echo stops reading while nobody takes its answer, so that sends have to wait.
        while at < LENGTH {
            let end = (at + (1 << 18)).min(LENGTH);
            socket.write_all(&sent[at..end]).unwrap();
            at = end;
            while received.len() < at {
                received.reserve(1 << 17);
                socket.receive(&mut received).unwrap();
            }
        }
        assert!(received == sent);
    });
}

#[test]
fn socket_that_another_thread_shuts_down_wakes_its_task() {
    let (listener, place) = server();
    in_task(|| {
        let mut socket = connected(&place, PATIENCE);
        let _client = listener.accept().unwrap();
        let again = socket.stream().try_clone().unwrap();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            again.shutdown(std::net::Shutdown::Both).unwrap();
        });
        socket.begin().unwrap();
        assert_eq!(socket.read(&mut [0]).unwrap(), 0);
        other.join().unwrap();
    });
}

#[test]
fn pipeline_longer_than_all_buffers_is_sent_while_its_answers_are_received() {
    const LENGTH: usize = 8 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("echo.sock");
    let server = std::os::unix::net::UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        // It does not receive while it sends, and each of its answers is longer than the request.
        while let Ok((mut client, _)) = server.accept() {
            thread::spawn(move || {
                let mut piece = vec![0; 1 << 16];
                while let Ok(got @ 1..) = client.read(&mut piece) {
                    let answer = [&piece[..got], &piece[..got]].concat();
                    if client.write_all(&answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let exchange = || {
        let options = ConnectOptions { timeout: PATIENCE, ..ConnectOptions::default() };
        let mut wire = Wire::new(Stream::connect(&Place::Unix(path.clone()), &options).unwrap());
        wire.ready();
        for _ in 0..2 {
            wire.send_pipeline(&mut vec![7; LENGTH]).unwrap();
            for _ in 0..2 {
                wire.next_answer();
                let mut received = Vec::new();
                wire.take_into(LENGTH, &mut received).unwrap();
                assert!(received.len() == LENGTH && received.iter().all(|byte| *byte == 7));
            }
        }
    };
    exchange();
    in_task(exchange);
}
