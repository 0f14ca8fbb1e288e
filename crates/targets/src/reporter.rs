//! What is said to the user about targets, and what the user asks for meanwhile.

use kurabe_core::Result;

/// Messages to the user about targets, and the user's request to stop.
pub trait Reporter {
    /// Shows a note.
    fn note(&self, text: &str);

    /// Shows a warning.
    fn warning(&self, text: &str);

    /// Sets what the program waits for if the user stops it.
    fn wait_for(&self, what: String);

    /// Fails after the user has stopped the program.
    ///
    /// # Errors
    /// [`Interrupted`](kurabe_core::ErrorKind::Interrupted).
    fn check(&self) -> Result<()>;
}
