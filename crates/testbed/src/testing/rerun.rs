//! A test that needs a process of its own: the program executes it again there.

use std::process::Command;

/// The variable with the input of such a process.
const INPUT: &str = "KURABE_TEST_RERUN";

/// Has a command that ends with this program execute a test again: [`rerun_input`] gives `input` there.
pub fn rerun<'a>(command: &'a mut Command, test: &str, input: &str) -> &'a mut Command {
    command.args(["--exact", test, "--nocapture"]).env(INPUT, input)
}

/// The input of a test that was [rerun]; `None` in the program that was started first.
pub fn rerun_input() -> Option<String> {
    std::env::var(INPUT).ok()
}
