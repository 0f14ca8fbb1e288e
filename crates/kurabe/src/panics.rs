//! What a panic does where it cannot be caught: builds whose profile has `panic = "abort"`, such as `--release`.

/// Makes a panic of any thread end the program with exit code 1 and one error. Builds that unwind are as before: a panic
/// fails a trial.
///
/// Collections that the run made on a server stay there until the next run on that server, as after `kill -9`.
pub(crate) fn end_the_program() {
    #[cfg(panic = "abort")]
    std::panic::set_hook(Box::new(|info| {
        use std::io::Write as _;
        let place =
            info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        // A closed output must not cause a second panic.
        let _ = writeln!(
            std::io::stderr(),
            "kurabe: a defect of kurabe{place}: {}; what was measured is kept, and 'kurabe run --resume' goes on and removes the run's tables",
            kurabe_core::text::of_panic(info.payload())
        );
        std::process::exit(crate::exit::INTERNAL.code());
    }));
}
