//! Ctrl-C: the first ends the run cleanly and keeps what was measured, the second ends the program at once. Throwaway
//! servers are removed either way: their guards see their parent go.
#![allow(clippy::exit)]

use kurabe_core::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Handles interrupts from now on; the flag is set by the first.
///
/// # Errors
/// [`Internal`](ErrorKind::Internal) where the handler cannot be set.
pub(crate) fn watch() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })
    .map_err(|e| Error::new(ErrorKind::Internal, format!("interrupts cannot be handled: {e}")))?;
    Ok(stop)
}
