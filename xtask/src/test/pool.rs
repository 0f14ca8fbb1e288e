//! The pool of servers that all test programs share, a process of its own: `kurabe-testbed pool`, which cargo built with
//! the tests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use super::{Program, start};

/// The variable with the name of a pool, for tests and the programs that they start.
const VARIABLE: &str = "KURABE_SERVER_POOL";

/// A pool. It ends with this, and its servers with it.
pub struct Pool(Child);

impl Pool {
    /// Starts it with these variables, and adds its own. `None`: each test program makes one.
    pub fn start(programs: &[Program], environment: &mut Vec<(String, String)>) -> Option<Self> {
        let program = programs.iter().find_map(|program| {
            let built = program.path.parent()?.parent()?.join("kurabe-testbed");
            built.exists().then_some(built)
        })?;
        let name = format!("kurabe-tests-{}", std::process::id());
        let mut command = start::command(&program);
        command.args(["pool", &name]).envs(environment.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let output = child.stdout.take()?;
        let pool = Self(child);
        let mut line = String::new();
        let ready = BufReader::new(output).read_line(&mut line).is_ok_and(|bytes| bytes > 0);
        ready.then(|| environment.push((VARIABLE.to_owned(), name)))?;
        Some(pool)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
