//! Many tasks on one thread.
//!
//! A task is a closure on a stack of its own (a *stackful coroutine*). It is written as blocking code: it reads and
//! writes sockets, takes locks, waits and sleeps. Where a thread would block, the task is suspended, and the thread
//! runs another one. A change of tasks costs some 30 ns, a change of threads some microseconds.
//!
//! - A [`Reactor`] runs tasks on the calling thread until all of them have ended.
//! - A [`Source`] is a non-blocking socket on which a task waits, with a deadline.
//! - [`Lock`] and [`Condition`] replace `Mutex` and `Condvar` where tasks and threads wait for each other.
//! - [`sleep`] suspends a task. [`take_turn`] lets the others receive first.
//!
//! All of these also work on a thread without a reactor, where they block. So the same code serves both.
//!
//! # Order
//! The thread asks epoll for at most [`BATCH`] reports at a time, and resumes their tasks in the order in which the
//! kernel saw the sockets become ready. Tasks that called [`take_turn`] are resumed after all of these. A client that
//! calls it before each request receives what has arrived before it sends anything: requests then go out together,
//! and no socket is preferred.
//!
//! # Rules
//! - A task never changes its thread, so it may use what is not `Send`.
//! - A task that is suspended holds no [`Lock`]: debug builds panic. A `MutexGuard` across a wait would block the whole
//!   thread.
//! - A task that panics fails alone. While it unwinds, its waits block the thread: the standard library counts panics
//!   by thread, and other tasks would take themselves for panicking.
//! - A task that overflows its stack ends the process by a signal, as a thread does: each stack has a guard page.

mod condition;
mod coroutine;
mod heap;
mod lock;
mod scheduler;
mod source;
mod state;
mod timers;

pub use condition::Condition;
pub use heap::trim_heap;
pub use lock::{Guard, Lock};
pub use scheduler::{Reactor, sleep, take_turn, time_in_queue, time_queue, trim_stack};
pub use source::{Source, wait_blocking};
pub use state::{BATCH, Interest, current};
