//! A lock for threads and tasks.

use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

thread_local! {
    /// How many locks this thread holds, in debug builds.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

/// Panics in debug builds if this thread holds a [`Lock`].
pub(crate) fn assert_nothing_is_locked() {
    debug_assert_eq!(HELD.get(), 0, "a task waits while it holds a lock, which blocks its thread");
}

/// A mutex that must not be held while a task waits. A panic of a holder does not poison it: its value is to be valid
/// at all times.
#[derive(Default)]
pub struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    /// A lock of this value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Locks it. Blocks the thread while another thread holds it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        Guard::new(self, self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The value, which nobody else has any more.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").finish_non_exhaustive()
    }
}

/// A locked [`Lock`].
pub struct Guard<'a, T> {
    pub(crate) lock: &'a Lock<T>,
    pub(crate) inner: MutexGuard<'a, T>,
    pub(crate) counted: Counted,
}

/// Counts a held lock until it is dropped.
pub(crate) struct Counted;

impl Counted {
    #[inline]
    fn new() -> Self {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() + 1);
        }
        Self
    }
}

impl Drop for Counted {
    #[inline]
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get().saturating_sub(1));
        }
    }
}

impl<'a, T> Guard<'a, T> {
    #[inline]
    fn new(lock: &'a Lock<T>, inner: MutexGuard<'a, T>) -> Self {
        Self { lock, inner, counted: Counted::new() }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
