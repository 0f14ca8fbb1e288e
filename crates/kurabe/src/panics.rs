//! What a panic does where it cannot be caught: builds whose profile has `panic = "abort"`, such as `--release`.

/// From now on a panic of any thread ends the program with exit code 1 and one error. In builds that unwind, it fails a trial.
///
/// Collections that the run made on a server stay there until the next run on that server, as after `kill -9`.
pub(crate) fn end_the_program() {
    #[cfg(panic = "abort")]
    std::panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let what =
            text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let place =
            info.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
        eprintln!("error: kurabe panicked{place}: {what}");
        eprintln!(
            "hint: this is a defect; what was measured is kept, and `kurabe run --resume` goes on with it"
        );
        std::process::exit(crate::exit::INTERNAL.code());
    }));
}
