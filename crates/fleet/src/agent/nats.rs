//! An agent on NATS: for each run it starts a process `kurabe agent --stdio`, and passes lines on in both directions.
//!
//! So the agent of a run can always be ended, with all of its connections, whatever a driver does.

use super::allowed::Allowed;
use crate::message::{About, Answer, Call, Frame, FromAgent, Request, Roles, ToAgent};
use crate::nats::{Bus, CALL, Publisher, Received, subject_of};
use crate::place::FleetUrl;
use crate::silence::Stillness;
use crate::{BEAT, SILENCE};
use kurabe_core::name::Name;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_observe::AgentProcess;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the agent looks at its clocks while no message arrives.
const TICK: Duration = Duration::from_millis(100);
/// Why a run ends that its coordinator ended.
const ENDED: &str = "its process ended";
/// This program, even if its file was replaced by another version since.
const PROGRAM: &str = "/proc/self/exe";
/// How long the process of a run has to end by itself.
const END: Duration = Duration::from_millis(700);

/// The beginning of the subjects to which an agent answers: those of clients that wait for an answer.
const INBOX: &str = "_INBOX.";

/// Serves one run after the other on a broker, until `stop` is set. `note` is told what happens.
///
/// # Errors
/// If the broker cannot be reached at the start.
pub fn serve_nats(
    url: &FleetUrl,
    name: Option<&str>,
    labels: BTreeMap<String, String>,
    roles: Roles,
    allowed: &Allowed,
    stop: &AtomicBool,
    note: &dyn Fn(&str),
) -> Result<()> {
    let FleetUrl::Nats(address) = url else {
        return Err(Error::usage("an agent waits on a broker").hint("write --broker nats://HOST:4222"));
    };
    let about = About { roles, ..About::this(name, labels) };
    let bus = Bus::connect(address, &url.shown(), &format!("kurabe agent {}", about.agent.name))?;
    let (to, messages) = channel();
    bus.subscribe(CALL, to.clone())?;
    bus.subscribe(&subject_of(&about.id), to)?;
    let publisher = bus.publisher()?;
    note(&format!("agent {} waits for runs on {}", about.agent.name, url.shown()));
    let mut bridge = Bridge { about, allowed, publisher, note, run: None, stillness: Stillness::new() };
    while !stop.load(Ordering::Relaxed) {
        // What was received before this time has been handled.
        let mut now = Instant::now();
        match messages.recv_timeout(TICK) {
            Ok(received) => {
                now = received.at;
                bridge.handle(&received);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(
                    ErrorKind::ConnectionLost,
                    format!("{}: the connection was closed", url.shown()),
                ));
            }
        }
        bridge.watch(now);
    }
    if let Some(run) = bridge.run.take() {
        bridge.send(&run.coordinator, FromAgent::Gone { why: "it was stopped".to_owned() });
        run.end();
    }
    Ok(())
}

struct Bridge<'a> {
    about: About,
    allowed: &'a Allowed,
    publisher: Publisher,
    note: &'a dyn Fn(&str),
    run: Option<Run>,
    stillness: Stillness,
}

/// A run that the agent belongs to.
struct Run {
    name: Name,
    /// The subject of its coordinator.
    coordinator: String,
    process: AgentProcess,
    /// Why the process ended, once it has.
    ended: Receiver<String>,
    heard: Instant,
}

impl Run {
    /// Ends the process, and with it all connections.
    fn end(mut self) {
        self.process.hang_up();
        if self.ended.recv_timeout(END) == Err(RecvTimeoutError::Timeout) {
            self.process.kill();
        }
    }
}

impl Bridge<'_> {
    fn handle(&mut self, received: &Received) {
        // Answers go only to reply subjects of clients: other subjects have other meanings.
        let Some(reply) = received.reply.as_ref().filter(|reply| reply.starts_with(INBOX)) else { return };
        if received.subject == CALL {
            // Also answered if the versions differ: the coordinator says so.
            if serde_json::from_slice::<Call>(&received.payload).is_ok() {
                let busy = self.run.as_ref().map(|run| run.name.clone());
                let about = About { busy, ..self.about.clone() };
                self.send(reply, FromAgent::Here(Box::new(about)));
            }
            return;
        }
        let is_other = self.run.as_ref().is_some_and(|run| run.coordinator != *reply);
        if is_other {
            let why = "it belongs to another run".to_owned();
            self.send(reply, FromAgent::Gone { why });
            return;
        }
        if self.run.is_none() && !self.join(&received.payload, reply) {
            return;
        }
        if let Some(run) = &mut self.run {
            run.heard = received.at;
            let mut line = received.payload.clone();
            line.push(b'\n');
            // A process that has ended is noticed by its output.
            let _ = run.process.send_line(&line);
        }
    }

    /// Starts the process of a run, if this is its first message. Later ones of a run that has ended are ignored.
    fn join(&mut self, payload: &[u8], coordinator: &str) -> bool {
        let Ok(Request::Fleet(Frame { message: ToAgent::Join { run: name }, .. })) =
            serde_json::from_slice(payload)
        else {
            return false;
        };
        match self.start(&name, coordinator) {
            Ok(run) => {
                (self.note)(&format!("run {name} began"));
                self.run = Some(run);
                true
            }
            Err(why) => {
                (self.note)(&format!("run {name} cannot be served: {why}"));
                self.send(coordinator, FromAgent::Gone { why });
                false
            }
        }
    }

    fn start(&self, name: &Name, coordinator: &str) -> Result<Run, String> {
        let mut command = Command::new(PROGRAM);
        command.arg0("kurabe").args(["agent", "--stdio", "--name", &self.about.agent.name]);
        for (label, value) in &self.about.agent.labels {
            command.args(["--agent-label", &format!("{label}={value}")]);
        }
        command.args(self.allowed.arguments());
        let mut process = AgentProcess::of(command)?;
        let (lines, errors) = process.take_output();
        let (publisher, subject) = (self.publisher.clone(), coordinator.to_owned());
        let (to, ended) = channel();
        let pass = move || {
            for mut line in lines {
                line.pop();
                publisher.publish(&subject, None, line);
            }
            let why = errors.recv_timeout(END).unwrap_or_default();
            let why = if why.is_empty() { ENDED.to_owned() } else { format!("{ENDED}: {why}") };
            let _ = to.send(why);
        };
        let spawned = thread::Builder::new().name("answers".to_owned()).spawn(pass);
        spawned.map_err(|error| format!("no thread can be started for its answers: {error}"))?;
        let (name, coordinator) = (name.clone(), coordinator.to_owned());
        Ok(Run { name, coordinator, process, ended, heard: Instant::now() })
    }

    /// Notices that the process has ended, or that the coordinator is silent. `now` is the time until which all messages were
    /// handled.
    fn watch(&mut self, now: Instant) {
        let stood_still = self.stillness.look(Instant::now());
        let Some(run) = &mut self.run else { return };
        run.heard += stood_still;
        let ended = run.ended.try_recv().ok();
        // The process notices it by itself, a little earlier.
        let silent = now.saturating_duration_since(run.heard) >= SILENCE + BEAT;
        if ended.is_none() && !silent {
            return;
        }
        let Some(run) = self.run.take() else { return };
        let why = ended.unwrap_or_else(|| "the coordinator gave no sign of life".to_owned());
        let because = if why == ENDED { String::new() } else { format!(": {why}") };
        (self.note)(&format!("run {} ended{because}", run.name));
        self.send(&run.coordinator, FromAgent::Gone { why });
        run.end();
    }

    fn send(&self, subject: &str, message: FromAgent) {
        let answer = Answer::Fleet(Box::new(Frame { number: 0, seen: 0, message }));
        if let Ok(line) = serde_json::to_vec(&answer) {
            self.publisher.publish(subject, None, line);
        }
    }
}
