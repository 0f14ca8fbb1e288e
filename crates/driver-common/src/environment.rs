//! The user's environment, from which drivers take what a URL does not say: passwords, certificates, files of settings.
//!
//! A target that somebody else chose must not get them: [`hidden`] opens its driver as if the user had none.

use std::cell::Cell;

thread_local! {
    static HIDDEN: Cell<bool> = const { Cell::new(false) };
}

/// A variable, unless the environment is [`hidden`].
pub fn variable(name: &str) -> Option<String> {
    if is_hidden() { None } else { std::env::var(name).ok() }
}

/// Whether drivers that are opened by this thread get nothing of the user's.
pub fn is_hidden() -> bool {
    HIDDEN.get()
}

/// Opens a driver by `open`, which finds neither variables nor files of the user's.
pub fn hidden<T>(open: impl FnOnce() -> T) -> T {
    /// Restores the state before, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            HIDDEN.set(self.0);
        }
    }
    let _before = Before(HIDDEN.replace(true));
    open()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_environment_has_no_variable_and_is_seen_again_afterwards() {
        assert!(variable("PATH").is_some());
        assert!(hidden(|| hidden(is_hidden) && is_hidden()));
        assert_eq!(hidden(|| variable("PATH")), None);
        assert!(variable("PATH").is_some() && !is_hidden());
        assert!(std::panic::catch_unwind(|| hidden(|| panic!("open"))).is_err());
        assert!(!is_hidden());
    }
}
