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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn pool_is_ready_when_tests_learn_its_name_and_has_ended_after_them() {
        let folder = std::env::temp_dir().join(format!("kurabe-pool-{}", std::process::id()));
        fs::create_dir_all(folder.join("deps")).unwrap();
        let script = format!(
            "#!/bin/sh\necho \"$*\" > {0}/said\necho ready\ncat\necho over >> {0}/said\n",
            folder.display()
        );
        // By another process, as the test of the runner says.
        let mut install = Command::new("install");
        install.args(["-m", "755", "/dev/stdin"]).arg(folder.join("kurabe-testbed")).stdin(Stdio::piped());
        let mut install = install.spawn().unwrap();
        install.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(install.wait().unwrap().success());
        let path = folder.join("deps/tests-1");
        let program = Program { label: "x".to_owned(), unit: false, path, folder: folder.clone() };
        let mut environment = Vec::new();
        let pool = Pool::start(&[program], &mut environment).unwrap();
        let [(variable, name)] = &environment[..] else { panic!("{environment:?}") };
        let said = || fs::read_to_string(folder.join("said")).unwrap();
        assert_eq!((variable.as_str(), said()), (VARIABLE, format!("pool {name}\n")));
        drop(pool);
        assert!(said().ends_with("over\n"));
        fs::remove_dir_all(&folder).unwrap();
        assert!(Pool::start(&[], &mut environment).is_none());
    }
}
