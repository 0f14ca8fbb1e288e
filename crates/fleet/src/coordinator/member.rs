//! What the coordinator knows of one agent.

use super::link::Link;
use crate::clock::Offset;
use crate::delivery::Delivery;
use crate::message::{About, Answer, Frame, FromAgent, Roles, ToAgent};
use kurabe_core::text::printable;
use std::collections::VecDeque;
use std::time::Instant;

pub(super) struct Member {
    pub(super) name: String,
    /// What it says that it is; `None` until it has joined.
    pub(super) about: Option<About>,
    link: Link,
    delivery: Delivery<ToAgent>,
    pub(super) heard: Instant,
    /// Why it is lost, as a clause.
    pub(super) lost: Option<String>,
    /// Whether the run goes on without it.
    pub(super) left_out: bool,
    /// What it does for the run.
    pub(super) roles: Roles,
    /// Answers to requests for observations, in order.
    pub(super) observed: VecDeque<kurabe_observe::Answer>,
    /// Messages about its trial, in order.
    pub(super) inbox: VecDeque<FromAgent>,
    /// Transactions that it has completed in its trial.
    pub(super) completed: u64,
    /// The last comparison of clocks: the number of pings that were answered, and the best answer.
    pub(super) clock: Option<Offset>,
    pub(super) pong: u32,
    pub(super) ping: (u32, Instant),
}

impl Member {
    pub(super) fn new(name: String, roles: Roles, link: Link) -> Self {
        let now = Instant::now();
        Self {
            name,
            about: None,
            link,
            delivery: Delivery::default(),
            heard: now,
            lost: None,
            left_out: false,
            roles,
            observed: VecDeque::new(),
            inbox: VecDeque::new(),
            completed: 0,
            clock: None,
            pong: 0,
            ping: (0, now),
        }
    }

    /// Whether it runs clients in trials.
    pub(super) fn runs_clients(&self) -> bool {
        self.roles.load && !self.left_out
    }

    /// Sends a message that must arrive.
    pub(super) fn send(&mut self, message: ToAgent) {
        let frame = self.delivery.numbered(message, Instant::now());
        self.write(&frame);
    }

    /// Sends a message that may be lost.
    pub(super) fn send_once(&mut self, message: ToAgent) {
        let frame = self.delivery.unnumbered(message);
        self.write(&frame);
    }

    /// A sign of life, with what was not confirmed.
    pub(super) fn beat(&mut self) {
        if self.lost.is_none() {
            self.send_once(ToAgent::Beat);
            for frame in self.delivery.due(Instant::now()) {
                self.write(&frame);
            }
        }
    }

    /// Asks for its time.
    pub(super) fn ping(&mut self, number: u32) {
        self.ping = (number, Instant::now());
        self.send_once(ToAgent::Ping { number });
    }

    fn write(&mut self, frame: &Frame<ToAgent>) {
        if self.lost.is_some() {
            return;
        }
        let sent = match serde_json::to_vec(frame) {
            Ok(line) => self.link.send(line),
            Err(error) => Err(format!("a message cannot be written: {error}")),
        };
        if let Err(why) = sent {
            self.lose(&why);
        }
    }

    /// Notes that it is lost. The first reason counts.
    pub(super) fn lose(&mut self, why: &str) {
        self.lost.get_or_insert(printable(why).into_owned());
    }

    /// Handles a line. `epoch` is where the coordinator's clock begins.
    pub(super) fn receive(&mut self, line: &[u8], at: Instant, epoch: Instant) {
        let Ok(Answer::Fleet(frame)) = serde_json::from_slice(line) else {
            return self.lose("it does not follow the protocol");
        };
        self.heard = self.heard.max(at);
        if !self.delivery.accept(frame.number, frame.seen) {
            return;
        }
        match frame.message {
            FromAgent::Here(about) => match about.refusal() {
                None => self.about = Some(*about),
                Some(why) => self.lose(&why),
            },
            FromAgent::Pong { number, at_ns } => {
                let (asked, sent) = self.ping;
                if number == asked && number != self.pong {
                    let nanos = |at: Instant| at.saturating_duration_since(epoch).as_nanos() as u64;
                    let answer = Offset::of(nanos(sent), nanos(at), at_ns);
                    self.clock = Some(answer.better(self.clock));
                    self.pong = number;
                }
            }
            FromAgent::Beat { completed } => self.completed = completed,
            FromAgent::Observed(answer) => self.observed.push_back(*answer),
            FromAgent::Gone { why } => self.lose(&why),
            message => self.inbox.push_back(message),
        }
    }
}
