//! Runs tasks, and waits for what they wait for.

use crate::coroutine::{self, Coroutines};
use crate::lock::assert_nothing_is_locked;
use crate::state::{BATCH, ID, Interest, Shared, State, WAKE, current};
use crate::timers::TaskId;
use corosensei::stack::DefaultStack;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::RawFd;
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

thread_local! {
    static CORE: RefCell<Option<Rc<Core>>> = const { RefCell::new(None) };
}

/// A running reactor, as its tasks see it.
struct Core {
    shared: Arc<Shared>,
    state: RefCell<State>,
    /// The deadline for which the timer is set.
    timer: Cell<Option<Instant>>,
}

/// Applies `what` to the reactor of this thread, whose task can be suspended; `None` if there is none.
fn with<T>(what: impl FnOnce(&Shared, &mut State) -> T) -> Option<T> {
    if ID.get() == 0 || !coroutine::can_suspend() {
        return None;
    }
    CORE.with_borrow(|core| core.as_ref().map(|core| what(&core.shared, &mut core.state.borrow_mut())))
}

/// Suspends the running task.
fn suspend() {
    assert_nothing_is_locked();
    coroutine::suspend();
}

/// Suspends the running task for this long. An ordinary thread sleeps.
pub fn sleep(time: Duration) {
    match with(|_, state| state.sleep(Instant::now() + time)) {
        Some(()) => suspend(),
        None => thread::sleep(time),
    }
}

/// Lets all tasks receive that can, and then continues. Does nothing on an ordinary thread.
#[inline]
pub fn take_turn() {
    if current() != 0 && with(|_, state| state.take_turn()).is_some() {
        suspend();
    }
}

/// Gives the kernel back what the running task's stack has used beyond its present depth, and lets other tasks run.
/// For after deep calls that are not repeated, such as connecting. Does nothing on an ordinary thread.
pub fn trim_stack() {
    if current() != 0 && with(|_, state| state.take_turn()).is_some() {
        coroutine::trim_when_suspended();
        suspend();
    }
}

/// Counts from now on how long the running task is ready to receive and waits in the queue: from each report of one of its
/// sockets by epoll until it is resumed. Each count is a read of the clock. Does nothing on an ordinary thread.
#[inline]
pub fn time_queue() {
    if current() != 0 {
        with(|_, state| state.time_queue());
    }
}

/// What was counted since [`time_queue`], and ends it; `None` if nothing is counted.
#[inline]
pub fn time_in_queue() -> Option<Duration> {
    if current() == 0 { None } else { with(|_, state| state.take_queued()).flatten() }
}

/// Applies `what` to the state of this thread's reactor if it is the one with that number.
pub(crate) fn with_state<T>(id: u64, what: impl FnOnce(&mut State) -> T) -> Option<T> {
    if id == current() { with(|_, state| what(state)) } else { None }
}

/// Suspends the running task until a socket is ready; `None` if it cannot be suspended on that reactor.
pub(crate) fn wait_for_socket(
    id: u64,
    fd: RawFd,
    interest: Interest,
    left: Duration,
) -> Option<io::Result<()>> {
    with_state(id, |state| state.wait_for_socket(fd, interest, left))?;
    suspend();
    let expired = with(|_, state| state.has_expired()).unwrap_or_default();
    Some(if expired { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) })
}

/// Begins a wait for a wake-up, if the running task can be suspended.
pub(crate) fn begin_wait(left: Option<Duration>) -> Option<(TaskId, u64)> {
    with(|_, state| state.wait_for_wake(left))
}

/// The running reactor, for the wake-up of its tasks.
pub(crate) fn shared() -> Option<Arc<Shared>> {
    CORE.with_borrow(|core| core.as_ref().map(|core| Arc::clone(&core.shared)))
}

/// Suspends the running task until it is woken; returns `false` if its time was over first.
pub(crate) fn end_wait() -> bool {
    suspend();
    !with(|_, state| state.has_expired()).unwrap_or_default()
}

/// Tasks for one thread.
pub struct Reactor<F> {
    shared: Arc<Shared>,
    tasks: Vec<(DefaultStack, F)>,
}

impl<F> Reactor<F> {
    /// A reactor for these tasks, each with a stack of this size in bytes, of which the kernel provides what is used.
    ///
    /// # Errors
    /// If the kernel refuses the memory, or more open files.
    pub fn new(tasks: Vec<F>, stack: usize) -> io::Result<Self> {
        let with_stack = |task| Ok((DefaultStack::new(stack)?, task));
        let tasks = tasks.into_iter().map(with_stack).collect::<io::Result<_>>()?;
        Ok(Self { shared: Arc::new(Shared::new()?), tasks })
    }

    /// Runs the tasks on this thread until all have ended; returns their results in order. An error is the payload of a
    /// task's panic.
    pub fn run<T>(self) -> Vec<thread::Result<T>>
    where
        F: FnOnce() -> T,
    {
        self.run_with(|task| task())
    }

    /// As [`run`](Self::run), with tasks that are what `work` needs. It may borrow what all tasks of this thread share.
    pub fn run_with<T>(self, work: impl Fn(F) -> T) -> Vec<thread::Result<T>> {
        let work = &work;
        // Outlives the coroutines, which write into it.
        let results: Vec<Cell<Option<T>>> = self.tasks.iter().map(|_| Cell::new(None)).collect();
        let state = RefCell::new(State::new(results.len()));
        let core = Rc::new(Core { shared: self.shared, state, timer: Cell::new(None) });
        let _entered = Entered::new(&core);
        let bodies = self.tasks.into_iter().zip(&results).map(|((stack, task), result)| {
            let body: Box<dyn FnOnce() + '_> = Box::new(move || result.set(Some(work(task))));
            (stack, body)
        });
        let panics = coroutine::scope(bodies, |coroutines| schedule(&core, coroutines));
        let ended = results.into_iter().zip(panics).map(|(result, panic)| match (result.take(), panic) {
            (_, Some(panic)) => Err(panic),
            (Some(result), None) => Ok(result),
            (None, None) => Err(Box::new("the task did not run") as Box<_>),
        });
        ended.collect()
    }
}

/// Makes a reactor that of this thread until it is dropped.
struct Entered {
    outer: Option<Rc<Core>>,
}

impl Entered {
    fn new(core: &Rc<Core>) -> Self {
        ID.set(core.shared.id);
        Self { outer: CORE.replace(Some(Rc::clone(core))) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        ID.set(self.outer.as_ref().map_or(0, |outer| outer.shared.id));
        CORE.set(self.outer.take());
    }
}

/// The payload of a panic.
type Panic = Box<dyn std::any::Any + Send>;

/// Resumes tasks until all have ended; returns the payloads of those that panicked.
fn schedule(core: &Core, coroutines: &mut Coroutines<'_>) -> Vec<Option<Panic>> {
    let mut panics: Vec<Option<Panic>> = (0..coroutines.len()).map(|_| None).collect();
    let live = Cell::new(coroutines.len());
    let mut resume = |task: TaskId| {
        core.state.borrow_mut().resumes(task);
        if let Some(ended) = coroutines.resume(task) {
            panics[task] = ended.err();
            live.set(live.get() - 1);
        }
    };
    let mut events: Vec<Event> = Vec::with_capacity(BATCH);
    let mut woken = Vec::new();
    loop {
        // Tasks that become ready meanwhile belong to the next batch.
        let ready = core.state.borrow().ready.len();
        for _ in 0..ready {
            let next = core.state.borrow_mut().ready.pop_front();
            next.into_iter().for_each(&mut resume);
        }
        let later = core.state.borrow().later.len();
        for _ in 0..later {
            let next = core.state.borrow_mut().later.pop_front();
            next.into_iter().for_each(&mut resume);
        }
        if live.get() == 0 {
            break;
        }
        look(core, &mut events, &mut woken);
    }
    panics
}

/// Asks epoll for reports, and waits for one if no task is ready.
fn look(core: &Core, events: &mut Vec<Event>, woken: &mut Vec<(TaskId, u64)>) {
    let limit = limit(core);
    events.clear();
    let looked = match limit {
        Limit::None => epoll::wait(&core.shared.epoll, spare_capacity(events), None),
        Limit::Now => {
            epoll::wait(&core.shared.epoll, spare_capacity(events), Some(&timespec(Duration::ZERO)))
        }
        Limit::Deadline(deadline) => {
            let limit = core.timeout(deadline).map(timespec);
            epoll::wait(&core.shared.epoll, spare_capacity(events), limit.as_ref())
        }
        Limit::Exact(time) => {
            // epoll's own limit is rounded up to a millisecond, unless the kernel has `epoll_pwait2`.
            let _ = poll(&mut [PollFd::new(&core.shared.epoll, PollFlags::IN)], Some(&timespec(time)));
            epoll::wait(&core.shared.epoll, spare_capacity(events), Some(&timespec(Duration::ZERO)))
        }
    };
    let mut state = core.state.borrow_mut();
    state.looked(Instant::now());
    match looked {
        Ok(_) => {
            for event in events.drain(..) {
                let (data, flags) = (event.data.u64(), event.flags);
                if data != WAKE {
                    state.report(data as RawFd, flags);
                }
            }
        }
        Err(rustix::io::Errno::INTR) => {}
        Err(_) => {
            // No way is known to get here. Tasks try their sockets again and again then.
            drop(state);
            thread::sleep(Duration::from_millis(1));
            state = core.state.borrow_mut();
            state.report_all();
        }
    }
    core.shared.take_woken(woken);
    state.take_woken(woken);
    state.expire();
}

impl Core {
    /// How long epoll may wait for this deadline; `None` if the timer ends its wait. All requests have deadlines, mostly
    /// the same next one for seconds: a limit of epoll's own would have the kernel set and remove a timer at each wait.
    fn timeout(&self, deadline: Instant) -> Option<Duration> {
        if self.timer.get() == Some(deadline) {
            return None;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || self.shared.set_timer(timespec(left)).is_err() {
            return Some(left);
        }
        self.timer.set(Some(deadline));
        None
    }
}

/// How long the thread may wait for reports.
enum Limit {
    None,
    Now,
    /// Until the deadline of a wait.
    Deadline(Instant),
    /// As exactly as the kernel can.
    Exact(Duration),
}

fn limit(core: &Core) -> Limit {
    let state = core.state.borrow();
    if !state.ready.is_empty() || !state.later.is_empty() || core.shared.is_notified() {
        return Limit::Now;
    }
    let (sleep, deadline) = state.next();
    match (sleep, deadline) {
        (None, None) => Limit::None,
        (None, Some(deadline)) => Limit::Deadline(deadline),
        (Some(sleep), deadline) => {
            let next = deadline.map_or(sleep, |deadline| deadline.min(sleep));
            match next.saturating_duration_since(Instant::now()) {
                // Going to sleep takes about as long.
                left if left < SPIN => Limit::Now,
                left => Limit::Exact(left),
            }
        }
    }
}

/// For shorter waits the thread looks again and again.
const SPIN: Duration = Duration::from_micros(5);

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) as _ }
}
