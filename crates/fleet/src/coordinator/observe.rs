//! Agents that observe servers of their hosts.

use super::agents::Agents;
use super::shared::Shared;
use crate::message::ToAgent;
use kurabe_core::observation::Endpoint;
use kurabe_observe::{ANSWER, Answer, Conversation, Remote, Request};
use std::sync::Arc;
use std::time::Instant;

/// Requests for observations to one agent.
struct Requests {
    shared: Arc<Shared>,
    agent: usize,
}

impl Conversation for Requests {
    fn request(&mut self, request: &Request) -> Result<Answer, String> {
        if let Some(member) = self.shared.lock().members.get_mut(self.agent) {
            member.observed.clear();
            member.send(ToAgent::Observe(request.clone()));
        }
        let answered = self.shared.wait(Instant::now() + ANSWER, |state| {
            let member = state.members.get_mut(self.agent)?;
            let answer = member.observed.pop_front();
            answer.map(Ok).or_else(|| member.lost.clone().map(Err))
        });
        answered.unwrap_or_else(|| Err("it did not answer in time".to_owned()))
    }
}

impl Agents {
    /// The agent that observes the server at this endpoint, with its name; `None` if no agent does. A server at the
    /// coordinator's loopback interface is observed by the coordinator.
    pub fn observer_of(&self, endpoint: &Endpoint) -> Option<(String, Remote)> {
        let Endpoint::Tcp { host, port } = endpoint else { return None };
        if endpoint.is_here() {
            return None;
        }
        let observers: Vec<(usize, String)> = {
            let state = self.shared.lock();
            let all = state.members.iter().enumerate().filter(|(_, member)| member.roles.observe);
            all.map(|(agent, member)| (agent, member.name.clone())).collect()
        };
        observers.into_iter().find_map(|(agent, name)| {
            let shared = Arc::clone(&self.shared);
            let begin = move || -> Result<Box<dyn Conversation>, String> {
                Ok(Box::new(Requests { shared: Arc::clone(&shared), agent }))
            };
            let remote = Remote::reached_by(name.clone(), begin);
            remote.try_out(host, *port).is_ok().then_some((name, remote))
        })
    }
}
