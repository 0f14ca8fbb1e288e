//! `kurabe agent --role run`: executes submitted runs, each as a process `kurabe run -f`.

use crate::exit::{self, Exit};
use crate::output::Output;
use crate::signals;
use crate::suite::named_files;
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::experiment::ExperimentInfo;
use kurabe_core::fleet::OnLostAgent;
use kurabe_core::name::{Name, RelativePath};
use kurabe_core::run::RunSpec;
use kurabe_core::{Error, ErrorKind};
use kurabe_fleet::{Execution, Executor, NO_AGENTS, Queue, Submission, WorkFolder};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;

/// The variable that is set for a run that a worker executes.
const WORKER: &str = "KURABE_WORKER";
/// This program, even if its file was replaced by another version since.
const PROGRAM: &str = "/proc/self/exe";

/// Executes queued runs until Ctrl-C.
pub(super) fn work(matches: &ArgMatches, name: &Name, output: &Output) -> Result<Exit> {
    if matches.get_one::<String>("role").is_some_and(|roles| roles.trim() != "run") {
        return Err(Error::usage("--role run cannot be combined with other roles")
            .hint("start another agent for load or observe")
            .into());
    }
    let given = matches.get_one::<String>("broker").map_or("", String::as_str);
    let url = super::broker(given)?;
    let stop = signals::watch(exit::DONE, output)?;
    signals::wait_for("the current run to end");
    let queue = Queue::connect(&url, &format!("kurabe worker {name}"))?;
    let folder = WorkFolder::make(&std::env::temp_dir())?;
    let mut runs = Runs { fleet: given.to_owned() };
    queue.work(name, &mut runs, &folder, &stop, &|text| output.note(text));
    Ok(exit::DONE)
}

/// Has this process stop as by Ctrl-C if the worker that started it ends, hangs, or does not reach its broker: another worker
/// may begin the run again. The worker writes to the standard input while all is well. Does nothing without a worker.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn end_with_worker() -> kurabe_core::Result<()> {
    if std::env::var_os(WORKER).is_none() {
        return Ok(());
    }
    let (to, signs) = channel();
    let read = move || {
        let (mut input, mut bytes) = (std::io::stdin().lock(), [0; 64]);
        while input.read(&mut bytes).is_ok_and(|read| read > 0) && to.send(()).is_ok() {}
    };
    let watch = move || {
        while signs.recv_timeout(kurabe_fleet::ALONE).is_ok() {}
        let _ = kill_process(getpid(), Signal::INT);
    };
    let start = |name: &str, run: Box<dyn FnOnce() + Send>| {
        thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
    };
    start("worker-signs", Box::new(read))
        .and_then(|()| start("worker-watch", Box::new(watch)))
        .map_err(|error| Error::new(ErrorKind::Limit, format!("no thread can be started: {error}")))
}

/// Refuses files that a submitted run names outside of its suite.
///
/// # Errors
/// As for [`refuse_files`].
pub(crate) fn check_submitted(spec: &RunSpec, info: &ExperimentInfo) -> kurabe_core::Result<()> {
    if std::env::var_os(WORKER).is_some() { refuse_files(spec, info) } else { Ok(()) }
}

/// Refuses axes that name files: a worker would read those of its own host.
///
/// # Errors
/// [`Usage`](ErrorKind::Usage) with the axis and the file.
pub(super) fn refuse_files(spec: &RunSpec, info: &ExperimentInfo) -> kurabe_core::Result<()> {
    let values = info.axes.iter().flat_map(|axis| {
        let values = spec.axes.get(axis.name).into_iter().flatten();
        values.filter(|value| axis.names_file(value)).map(move |value| (axis.name, value))
    });
    values.into_iter().try_for_each(|(axis, file)| {
        let why = format!("{axis}: a submitted run cannot read the file {file}");
        Err(Error::usage(why).hint("give a number, or make the run with kurabe run"))
    })
}

/// Starts runs as processes.
struct Runs {
    /// The broker's URL, with its password.
    fleet: String,
}

impl Executor for Runs {
    fn start(
        &mut self,
        id: &Name,
        submission: &Submission,
        folder: &Path,
    ) -> Result<Box<dyn Execution>, String> {
        let suite = folder.join("suite");
        for (name, text) in &submission.files {
            check_files(submission, name, text)?;
            let path = name.below(&suite);
            path.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&path, text))
                .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        let mut command = Command::new(PROGRAM);
        command.arg0("kurabe").arg("--runs-dir").arg(folder.join("runs"));
        command.args(["run", "--yes", "--label", id, "-f"]).arg(submission.suite.below(&suite));
        command.args(options(submission));
        command.env(WORKER, "1");
        // In the environment, where other users do not see the broker's password.
        match submission.agents {
            Some(NO_AGENTS) => command.env_remove("KURABE_RUN_FLEET"),
            _ => command.env("KURABE_RUN_FLEET", &self.fleet),
        };
        let output = folder.join("output.txt");
        let output = File::create(&output).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = output.map_err(|error| format!("its output cannot be written: {error}"))?;
        // Ctrl-C reaches the worker, which stops the run.
        command.process_group(0).stdin(Stdio::piped()).stdout(out).stderr(err);
        let child = command.spawn().map_err(|error| format!("the program cannot be started: {error}"))?;
        Ok(Box::new(RunProcess { child, ended: None }))
    }
}

/// Checks that the files that a file of a submission names were sent with it: the run would read any other.
fn check_files(submission: &Submission, name: &RelativePath, text: &str) -> Result<(), String> {
    let folder = Path::new(&**name).parent().unwrap_or(Path::new(""));
    for named in named_files(text) {
        let file = folder.join(&named);
        let sent = file.to_str().and_then(|file| RelativePath::parse(file).ok());
        if !sent.is_some_and(|file| submission.files.contains_key(&file)) {
            return Err(format!("{name} names the file '{named}', which was not sent with it"));
        }
    }
    Ok(())
}

/// The options of `kurabe run -f` that a submission asks for.
fn options(submission: &Submission) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    if submission.agents != Some(NO_AGENTS) {
        options.extend(submission.agents.map(|agents| format!("--agents={agents}")));
        if !submission.labels.is_empty() {
            let labels: Vec<String> =
                submission.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
            options.push(format!("--agent-label={}", labels.join(",")));
        }
        if submission.on_lost_agent == OnLostAgent::Continue {
            options.push("--on-lost-agent=continue".to_owned());
        }
    }
    options.extend(submission.define.iter().map(|(name, value)| format!("--define={name}={value}")));
    if submission.write {
        options.push("--write".to_owned());
    }
    options
}

struct RunProcess {
    child: Child,
    ended: Option<ExitStatus>,
}

impl Execution for RunProcess {
    fn ended(&mut self) -> Option<i32> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        // As a shell shows it.
        self.ended.map(|status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    fn confirm(&mut self) {
        if let Some(input) = &mut self.child.stdin {
            // It may just have ended.
            let _ = input.write_all(b"\n");
        }
    }

    fn stop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32).filter(|_| self.ended().is_none()) {
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

impl Drop for RunProcess {
    fn drop(&mut self) {
        if self.ended().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_not_sent_are_not_read() {
        let submitted = |(table, file): (&str, &str)| {
            let text = format!("[{table}]\nfile = \"{file}\"\n");
            let json = serde_json::json!({
                "suite": "s/w.toml", "files": { "s/w.toml": text, "s/values.csv": "1\n" }, "targets": [], "hosts": [],
                "agents": 0, "labels": {}, "on_lost_agent": "fail", "define": {}, "write": false, "by": "me",
            });
            let submission: Submission = serde_json::from_value(json).unwrap();
            submission.files.iter().try_for_each(|(name, text)| check_files(&submission, name, text))
        };
        for table in ["transaction.x", "[run]"] {
            for file in ["values.csv", "./values.csv"] {
                submitted((table, file)).unwrap();
            }
            for file in ["/etc/passwd", "../s/values.csv", "../../etc/passwd", "other.csv", ""] {
                let why = submitted((table, file)).unwrap_err();
                assert!(why.contains("was not sent with it"), "{table} {file}: {why}");
            }
        }
    }

    #[test]
    fn axis_of_a_submitted_run_names_no_file() {
        let info = kurabe_experiments::registry::find("webapp").unwrap().info();
        let axis = info.axes.iter().find(|axis| axis.name == "postal-codes").unwrap();
        let refused = |text: &str| {
            let mut spec = RunSpec::default();
            spec.axes.insert(axis.name.to_owned(), vec![axis.parse(text).unwrap()]);
            refuse_files(&spec, info).is_err()
        };
        assert!(refused("/etc/passwd") && refused("codes.csv"));
        assert!(!refused("auto") && !refused("100"));
    }
}
