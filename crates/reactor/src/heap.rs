//! Memory that the process has freed.

#![allow(unsafe_code)]

/// Gives the kernel back what the process has freed. The allocator keeps it otherwise wherever something above it is in
/// use, and the threads of later work may not find it: each has a part of the heap of its own. For before work that takes
/// much memory. Takes some milliseconds. Does nothing where the allocator is not that of the GNU C library.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function has no preconditions and locks what it changes (malloc_trim(3)). It changes no memory that is
    // in use.
    unsafe {
        libc::malloc_trim(0);
    }
}
