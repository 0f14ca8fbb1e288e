//! A coroutine that borrows from its caller. The only file with `unsafe`, besides one call in `heap.rs`.
//!
//! Miri cannot run its tests: it supports neither guard pages of stacks nor the assembly that switches between them.
//! The crate's tests of other files run under Miri (`cargo miri test -p kurabe-reactor -- --skip coroutine`).

#![allow(unsafe_code)]

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{CoroutineResult, Yielder};
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::thread;

type Inner = corosensei::Coroutine<(), (), ()>;

thread_local! {
    /// The yielder of the coroutine whose code runs on this thread; null outside of coroutines.
    static RUNNING: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
    /// Whether the next coroutine of this thread that is suspended is to be trimmed, and then the address of one of the
    /// last variables on its stack.
    static TRIM: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A closure on its own stack. Dropping it unwinds the stack.
struct Coroutine<'env> {
    inner: Inner,
    /// The lowest address of its stack.
    limit: usize,
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
        let limit = stack.limit().get();
        let inner = Inner::with_stack(stack, move |yielder, ()| {
            RUNNING.set(ptr::from_ref(yielder));
            body();
        });
        Self { inner, limit, env: PhantomData }
    }

    /// Runs the coroutine until it suspends itself or ends. Returns `None` if it is suspended, otherwise how it ended:
    /// the error is the payload of its panic. It must not be resumed after its end.
    fn resume(&mut self) -> Option<thread::Result<()>> {
        // A reactor may run within a task of another one.
        let outer = RUNNING.replace(ptr::null());
        let resumed = catch_unwind(AssertUnwindSafe(|| self.inner.resume(())));
        RUNNING.set(outer);
        match resumed {
            Ok(CoroutineResult::Yield(())) => {
                if let Some(used) = TRIM.take() {
                    self.trim(used);
                }
                None
            }
            Ok(CoroutineResult::Return(())) => Some(Ok(())),
            Err(panic) => Some(Err(panic)),
        }
    }
}

impl Coroutine<'_> {
    /// Gives the kernel the pages back below this address of the suspended stack, and [`MARGIN`].
    fn trim(&mut self, used: usize) {
        let end = (used - MARGIN) & !(page_size() - 1);
        if end > self.limit {
            // SAFETY: the pages belong to this coroutine's stack, which is mapped as long as `inner` lives. It is suspended,
            // so that no code runs on it, and what it needs lies above its stack pointer. `suspend` noted the address of a
            // variable. Between that variable and the stack pointer are the rest of its frame and what the switch saves,
            // some registers; `MARGIN` is many times as much. Below, the stack has nothing but what ended calls have
            // left, and the guard page, which has no contents. Later calls find zeros there, as on a new stack.
            let _ = unsafe {
                madvise(ptr::with_exposed_provenance_mut(self.limit), end - self.limit, Advice::LinuxDontNeed)
            };
        }
    }
}

/// What a suspended coroutine has below the variable whose address [`suspend`] notes, at most, in bytes.
const MARGIN: usize = 1024;

/// Has the running coroutine trimmed when it is suspended next, which its caller does at once.
pub(crate) fn trim_when_suspended() {
    TRIM.set(Some(0));
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
    if TRIM.get().is_some() {
        TRIM.set(Some(ptr::from_ref(&yielder).expose_provenance()));
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
    fn trimmed_stack_keeps_what_is_in_use_and_gives_the_rest_back() {
        const DEEP: usize = 12 * 1024;
        /// The bytes in use of the pages below this address that `deep` uses, by the kernel's page map.
        fn in_use(address: usize) -> usize {
            const PRESENT_OR_SWAPPED: u64 = 3 << 62;
            let page = page_size();
            let map = std::fs::File::open("/proc/self/pagemap").unwrap();
            let is_present = |number: usize| {
                let mut entry = [0; 8];
                std::os::unix::fs::FileExt::read_exact_at(&map, &mut entry, number as u64 * 8).unwrap();
                u64::from_ne_bytes(entry) & PRESENT_OR_SWAPPED != 0
            };
            let pages = (address - 2 * DEEP) / page..=address / page;
            pages.filter(|number| is_present(*number)).count() * page
        }
        #[inline(never)]
        fn deep() -> usize {
            let array = std::hint::black_box([7u8; DEEP]);
            array.iter().map(|byte| usize::from(*byte)).sum()
        }
        let at = Cell::new(0);
        let body = || {
            let kept = std::hint::black_box([5u8; 100]);
            at.set(ptr::from_ref(&kept).addr());
            assert_eq!(deep(), 7 * DEEP);
            suspend();
            trim_when_suspended();
            suspend();
            assert_eq!(std::hint::black_box(kept), [5; 100]);
            assert_eq!(deep(), 7 * DEEP);
        };
        with([Box::new(body)], |all| {
            assert!(all.resume(0).is_none() && in_use(at.get()) >= DEEP);
            assert!(all.resume(0).is_none());
            let left = in_use(at.get());
            assert!(left > 0 && left < DEEP / 2, "{left}");
            assert!(all.resume(0).is_some_and(|ended| ended.is_ok()));
        });
    }

    #[test]
    fn suspending_a_thread_does_nothing() {
        assert!(!can_suspend());
        suspend();
    }
}
