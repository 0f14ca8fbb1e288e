//! The agent's side: observes servers of this host for `kurabe agent`.

use super::{Answer, RemoteSample, Request, boot};
use crate::monitor::Monitor;
use kurabe_core::observation::{MonitorGuard, Observer, ServerUse};

/// Answers requests for observations of servers of this host, one observation at a time.
#[derive(Default)]
pub struct ServerObserver {
    monitor: Monitor,
    running: Option<Box<dyn MonitorGuard>>,
}

impl ServerObserver {
    /// Observes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends an observation whose requester was lost.
    pub fn forget(&mut self) {
        self.running = None;
    }

    /// Answers a request; `None` if it does not follow from the earlier ones, which is an error of the protocol.
    pub fn answer(&mut self, request: Request) -> Option<Answer> {
        match (request, self.running.take()) {
            (Request::Begin { host, port }, None) => {
                let endpoint = crate::find::here(&host, port);
                if let Err(why) = crate::find::listeners(&endpoint) {
                    return Some(Answer::Not(why));
                }
                self.running = Some(self.monitor.begin(&endpoint, None));
                Some(Answer::Begun { boot: boot() })
            }
            (Request::End, Some(running)) => Some(ended(running)),
            _ => None,
        }
    }
}

fn ended(running: Box<dyn MonitorGuard>) -> Answer {
    let seen = running.end();
    let wire = seen.wire.unwrap_or_default();
    match seen.server {
        ServerUse::Seen(server) => Answer::Ended(Box::new(RemoteSample {
            server: *server,
            host: seen.host,
            samples: seen.samples,
            classified: wire.classified,
            at_server: wire.at_server,
        })),
        ServerUse::NotObserved(why) => Answer::Not(why),
        ServerUse::InClient => Answer::Not("it has no process of its own".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn port_at_which_nothing_listens_is_refused_with_reason() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut observer = ServerObserver::new();
        for _ in 0..2 {
            let begin = Request::Begin { host: "127.0.0.1".to_owned(), port: free };
            let Some(Answer::Not(why)) = observer.answer(begin) else { panic!("it was observed") };
            assert!(why.contains("no process here listens"), "{why}");
        }
    }

    #[test]
    fn end_without_a_begin_is_refused() {
        assert!(ServerObserver::new().answer(Request::End).is_none());
    }
}
