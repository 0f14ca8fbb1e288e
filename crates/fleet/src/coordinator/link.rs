//! The two transports: a pipe to a process, and NATS.

use crate::nats::{Bus, Publisher};
use kurabe_observe::AgentProcess;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How long an ended process has to say why.
const END: Duration = Duration::from_millis(500);

/// What happens at an agent.
pub(super) enum Event {
    /// It sent a line.
    Line { agent: usize, at: Instant, line: Vec<u8> },
    /// It ended.
    Gone { agent: usize, why: String },
}

/// What sends lines to one agent.
pub(super) enum Link {
    Pipe(AgentProcess),
    Nats {
        publisher: Publisher,
        /// The agent's subject.
        subject: String,
        /// Where the agent answers.
        reply: String,
        /// Kept open as long as an agent uses it.
        _bus: Arc<Bus>,
    },
}

impl Link {
    /// Sends a line without its line break.
    ///
    /// # Errors
    /// Why it cannot be sent, as a clause.
    pub(super) fn send(&mut self, mut line: Vec<u8>) -> Result<(), String> {
        match self {
            Self::Pipe(process) => {
                line.push(b'\n');
                process.send_line(&line).map_err(|error| format!("it cannot be written to: {error}"))
            }
            Self::Nats { publisher, subject, reply, .. } => {
                publisher.publish(subject, Some(reply), line);
                Ok(())
            }
        }
    }
}

/// Passes the lines of a process on, until it ends.
pub(super) fn pass_lines(
    agent: usize,
    lines: Receiver<Vec<u8>>,
    errors: Receiver<String>,
    to: Sender<Event>,
) -> std::io::Result<()> {
    let pass = move || {
        for line in lines {
            if to.send(Event::Line { agent, at: Instant::now(), line }).is_err() {
                return;
            }
        }
        let why = errors.recv_timeout(END).unwrap_or_default();
        let why = if why.is_empty() { "it ended".to_owned() } else { format!("it ended: {why}") };
        let _ = to.send(Event::Gone { agent, why });
    };
    thread::Builder::new().name("agent".to_owned()).spawn(pass).map(drop)
}
