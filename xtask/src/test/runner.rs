//! Runs test programs: one after the other with a few threads each, and the next one already when a program has fewer tests
//! left than threads.
//!
//! A test that exceeds its limit fails, and only that test: its program is ended, because libtest cannot stop a test, and the
//! program's remaining tests run in a further pass. The same holds if a test ends its program. Nothing that has failed is
//! repeated.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::build::Program;
use super::output::{self, Clock, Reader, Status, names};
use super::start;
use super::summary::{Report, TestResult};

/// How often ends of programs and limits are looked for.
const TICK: Duration = Duration::from_millis(50);
/// How long output of a program that has ended is waited for, if processes that it left behind keep its pipes open.
const LEFT_BEHIND: Duration = Duration::from_secs(2);
/// Tests that take longer are shown when they end.
const SHOWN: Duration = Duration::from_secs(1);
/// The last lines of a failed program's standard error that are shown.
const ERRORS: usize = 100;

/// How tests are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Only tests whose names contain one of these; all if empty.
    pub filters: Vec<String>,
    /// The number of concurrent tests of a program.
    pub threads: usize,
    /// The longest time of a test.
    pub limit: Duration,
    /// Variables for the programs.
    pub environment: Vec<(String, String)>,
}

/// Some tests of a program: all that its filters select, or these.
struct Pass {
    program: usize,
    tests: Vec<String>,
    /// Whether only these of the selected tests are run.
    exact: bool,
}

/// A line of a program, or the end of one of its two streams.
enum Event {
    Out(usize, String),
    Err(usize, String),
    Closed(usize),
}

/// A program that runs.
struct Running {
    id: usize,
    pass: Pass,
    child: Child,
    began: Instant,
    clock: Clock,
    reader: Reader,
    done: Vec<TestResult>,
    out: Vec<String>,
    err: Vec<String>,
    open: u8,
    ended: Option<(ExitStatus, Instant)>,
    /// The tests because of which it was ended.
    exceeded: Vec<String>,
}

/// Runs the programs in this order, and adds the results.
pub fn run(programs: &[Program], options: &Options, report: &mut Report) {
    let mut queue: VecDeque<Pass> = VecDeque::new();
    for (program, built) in programs.iter().enumerate() {
        match list(built, options) {
            Ok(tests) if tests.is_empty() => {}
            Ok(tests) => queue.push_back(Pass { program, tests, exact: false }),
            Err(why) => report.broken(&built.label, &why),
        }
    }
    let (sender, receiver) = channel();
    let mut running: Vec<Running> = Vec::new();
    let mut id = 0;
    while !(queue.is_empty() && running.is_empty()) {
        while running.iter().map(|one| one.clock.left()).sum::<usize>() < options.threads
            && let Some(pass) = queue.pop_front()
        {
            id += 1;
            match Running::start(id, pass, programs, options, &sender) {
                Ok(started) => running.push(started),
                Err((program, why)) => report.broken(&programs[program].label, &why),
            }
        }
        take(&receiver, &mut running, programs);
        for one in &mut running {
            one.check(options.limit);
        }
        while let Some(at) = running.iter().position(Running::is_over) {
            let over = running.swap_remove(at);
            for pass in over.conclude(programs, report).into_iter().rev() {
                queue.push_front(pass);
            }
        }
    }
}

/// The number of selected tests of all programs.
pub fn count(programs: &[Program], options: &Options) -> u32 {
    let lists = programs.iter().filter_map(|program| list(program, options).ok());
    u32::try_from(lists.map(|tests| tests.len()).sum::<usize>()).unwrap_or(u32::MAX)
}

/// The selected tests of a program.
fn list(program: &Program, options: &Options) -> Result<Vec<String>, String> {
    let mut command = command(program, options);
    command.args(["--list", "--format", "terse"]).args(&options.filters);
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("its tests cannot be listed ({}): {why}", output.status));
    }
    Ok(names(&String::from_utf8_lossy(&output.stdout)))
}

/// A program as cargo would start it.
fn command(program: &Program, options: &Options) -> Command {
    let mut command = start::command(&program.path);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.envs(options.environment.iter().map(|(name, value)| (name, value)));
    command
}

/// Waits for lines for a moment, and gives them to their programs.
fn take(receiver: &Receiver<Event>, running: &mut [Running], programs: &[Program]) {
    let mut next = receiver.recv_timeout(TICK).ok();
    while let Some(event) = next {
        let (Event::Out(id, _) | Event::Err(id, _) | Event::Closed(id)) = &event;
        if let Some(one) = running.iter_mut().find(|one| one.id == *id) {
            one.take(event, programs);
        }
        next = receiver.try_recv().ok();
    }
}

impl Running {
    fn start(
        id: usize,
        pass: Pass,
        programs: &[Program],
        options: &Options,
        sender: &Sender<Event>,
    ) -> Result<Self, (usize, String)> {
        let mut command = command(&programs[pass.program], options);
        command.arg(format!("--test-threads={}", options.threads));
        if pass.exact {
            command.arg("--exact").args(&pass.tests);
        } else {
            command.args(&options.filters);
        }
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| (pass.program, error.to_string()))?;
        let began = Instant::now();
        if let Some(out) = child.stdout.take() {
            forward(out, sender.clone(), move |line| Event::Out(id, line), id);
        }
        if let Some(err) = child.stderr.take() {
            forward(err, sender.clone(), move |line| Event::Err(id, line), id);
        }
        let clock = Clock::start(&pass.tests, options.threads, began);
        Ok(Self {
            id,
            pass,
            child,
            began,
            clock,
            reader: Reader::default(),
            done: Vec::new(),
            out: Vec::new(),
            err: Vec::new(),
            open: 2,
            ended: None,
            exceeded: Vec::new(),
        })
    }

    fn take(&mut self, event: Event, programs: &[Program]) {
        match event {
            Event::Out(_, line) => {
                if let Some((name, status)) = self.reader.read(&line) {
                    let took = self.clock.end(&name, Instant::now());
                    let label = &programs[self.pass.program].label;
                    let result = TestResult { program: label.clone(), name, status, took };
                    if took > SHOWN || status == Status::Failed {
                        println!("{result}");
                    }
                    self.done.push(result);
                }
                self.out.push(line);
            }
            Event::Err(_, line) => self.err.push(line),
            Event::Closed(_) => self.open -= 1,
        }
    }

    /// Looks whether the program has ended, and ends it if a test takes too long.
    fn check(&mut self, limit: Duration) {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some((status, Instant::now()));
        }
        let over = self.clock.over(limit, Instant::now());
        if self.ended.is_none() && self.exceeded.is_empty() && !over.is_empty() {
            self.exceeded = over;
            start::end(self.child.id());
        }
    }

    fn is_over(&self) -> bool {
        self.ended.is_some_and(|(_, at)| self.open == 0 || at.elapsed() > LEFT_BEHIND)
    }

    /// Adds the results, and returns the passes for the tests that have none.
    fn conclude(self, programs: &[Program], report: &mut Report) -> Vec<Pass> {
        let program = self.pass.program;
        let label = &programs[program].label;
        let without: Vec<String> = {
            let has = |name: &String| self.done.iter().any(|result| result.name == *name);
            self.pass.tests.iter().filter(|name| !has(name)).cloned().collect()
        };
        let status = self.ended.map_or_else(|| "unknown".to_owned(), |(status, _)| status.to_string());
        let failed = |name: &String, why: String| {
            println!("{label}: {name} FAILED: {why}");
            let took = self.began.elapsed();
            (TestResult { program: label.clone(), name: name.clone(), status: Status::Failed, took }, why)
        };
        let suspects = self.clock.running();
        let mut blamed = Vec::new();
        let mut passes = Vec::new();
        if !self.exceeded.is_empty() {
            for name in &self.exceeded {
                let why = "it exceeded the limit of a test, and its program was ended".to_owned();
                blamed.push(failed(name, why));
            }
        } else if let [only] = &suspects[..] {
            blamed.push(failed(only, format!("its program ended ({status}) while it ran")));
        } else if !suspects.is_empty() {
            // One of them did it: each runs alone, but the program has failed whatever they do then.
            report.broken(label, &format!("it ended ({status}) while these ran: {}", suspects.join(", ")));
            let alone = |name: &String| Pass { program, tests: vec![name.clone()], exact: true };
            passes.extend(suspects.iter().map(alone));
        } else if self.ended.is_none_or(|(status, _)| !status.success())
            && !self.done.iter().any(|result| result.status == Status::Failed)
        {
            report.broken(label, &format!("it ended ({status}), and no test failed"));
        }
        let known = |name: &String| {
            blamed.iter().any(|(result, _)| result.name == *name)
                || (blamed.is_empty() && suspects.contains(name))
        };
        let rest: Vec<String> = without.into_iter().filter(|name| !known(name)).collect();
        let messages = output::failures(&self.out);
        if !messages.is_empty() {
            println!("\n{label}:\n{}", messages.join("\n"));
        }
        if !messages.is_empty() || !blamed.is_empty() {
            let err = &self.err[self.err.len().saturating_sub(ERRORS)..];
            for line in err {
                println!("{label}, standard error: {line}");
            }
        }
        report.pass(label, self.began.elapsed(), self.done, &self.err);
        for (result, why) in blamed {
            report.blamed(result, &why);
        }
        if !rest.is_empty() {
            println!("{label}: {} further tests run without what ended it", rest.len());
            passes.push(Pass { program, tests: rest, exact: true });
        }
        passes
    }
}

/// Sends each line of a stream, and that it has ended.
fn forward(
    from: impl Read + Send + 'static,
    sender: Sender<Event>,
    event: impl Fn(String) -> Event + Send + 'static,
    id: usize,
) {
    thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            if sender.send(event(text)).is_err() {
                return;
            }
            line.clear();
        }
        let _ = sender.send(Event::Closed(id));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::path::PathBuf;

    /// A shell script that speaks as libtest does. It runs the tests `a` to `d`; `b` does this.
    fn program(name: &str, of_b: &str) -> (PathBuf, Program) {
        let folder = std::env::temp_dir().join(format!("kurabe-runner-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tests");
        let text = format!(
            "#!/bin/sh\n\
             case \"$*\" in *--list*) printf 'a: test\\nb: test\\nc: test\\nd: test\\n'; exit ;; esac\n\
             shift; [ \"$1\" = --exact ] && shift || set -- a b c d\n\
             for one; do\n\
                 if [ \"$one\" = b ]; then {of_b}; fi\n\
                 echo \"test $one ... ok\"\n\
             done\n"
        );
        // By another process: a file that this one has open for writing, children of other threads have open too for a
        // moment, and it cannot be executed then.
        let mut install = Command::new("install");
        install.args(["-m", "755", "/dev/stdin"]).arg(&path).stdin(Stdio::piped());
        let mut install = install.spawn().unwrap();
        install.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(install.wait().unwrap().success());
        let program = Program { label: "x: tests".to_owned(), unit: false, path, folder: folder.clone() };
        (folder, program)
    }

    fn counts(name: &str, of_b: &str, threads: usize, limit: u64) -> [usize; 3] {
        let (folder, program) = program(name, of_b);
        let limit = Duration::from_secs(limit);
        let options = Options { filters: Vec::new(), threads, limit, environment: Vec::new() };
        let mut report = Report::default();
        run(&[program.clone(), program], &options, &mut report);
        fs::remove_dir_all(&folder).unwrap();
        report.counts()
    }

    #[test]
    fn every_test_of_every_program_has_its_result() {
        assert_eq!(counts("all", "echo 'skipped b: no server' >&2", 2, 60), [6, 0, 2]);
        assert_eq!(counts("fails", "echo 'test b ... FAILED'; continue", 2, 60), [6, 2, 0]);
    }

    #[test]
    fn test_over_its_limit_fails_and_the_others_run_without_it() {
        assert_eq!(counts("hangs", "sleep 600", 1, 3), [6, 2, 0]);
    }

    #[test]
    fn test_that_ends_its_program_fails_and_the_others_run_without_it() {
        assert_eq!(counts("exits", "exit 1", 1, 60), [6, 2, 0]);
        // Of two that run at once, each runs alone; the program has failed as well.
        assert_eq!(counts("killed", "kill -9 $$", 2, 60), [6, 4, 0]);
    }

    #[test]
    fn program_that_cannot_be_started_is_a_failure() {
        let path = PathBuf::from("/nonexistent");
        let program = Program { label: "x".to_owned(), unit: true, path, folder: PathBuf::from("/") };
        let options = Options {
            filters: Vec::new(),
            threads: 2,
            limit: Duration::from_secs(60),
            environment: Vec::new(),
        };
        let mut report = Report::default();
        run(&[program], &options, &mut report);
        assert_eq!(report.counts(), [0, 1, 0]);
    }
}
