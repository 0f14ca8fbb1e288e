//! What a reactor knows of its tasks and sockets. No function here suspends a task.

use crate::timers::{Deadline, TaskId, Timers};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{OwnedFd, RawFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many sockets the thread asks epoll for at a time. Their tasks receive before any of them sends, so that an
/// answer waits at most for that many others.
pub const BATCH: usize = 64;

thread_local! {
    /// The number of the reactor that runs on this thread; 0 for none. Apart from the reactor, so that asking costs a load.
    pub(crate) static ID: Cell<u64> = const { Cell::new(0) };
}

/// The number of the reactor whose task runs on this thread, from 1; 0 on an ordinary thread.
#[inline]
pub fn current() -> u64 {
    ID.get()
}

/// What a task waits for on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// For something to receive, or the end of the connection.
    Receive,
    /// For space to send, or the end of the connection.
    Send,
    /// For either of them. It misses nothing if the task has just tried to receive.
    Either,
}

/// The part of a reactor that other threads use.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Its number in this process, from 1.
    pub(crate) id: u64,
    pub(crate) epoll: OwnedFd,
    /// Written to by other threads, to end a wait of the reactor's thread.
    wake: OwnedFd,
    /// Ends a wait of the reactor's thread at a deadline.
    timer: OwnedFd,
    /// Tasks that were woken, with the number of the wait that ends.
    woken: Mutex<Vec<(TaskId, u64)>>,
    /// Whether there are any, or a wake-up is under way.
    notified: AtomicBool,
}

/// The data of epoll's reports on the reactor's own files, [`Shared::wake`] and the timer; no socket has this number.
pub(crate) const WAKE: u64 = u64::MAX;

impl Shared {
    pub(crate) fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered: each write is reported once, and the counter never has to be read.
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &timer, EventData::new_u64(WAKE), EventFlags::IN | EventFlags::ET)?;
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self { id, epoll, wake, timer, woken: Mutex::default(), notified: AtomicBool::new(false) })
    }

    /// Has epoll report in this time, which is not zero, and not at the time of an earlier call.
    pub(crate) fn set_timer(&self, time: Timespec) -> io::Result<()> {
        let once = Itimerspec { it_interval: Timespec::default(), it_value: time };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    fn woken(&self) -> MutexGuard<'_, Vec<(TaskId, u64)>> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends a wait of a task, from any thread.
    pub(crate) fn wake(&self, task: TaskId, wait: u64) {
        self.woken().push((task, wait));
        // The reactor's own thread looks before it waits.
        if !self.notified.swap(true, Ordering::SeqCst) && current() != self.id {
            // An error means that the counter is full, so that a report is under way.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }

    pub(crate) fn is_notified(&self) -> bool {
        self.notified.load(Ordering::SeqCst)
    }

    /// Moves the woken tasks to `into`.
    pub(crate) fn take_woken(&self, into: &mut Vec<(TaskId, u64)>) {
        if self.is_notified() {
            let mut woken = self.woken();
            self.notified.store(false, Ordering::SeqCst);
            into.append(&mut woken);
        }
    }
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waiting {
    /// For its turn, or it runs.
    #[default]
    Turn,
    Socket(RawFd),
    /// For [`Shared::wake`].
    Wake,
    /// For the end of a sleep.
    Sleep,
}

#[derive(Debug, Default)]
struct Task {
    waiting: Waiting,
    deadline: Deadline,
    /// Whether its last wait was ended by its deadline.
    expired: bool,
    /// The number of its last wait for a wake-up.
    wait: u64,
    /// When epoll reported the socket for which it is resumed next.
    reported: Option<Instant>,
    /// How long it was in the queue after reports of its sockets, if that is timed.
    queued: Option<Duration>,
}

/// What is known of a socket, by the number of its file.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    waiter: Option<(TaskId, Interest)>,
    /// Whether a report arrived while nobody waited to receive.
    pending: bool,
    /// Whether the peer has closed it, or it has failed: nothing more is reported.
    closed: bool,
}

#[derive(Default)]
pub(crate) struct State {
    tasks: Vec<Task>,
    slots: Vec<Slot>,
    timers: Timers,
    /// The time of the last look at epoll.
    now: Option<Instant>,
    /// Tasks to resume now.
    pub(crate) ready: VecDeque<TaskId>,
    /// Tasks to resume after all that are ready.
    pub(crate) later: VecDeque<TaskId>,
    /// The task that runs.
    pub(crate) running: TaskId,
}

impl State {
    pub(crate) fn new(tasks: usize) -> Self {
        let mut state = Self { ready: (0..tasks).collect(), ..Self::default() };
        state.tasks.resize_with(tasks, Task::default);
        state
    }

    fn now(&mut self) -> Instant {
        *self.now.get_or_insert_with(Instant::now)
    }

    fn slot(&mut self, fd: RawFd) -> &mut Slot {
        let at = fd as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + 1, Slot::default());
        }
        &mut self.slots[at]
    }

    /// Forgets what is known of the file of this number, which is now another socket.
    pub(crate) fn reset_slot(&mut self, fd: RawFd) {
        *self.slot(fd) = Slot::default();
    }

    /// Whether something may have arrived that was not received: a report that nobody waited for, or the end.
    pub(crate) fn may_receive(&mut self, fd: RawFd) -> bool {
        let slot = self.slot(fd);
        slot.pending || slot.closed
    }

    /// Has the running task wait for a socket, for at most this long.
    pub(crate) fn wait_for_socket(&mut self, fd: RawFd, interest: Interest, left: Duration) {
        let (task, at) = (self.running, self.now() + left);
        let slot = self.slot(fd);
        slot.waiter = Some((task, interest));
        if interest != Interest::Send {
            slot.pending = false;
        }
        let Self { tasks, timers, .. } = self;
        tasks[task].waiting = Waiting::Socket(fd);
        tasks[task].expired = false;
        timers.set(&mut tasks[task].deadline, at, task);
    }

    /// Has the running task wait for a wake-up, for at most this long if given; returns the number of the wait.
    pub(crate) fn wait_for_wake(&mut self, left: Option<Duration>) -> (TaskId, u64) {
        let task = self.running;
        let Self { tasks, timers, .. } = self;
        tasks[task].waiting = Waiting::Wake;
        tasks[task].expired = false;
        tasks[task].wait += 1;
        if let Some(left) = left {
            timers.set(&mut tasks[task].deadline, Instant::now() + left, task);
        }
        (task, tasks[task].wait)
    }

    /// Whether the deadline ended the running task's last wait.
    pub(crate) fn has_expired(&self) -> bool {
        self.tasks[self.running].expired
    }

    /// Has the running task sleep.
    pub(crate) fn sleep(&mut self, until: Instant) {
        self.tasks[self.running].waiting = Waiting::Sleep;
        self.timers.sleep(until, self.running);
    }

    /// Has the running task wait until the others have had their turn.
    pub(crate) fn take_turn(&mut self) {
        self.later.push_back(self.running);
    }

    /// Makes a waiting task ready.
    fn make_ready(&mut self, task: TaskId) {
        let Task { waiting, deadline, .. } = &mut self.tasks[task];
        *waiting = Waiting::Turn;
        deadline.at = None;
        self.ready.push_back(task);
    }

    /// Takes a report of epoll on a socket.
    pub(crate) fn report(&mut self, fd: RawFd, flags: EventFlags) {
        let ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let reported = self.now;
        let slot = self.slot(fd);
        slot.closed |= ended;
        let concerns = |interest: Interest| match interest {
            Interest::Receive => flags.contains(EventFlags::IN) || ended,
            Interest::Send => flags.contains(EventFlags::OUT) || ended,
            Interest::Either => flags.intersects(EventFlags::IN | EventFlags::OUT) || ended,
        };
        let waiter = slot.waiter.take_if(|(_, interest)| concerns(*interest));
        if flags.contains(EventFlags::IN) && waiter.is_none_or(|(_, interest)| interest == Interest::Send) {
            slot.pending = true;
        }
        if let Some((task, _)) = waiter {
            self.tasks[task].reported = reported;
            self.make_ready(task);
        }
    }

    /// Takes wake-ups. Those of earlier waits are ignored.
    pub(crate) fn take_woken(&mut self, woken: &mut Vec<(TaskId, u64)>) {
        for (task, wait) in woken.drain(..) {
            if self.tasks[task].waiting == Waiting::Wake && self.tasks[task].wait == wait {
                self.make_ready(task);
            }
        }
    }

    /// Makes the tasks ready whose sleep or wait is over.
    pub(crate) fn expire(&mut self) {
        let now = self.now();
        while let Some(task) = self.timers.awake(now) {
            self.make_ready(task);
        }
        while let Some((entry, task)) = self.timers.due(now) {
            let Self { tasks, timers, .. } = self;
            if timers.is_over(&mut tasks[task].deadline, entry, task, now) {
                tasks[task].expired = true;
                if let Waiting::Socket(fd) = tasks[task].waiting {
                    self.slot(fd).waiter = None;
                }
                self.make_ready(task);
            }
        }
    }

    /// Makes all tasks ready that wait for a socket, because epoll has failed.
    pub(crate) fn report_all(&mut self) {
        for fd in 0..self.slots.len() {
            self.report(fd as RawFd, EventFlags::IN | EventFlags::OUT);
        }
    }

    /// Notes the time of a look at epoll.
    pub(crate) fn looked(&mut self, now: Instant) {
        self.now = Some(now);
    }

    /// When the thread must look at its timers next: the end of a sleep, and that of a wait.
    pub(crate) fn next(&self) -> (Option<Instant>, Option<Instant>) {
        (self.timers.next_sleep(), self.timers.next_deadline())
    }

    pub(crate) fn resumes(&mut self, task: TaskId) {
        self.running = task;
        let task = &mut self.tasks[task];
        if let (Some(queued), Some(reported)) = (&mut task.queued, task.reported.take()) {
            *queued += reported.elapsed();
        }
    }

    /// Has the running task's time in the queue be counted from now on.
    pub(crate) fn time_queue(&mut self) {
        let task = &mut self.tasks[self.running];
        (task.queued, task.reported) = (Some(Duration::ZERO), None);
    }

    /// How long the running task was in the queue after reports of its sockets, since it is counted, which ends.
    pub(crate) fn take_queued(&mut self) -> Option<Duration> {
        self.tasks[self.running].queued.take()
    }
}
