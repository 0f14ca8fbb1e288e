//! The messages between a coordinator and its agents: lines of JSON, which both transports carry.
//!
//! A [`Frame`] numbers what must arrive exactly once and in order (`delivery.rs`). Signs of life and the messages of
//! the comparison of clocks have no number: late ones are of no use. Requests for observations of a server
//! ([`kurabe_observe::Request`]) have no frame.

use crate::build::Build;
use kurabe_core::fleet::AgentRecord;
use kurabe_core::name::Name;
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_engine::fleet::{ClientResult, ClientShare, Order, ShareResult};
use serde::{Deserialize, Serialize};

/// A line to an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Request {
    /// A message of a coordinator.
    Fleet(Frame<ToAgent>),
    /// A request for an observation.
    Observe(kurabe_observe::Request),
}

/// A line of an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// A message to a coordinator.
    Fleet(Box<Frame<FromAgent>>),
    /// The answer to a request for an observation.
    Observe(kurabe_observe::Answer),
}

/// A message with what its delivery needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frame<M> {
    /// Its number among those of its sender, from 1; 0: it has none, and may be lost.
    pub number: u64,
    /// The number up to which its sender has received all frames of the other side.
    pub seen: u64,
    pub message: M,
}

/// A message of the coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToAgent {
    /// The agent belongs to this run from now on. The answer is [`FromAgent::Here`].
    Join { run: Name },
    /// What is your time? The answer is [`FromAgent::Pong`].
    Ping { number: u32 },
    /// A sign of life.
    Beat,
    /// Run a part of a trial's clients. Each of these ends with one [`FromAgent::Done`] or [`FromAgent::Failed`].
    Load(Box<Load>),
    /// Start the clients at this time of the agent's clock.
    Go {
        /// Nanoseconds of the agent's clock.
        at_ns: u64,
    },
    /// End the measured phase: another agent ended it, because it has no more records to change.
    Stop,
    /// Close the clients' connections, and send the results.
    Close,
    /// End the trial without results.
    Abort,
    /// Begin or end the observation of a server on the agent's host. The answer is [`FromAgent::Observed`].
    Observe(kurabe_observe::Request),
    /// The run has ended.
    Leave,
}

/// A part of a trial's clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// The trial.
    pub order: Order,
    pub part: ClientShare,
    /// The target's URL, without its password but of a throwaway server.
    pub url: String,
    /// The password of a throwaway server that the coordinator started; `None` for every other target, whose password is not
    /// sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
}

/// A message of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromAgent {
    /// What the agent is.
    Here(Box<About>),
    /// The agent's time when a ping arrived.
    Pong {
        /// The ping's number.
        number: u32,
        /// Nanoseconds of the agent's clock.
        at_ns: u64,
    },
    /// A sign of life.
    Beat {
        /// Transactions completed in the current trial.
        completed: u64,
    },
    /// The clients are connected, have warmed up, and wait.
    Ready,
    /// The clients have made their last transaction.
    Ended {
        /// Whether a client ended the measured phase for all.
        stopped: bool,
    },
    /// The results of some clients; more may follow.
    Clients(Vec<ClientResult>),
    /// All else that the clients of the agent recorded. Its part of the trial has ended.
    Done(Box<ShareResult>),
    /// Its part of the trial has failed, and has ended.
    Failed(Fault),
    /// The answer to a request for an observation.
    Observed(Box<kurabe_observe::Answer>),
    /// Why the agent ends.
    Gone {
        /// As a clause.
        why: String,
    },
}

/// Why an agent's part of a trial has no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub kind: ErrorKind,
    pub message: String,
    /// Wrong replies.
    pub mismatches: u64,
    /// How long the agent's process stood still, in nanoseconds.
    pub stood_still_ns: u64,
}

/// What an agent does for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roles {
    /// It runs clients.
    pub load: bool,
    /// It observes servers of its host.
    pub observe: bool,
}

impl Default for Roles {
    fn default() -> Self {
        Self { load: true, observe: false }
    }
}

impl Roles {
    /// Reads a list: `load`, `observe` or `load,observe`.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        let mut roles = Self { load: false, observe: false };
        for word in text.split(',') {
            match word.trim() {
                "load" => roles.load = true,
                "observe" => roles.observe = true,
                other => {
                    return Err(Error::usage(format!("'{other}' is not a role of an agent"))
                        .hint("write load, observe, or load,observe"));
                }
            }
        }
        Ok(roles)
    }
}

/// What an agent is. Members that another version adds are ignored, so that its version can be named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Distinguishes it from all others.
    pub id: Name,
    /// What a run records of it.
    pub agent: AgentRecord,
    /// Its program's version. It must be the coordinator's: another version may choose other rows.
    pub kurabe: String,
    /// What the program was made of, which must be equal too.
    #[serde(default)]
    pub build: Build,
    /// Its version of the protocol.
    pub protocol: u32,
    /// The boot identifier of its kernel, which is equal for all agents of a machine.
    pub boot: String,
    /// Its network namespace. Only agents with the coordinator's own reach what listens on its loopback interface.
    pub network: String,
    /// Its process.
    pub pid: u32,
    /// What it does for a run.
    #[serde(default)]
    pub roles: Roles,
    /// The run that it belongs to; `None`: it is free.
    pub busy: Option<Name>,
}

/// A call for agents, to all on a broker. The answers are frames with [`FromAgent::Here`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The coordinator's version of the protocol.
    pub kurabe_fleet: u32,
}

/// The maximum number of clients in one message, so that it is smaller than a broker's limit (1 MiB by default).
pub const CLIENTS: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_runs_and_of_observers_are_told_apart() {
        let read = |line: &str| serde_json::from_str::<Request>(line).unwrap();
        assert!(matches!(read("\"end\""), Request::Observe(kurabe_observe::Request::End)));
        let begin = r#"{"begin":{"host":"::1","port":5}}"#;
        assert!(matches!(read(begin), Request::Observe(kurabe_observe::Request::Begin { port: 5, .. })));
        let beat = r#"{"number":0,"seen":7,"message":"beat"}"#;
        let Request::Fleet(frame) = read(beat) else { panic!("it is a frame") };
        assert_eq!(frame, Frame { number: 0, seen: 7, message: ToAgent::Beat });
        assert_eq!(serde_json::to_string(&Request::Fleet(frame)).unwrap(), beat);
        for wrong in ["{}", "\"beat\"", "GET / HTTP/1.1", "{\"number\":0,\"seen\":0,\"message\":\"fly\"}"] {
            assert!(serde_json::from_str::<Request>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn roles_are_a_list_of_known_words() {
        assert_eq!(Roles::parse("load").unwrap(), Roles::default());
        assert_eq!(Roles::parse("observe").unwrap(), Roles { load: false, observe: true });
        assert_eq!(Roles::parse("load, observe").unwrap(), Roles { load: true, observe: true });
        for wrong in ["", "load,", "rest", "run"] {
            assert!(Roles::parse(wrong).is_err(), "{wrong}");
        }
    }

    mod fuzz {
        use super::*;

        #[test]
        fn any_line_is_a_message_or_refused() {
            bolero::check!(name = "fleet-messages").for_each(|line: &[u8]| {
                let _ = serde_json::from_slice::<Request>(line);
                if let Ok(Answer::Fleet(frame)) = serde_json::from_slice::<Answer>(line) {
                    // What was read can be written, and is read again.
                    let written = serde_json::to_vec(&frame).unwrap();
                    assert!(matches!(serde_json::from_slice(&written), Ok(Answer::Fleet(_))));
                }
            });
        }
    }
}
