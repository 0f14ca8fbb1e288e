//! Signals that this process ignores because its parent did: under `nohup` (SIGHUP) or in a background job of a shell
//! without job control (SIGINT and SIGQUIT). Programs that it starts would ignore them too.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};

/// Lets the programs that this process starts or becomes from now on have the default action of all signals. This
/// process still ignores those that it ignored.
///
/// The system sets signals that have a handler to their default action when a program is executed, and keeps those that
/// are ignored. The standard library does the rest: it clears the mask, and resets SIGPIPE.
pub(crate) fn reset_all_for_programs() {
    for signal in ignored() {
        handle_without_effect(signal);
    }
}

/// Lets the programs that this process starts have the default action of SIGINT and SIGQUIT, with which they are
/// stopped. SIGHUP stays ignored, as `nohup` wants it for all that it starts. A write beyond the limit of a file's size does not end this
/// process.
pub fn reset_interrupts_for_programs() {
    outlive_file_limit();
    for signal in ignored().filter(|signal| [SIGINT, SIGQUIT].contains(signal)) {
        handle_without_effect(signal);
    }
}

/// Makes a write beyond the limit of a file's size (`ulimit -f`) an error, which does not end this process.
pub(crate) fn outlive_file_limit() {
    handle_without_effect(SIGXFSZ);
}

/// Lets this process end by the signals that it ignores, and the programs that it starts too.
///
/// # Errors
/// The system's, if it refuses a handler.
pub fn end_by_ignored() -> std::io::Result<()> {
    for signal in ignored().filter(|signal| [SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(signal)) {
        signal_hook::flag::register_conditional_default(signal, Arc::new(AtomicBool::new(true)))?;
    }
    Ok(())
}

fn handle_without_effect(signal: i32) {
    // Refused for SIGKILL and SIGSTOP, which cannot be ignored, and for faults, which nobody else sends.
    let _ = signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)));
}

/// The standard signals that this process ignores.
fn ignored() -> impl Iterator<Item = i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = mask(&status).unwrap_or(0);
    (1..=31).filter(move |signal| {
        mask & 1 << (signal - 1) != 0 && !signal_hook::consts::FORBIDDEN.contains(signal)
    })
}

/// The ignored signals in `/proc/PID/status` (proc(5)): one bit each, in hexadecimal digits.
fn mask(status: &str) -> Option<u64> {
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(digits.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn ignored_signals_are_read_from_the_status() {
        assert_eq!(super::mask("Name:\tx\nSigIgn:\t0000000000001003\nSigCgt:\t1\n"), Some(0x1003));
        assert_eq!(super::mask("Name:\tx\n"), None);
    }
}
