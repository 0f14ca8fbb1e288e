//! A coroutine that borrows from its caller. The only file with `unsafe`.
//!
//! Miri cannot run its tests: it supports neither guard pages of stacks nor the assembly that switches between them.
//! The crate's tests of other files run under Miri (`cargo miri test -p kurabe-reactor -- --skip coroutine`).

#![allow(unsafe_code)]

use corosensei::stack::DefaultStack;
use corosensei::{CoroutineResult, Yielder};
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::thread;

type Inner = corosensei::Coroutine<(), (), ()>;

thread_local! {
    /// The yielder of the coroutine whose code runs on this thread; null outside of coroutines.
    static RUNNING: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

/// A closure on its own stack. Dropping it unwinds the stack.
struct Coroutine<'env> {
    inner: Inner,
    /// It has what the closure has borrowed.
    env: PhantomData<&'env mut ()>,
}

impl<'env> Coroutine<'env> {
    /// Puts a closure on a stack. It starts at the first [`Coroutine::resume`].
    ///
    /// # Safety
    /// The coroutine must be dropped before `'env` ends: it must not be leaked, as by `mem::forget`. Frames of a leaked
    /// stack are never left, so that a guard in one of them, such as that of `thread::scope`, would not keep its promise.
    unsafe fn new(stack: DefaultStack, body: Box<dyn FnOnce() + 'env>) -> Self {
        // SAFETY: only the lifetime changes. The closure is called or dropped by `inner`. `inner` is private and is
        // dropped with `self`, which the borrow checker ends before `'env` (by `env`) and the caller does not leak.
        let body: Box<dyn FnOnce() + 'static> =
            unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'env>, Box<dyn FnOnce() + 'static>>(body) };
        let inner = Inner::with_stack(stack, move |yielder, ()| {
            RUNNING.set(ptr::from_ref(yielder));
            body();
        });
        Self { inner, env: PhantomData }
    }

    /// Runs the coroutine until it suspends itself or ends. Returns `None` if it is suspended, otherwise how it ended:
    /// the error is the payload of its panic. It must not be resumed after its end.
    fn resume(&mut self) -> Option<thread::Result<()>> {
        // A reactor may run within a task of another one.
        let outer = RUNNING.replace(ptr::null());
        let resumed = catch_unwind(AssertUnwindSafe(|| self.inner.resume(())));
        RUNNING.set(outer);
        match resumed {
            Ok(CoroutineResult::Yield(())) => None,
            Ok(CoroutineResult::Return(())) => Some(Ok(())),
            Err(panic) => Some(Err(panic)),
        }
    }
}

/// Coroutines that [`scope`] lends. They cannot be taken out.
pub(crate) struct Coroutines<'env> {
    all: Vec<Option<Coroutine<'env>>>,
}

impl Coroutines<'_> {
    /// The number of coroutines, ended ones included.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Runs a coroutine until it suspends itself or ends, and frees its stack at its end. Returns `None` if it is
    /// suspended, or had ended before; otherwise how it ended: the error is the payload of its panic.
    pub(crate) fn resume(&mut self, number: usize) -> Option<thread::Result<()>> {
        let one = self.all.get_mut(number)?;
        let ended = one.as_mut()?.resume()?;
        *one = None;
        Some(ended)
    }
}

/// Makes coroutines of closures, each on its stack, for as long as `work` runs. Those that have not ended then are
/// unwound.
pub(crate) fn scope<'env, T>(
    bodies: impl Iterator<Item = (DefaultStack, Box<dyn FnOnce() + 'env>)>,
    work: impl FnOnce(&mut Coroutines<'env>) -> T,
) -> T {
    // SAFETY: the coroutines are in a local variable, which is dropped when this function returns or unwinds, before
    // `'env` ends. `work` borrows them and cannot take them out to leak them: `Coroutines` has private fields, no
    // function that gives one away, and no other constructor whose value could be swapped in.
    let make = |(stack, body)| Some(unsafe { Coroutine::new(stack, body) });
    let mut coroutines = Coroutines { all: bodies.map(make).collect() };
    work(&mut coroutines)
}

/// Whether the running code is a coroutine that can be suspended. Not while it unwinds: the panic count belongs to the
/// thread.
pub(crate) fn can_suspend() -> bool {
    !RUNNING.get().is_null() && !thread::panicking()
}

/// Suspends the running coroutine until it is resumed. Does nothing outside of a coroutine.
pub(crate) fn suspend() {
    let yielder = RUNNING.replace(ptr::null());
    if yielder.is_null() {
        return;
    }
    // SAFETY: the pointer was made of a reference that `inner` lends its closure, which is valid until the closure
    // returns. `RUNNING` has it only while that closure runs on this thread: the closure sets it when it starts, this
    // function takes it away before the coroutine is suspended and sets it again after, and `Coroutine::resume` takes
    // it away when the coroutine has ended. `RUNNING` belongs to the thread and a coroutine does not change its thread:
    // `inner` is not `Send`. So this code runs on the coroutine's stack, above the frame of the closure.
    unsafe { &*yielder }.suspend(());
    RUNNING.set(yielder);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lends a test these coroutines.
    fn with<'env, const N: usize>(
        bodies: [Box<dyn FnOnce() + 'env>; N],
        work: impl FnOnce(&mut Coroutines<'env>),
    ) {
        let stack = || DefaultStack::new(64 * 1024).unwrap();
        scope(bodies.into_iter().map(|body| (stack(), body)), work);
    }

    #[test]
    fn suspended_code_continues_where_it_was() {
        let log = Cell::new(0);
        let body = || {
            log.set(1);
            suspend();
            log.set(2);
        };
        with([Box::new(body)], |all| {
            assert!(all.resume(0).is_none() && log.get() == 1);
            assert!(all.resume(0).is_some_and(|ended| ended.is_ok()) && log.get() == 2);
            assert!(all.resume(0).is_none(), "it has ended");
        });
    }

    #[test]
    fn panic_is_given_to_the_caller() {
        with([Box::new(|| panic!("seven"))], |all| {
            let panic = all.resume(0).unwrap().unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"seven"));
            assert!(RUNNING.get().is_null());
        });
    }

    #[test]
    fn dropped_coroutine_drops_what_is_on_its_stack() {
        struct Count<'a>(&'a Cell<u32>);
        impl Drop for Count<'_> {
            fn drop(&mut self) {
                // It cannot be suspended any more.
                suspend();
                self.0.set(self.0.get() + 1);
            }
        }
        let dropped = Cell::new(0);
        let count = Count(&dropped);
        let started = || {
            let _count = Count(&dropped);
            suspend();
        };
        with([Box::new(started), Box::new(move || drop(count))], |all| {
            all.resume(0);
            assert_eq!(dropped.get(), 0);
        });
        assert_eq!(dropped.get(), 2);
    }

    #[test]
    fn coroutine_within_a_coroutine_suspends_itself_only() {
        let outer = || {
            with([Box::new(suspend)], |inner| {
                assert!(inner.resume(0).is_none());
                suspend();
                assert!(inner.resume(0).is_some());
            });
        };
        with([Box::new(outer)], |all| {
            assert!(all.resume(0).is_none());
            assert!(all.resume(0).is_some_and(|ended| ended.is_ok()));
        });
    }

    #[test]
    fn suspending_a_thread_does_nothing() {
        assert!(!can_suspend());
        suspend();
    }
}
