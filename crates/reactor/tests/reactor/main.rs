//! Tasks on one thread: sockets, deadlines, panics and stacks.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests are tests")]

mod sync;

use kurabe_reactor::{Interest, Lock, Reactor, Source, current, sleep, take_turn, time_in_queue, time_queue};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than any test takes, unless what it tests is wrong.
const PATIENCE: Duration = Duration::from_secs(60);
const STACK: usize = 64 * 1024;

/// One end of a connection of a task.
struct End(Source<UnixStream>);

impl End {
    fn new(socket: UnixStream) -> Self {
        socket.set_nonblocking(true).unwrap();
        Self(Source::new(socket).unwrap().expect("a task"))
    }

    fn tried<T>(
        &self,
        interest: Interest,
        left: Duration,
        mut what: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match what() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.0.wait(interest, left)?,
                done => return done,
            }
        }
    }

    fn receive(&self, left: Duration) -> io::Result<u8> {
        let mut byte = [0];
        let got = self.tried(Interest::Receive, left, || self.0.socket().read(&mut byte))?;
        if got == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(byte[0]) }
    }

    fn send(&self, byte: u8) {
        let sent = self.tried(Interest::Send, PATIENCE, || self.0.socket().write(&[byte]));
        assert_eq!(sent.unwrap(), 1);
    }
}

type Task<'a, T> = Box<dyn FnOnce() -> T + 'a>;

/// Runs tasks, all of which must end.
fn run<T>(tasks: Vec<Task<'_, T>>) -> Vec<T> {
    let results = Reactor::new(tasks, STACK).unwrap().run();
    results
        .into_iter()
        .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        .collect()
}

#[test]
fn thousand_connections_of_two_threads_exchange_in_order() {
    const CONNECTIONS: usize = 1_000;
    const ROUNDS: usize = 20;
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..CONNECTIONS).map(|_| UnixStream::pair().unwrap()).unzip();
    let echo = thread::spawn(move || {
        let task = |socket| -> Task<'_, ()> {
            Box::new(move || {
                let end = End::new(socket);
                while let Ok(byte) = end.receive(PATIENCE) {
                    end.send(byte.wrapping_add(1));
                }
            })
        };
        run(theirs.into_iter().map(task).collect());
    });
    let client = |(number, socket)| -> Task<'_, usize> {
        Box::new(move || {
            let end = End::new(socket);
            let right = |round: usize| {
                let byte = (number * 7 + round) as u8;
                take_turn();
                end.send(byte);
                end.receive(PATIENCE).unwrap() == byte.wrapping_add(1)
            };
            (0..ROUNDS).filter(|round| right(*round)).count()
        })
    };
    let right = run(ours.into_iter().enumerate().map(client).collect());
    assert_eq!(right, vec![ROUNDS; CONNECTIONS]);
    echo.join().unwrap();
}

#[test]
fn silent_and_slow_peers_delay_nobody_else() {
    let (silent, _open) = UnixStream::pair().unwrap();
    let (slow, mut answers) = UnixStream::pair().unwrap();
    let (fast, echo) = UnixStream::pair().unwrap();
    let mut tasks: Vec<Task<'_, String>> = Vec::new();
    tasks.push(Box::new(|| {
        End::new(silent).receive(Duration::from_millis(200)).unwrap_err().kind().to_string()
    }));
    tasks.push(Box::new(|| End::new(slow).receive(PATIENCE).unwrap().to_string()));
    tasks.push(Box::new(|| {
        let end = End::new(fast);
        for round in 0..100 {
            end.send(round);
            assert_eq!(end.receive(PATIENCE).unwrap(), round);
        }
        // Nobody would answer the slow one, had it delayed this task.
        answers.write_all(&[7]).unwrap();
        "fast".to_owned()
    }));
    tasks.push(Box::new(|| {
        let end = End::new(echo);
        while let Ok(byte) = end.receive(PATIENCE) {
            end.send(byte);
        }
        "echo".to_owned()
    }));
    let timed_out = io::ErrorKind::TimedOut.to_string();
    assert_eq!(run(tasks), [timed_out.as_str(), "7", "fast", "echo"]);
}

#[test]
fn deadlines_end_in_time_and_in_order_among_renewed_ones() {
    let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
    let order = RefCell::new(Vec::new());
    let task = |number: usize, ms: u64| -> Task<'_, ()> {
        let ((ours, theirs), order) = (&pairs[number], &order);
        Box::new(move || {
            let end = End::new(ours.try_clone().unwrap());
            // A long deadline that is not needed must not hide a short one.
            (&*theirs).write_all(&[1]).unwrap();
            assert_eq!(end.receive(PATIENCE).unwrap(), 1);
            let began = Instant::now();
            assert_eq!(end.receive(Duration::from_millis(ms)).unwrap_err().kind(), io::ErrorKind::TimedOut);
            assert!(began.elapsed() + Duration::from_millis(5) >= Duration::from_millis(ms));
            order.borrow_mut().push(number);
        })
    };
    run(vec![task(0, 700), task(1, 50), task(2, 300)]);
    assert_eq!(*order.borrow(), [1, 2, 0]);
}

#[test]
fn panic_fails_its_task_alone_even_if_its_destructors_wait() {
    struct WaitsOnDrop(End);
    impl Drop for WaitsOnDrop {
        fn drop(&mut self) {
            // Blocks the thread, since other tasks would otherwise see a panicking thread.
            assert_eq!(
                self.0.receive(Duration::from_millis(50)).unwrap_err().kind(),
                io::ErrorKind::TimedOut
            );
        }
    }
    let (socket, _other) = UnixStream::pair().unwrap();
    let lock = Lock::new(0);
    let mut tasks: Vec<Task<'_, bool>> = vec![Box::new(|| {
        let _waits = WaitsOnDrop(End::new(socket));
        let _guard = lock.lock();
        panic!("on purpose");
    })];
    for _ in 0..10 {
        tasks.push(Box::new(|| {
            for _ in 0..10 {
                take_turn();
                *lock.lock() += 1;
                assert!(!thread::panicking());
            }
            true
        }));
    }
    let results = Reactor::new(tasks, STACK).unwrap().run();
    let panic = results[0].as_ref().unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
    assert!(results[1..].iter().all(|result| *result.as_ref().unwrap()));
    assert_eq!(lock.into_inner(), 100);
}

#[test]
fn overflow_of_a_stack_ends_the_process_by_a_signal() {
    const CHILD: &str = "KURABE_TEST_OVERFLOW";
    fn deep(n: u64) -> u64 {
        let room = std::hint::black_box([n; 512]);
        if n == 0 { room[7] } else { deep(n - 1) + room[3] }
    }
    if std::env::var_os(CHILD).is_some() {
        // Far more than the stack; what lies below it is a guard page, not another stack.
        run(vec![Box::new(|| deep(1_000_000)) as Task<'_, u64>, Box::new(|| 0)]);
        return;
    }
    let name = "overflow_of_a_stack_ends_the_process_by_a_signal";
    let child =
        Command::new(std::env::current_exe().unwrap()).args(["--exact", name]).env(CHILD, "1").output();
    let status = child.unwrap().status;
    // SIGSEGV, or SIGABRT where the standard library recognises the overflow.
    assert!(matches!(status.signal(), Some(6 | 11)), "{status}");
}

#[test]
fn all_receive_before_any_sends() {
    let pairs: Vec<_> = (0..5).map(|_| UnixStream::pair().unwrap()).collect();
    let log = RefCell::new(String::new());
    let reader = |socket: &UnixStream| -> Task<'_, ()> {
        let (socket, log) = (socket.try_clone().unwrap(), &log);
        Box::new(move || {
            let end = End::new(socket);
            for _ in 0..2 {
                end.receive(PATIENCE).unwrap();
                log.borrow_mut().push('r');
                take_turn();
                log.borrow_mut().push('s');
            }
        })
    };
    let mut tasks: Vec<Task<'_, ()>> = pairs.iter().map(|(socket, _)| reader(socket)).collect();
    tasks.push(Box::new(|| {
        for _ in 0..2 {
            for (_, other) in &pairs {
                (&*other).write_all(&[1]).unwrap();
            }
            sleep(Duration::from_millis(20));
        }
    }));
    run(tasks);
    assert_eq!(log.into_inner(), "rrrrrsssss".repeat(2));
}

#[test]
fn connection_that_ends_is_seen_by_a_waiting_task() {
    let (socket, other) = UnixStream::pair().unwrap();
    let reads: Task<'_, bool> =
        Box::new(|| End::new(socket).receive(PATIENCE).unwrap_err().kind() == io::ErrorKind::UnexpectedEof);
    let ends: Task<'_, bool> = Box::new(move || {
        sleep(Duration::from_millis(5));
        drop(other);
        true
    });
    assert_eq!(run(vec![reads, ends]), [true, true]);
}

#[test]
fn report_that_nobody_waited_for_is_remembered() {
    let (socket, mut other) = UnixStream::pair().unwrap();
    let task: Task<'_, ()> = Box::new(move || {
        let end = End::new(socket);
        // The first report says that it can be sent to.
        sleep(Duration::from_millis(1));
        assert!(!end.0.may_receive());
        other.write_all(&[1]).unwrap();
        sleep(Duration::from_millis(1));
        assert!(end.0.may_receive());
        assert_eq!(end.receive(PATIENCE).unwrap(), 1);
        assert!(end.0.wait(Interest::Receive, Duration::from_millis(20)).is_err(), "it was received");
        assert!(!end.0.may_receive());
        drop(other);
        sleep(Duration::from_millis(1));
        for _ in 0..3 {
            assert!(end.0.may_receive());
            assert!(end.receive(PATIENCE).is_err());
        }
    });
    run(vec![task]);
}

#[test]
fn socket_moves_to_another_reactor_and_works_on_a_thread() {
    let (socket, mut other) = UnixStream::pair().unwrap();
    let first: Task<'_, Source<UnixStream>> = Box::new(|| End::new(socket).0);
    let source = run(vec![first]).remove(0);
    // Its reactor has ended: it blocks.
    let began = Instant::now();
    assert!(source.wait(Interest::Receive, Duration::from_millis(20)).is_err());
    assert!(began.elapsed() >= Duration::from_millis(20));
    other.write_all(&[1]).unwrap();
    source.wait(Interest::Receive, PATIENCE).unwrap();
    let again = source.socket().try_clone().unwrap();
    drop(source);
    let second: Task<'_, u8> = Box::new(|| End::new(again).receive(PATIENCE).unwrap());
    assert_eq!(run(vec![second]), [1]);
}

#[test]
fn time_in_queue_grows_while_another_task_runs() {
    let (one, first) = UnixStream::pair().unwrap();
    let (two, second) = UnixStream::pair().unwrap();
    let reader = |socket: UnixStream| -> Task<'_, Duration> {
        Box::new(move || {
            let end = End::new(socket);
            assert_eq!(time_in_queue(), None, "nothing is counted");
            time_queue();
            end.receive(PATIENCE).unwrap();
            let queued = time_in_queue().unwrap();
            thread::sleep(Duration::from_millis(30));
            assert_eq!(time_in_queue(), None, "it has ended");
            queued
        })
    };
    let writer: Task<'_, Duration> = Box::new(move || {
        (&first).write_all(&[1]).unwrap();
        (&second).write_all(&[1]).unwrap();
        Duration::ZERO
    });
    let queued = run(vec![reader(one), reader(two), writer]);
    assert!(queued[1] >= Duration::from_millis(30) && queued[0] < queued[1], "{queued:?}");
    assert_eq!(time_in_queue(), None);
}

#[test]
fn tasks_that_do_not_wait_share_the_thread() {
    let log = RefCell::new(Vec::new());
    let task = |number: usize| -> Task<'_, ()> {
        let log = &log;
        Box::new(move || {
            for _ in 0..3 {
                log.borrow_mut().push(number);
                take_turn();
            }
        })
    };
    run(vec![task(0), task(1)]);
    assert_eq!(log.into_inner(), [0, 1, 0, 1, 0, 1]);
}

#[test]
fn reactor_has_a_number_inside_only_and_may_have_no_tasks() {
    assert!(run::<()>(Vec::new()).is_empty());
    assert_eq!(current(), 0);
    let outer: Task<'_, (u64, u64, u64)> = Box::new(|| {
        let inner: Task<'_, u64> = Box::new(current);
        let (before, inside) = (current(), run(vec![inner])[0]);
        // Its own reactor can suspend it again.
        sleep(Duration::from_micros(1));
        (before, inside, current())
    });
    let (before, inside, after) = run(vec![outer])[0];
    assert!(before > 0 && inside > before && after == before);
    assert_eq!(current(), 0);
}
