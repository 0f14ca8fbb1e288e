//! The agent's side.

mod allowed;
mod nats;
mod outbox;
mod trial;

pub use allowed::Allowed;
pub use nats::serve_nats;

use crate::message::{About, FromAgent, Request, ToAgent};
use crate::{BEAT, SILENCE};
use kurabe_observe::{Answer, ServerObserver, read_line};
use outbox::Outbox;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use trial::Running;

/// How often the agent looks at its clocks while no message arrives.
const TICK: Duration = Duration::from_millis(50);
/// The time for the clients of a trial to close their connections when the agent ends. After that, the end of the
/// process closes them.
const LAST: Duration = Duration::from_millis(500);

/// Serves a run over a pipe, until its input ends or the coordinator is silent for [`SILENCE`]. The process must end then:
/// clients of a trial may still have connections open.
///
/// # Errors
/// If reading or writing fails; [`InvalidData`](io::ErrorKind::InvalidData) if a message does not follow the protocol;
/// [`TimedOut`](io::ErrorKind::TimedOut) if the coordinator is silent.
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    name: Option<&str>,
    labels: BTreeMap<String, String>,
    allowed: Allowed,
) -> io::Result<()> {
    let out = Arc::new(Outbox::new(output)?);
    out.greet()?;
    let (to, lines) = channel();
    thread::Builder::new().name("requests".to_owned()).spawn(move || {
        let mut input = BufReader::new(input);
        while let Some(line) = read_line(&mut input).transpose() {
            let is_last = line.is_err();
            if to.send(line).is_err() || is_last {
                return;
            }
        }
    })?;
    let mut agent = Agent {
        about: About::this(name, labels),
        allowed: Arc::new(allowed),
        out: Arc::clone(&out),
        began: Instant::now(),
        observer: ServerObserver::new(),
        running: None,
        joined: None,
        beat: Instant::now(),
    };
    let ended = loop {
        match lines.recv_timeout(TICK) {
            Ok(line) => match line.and_then(|line| agent.handle(&line)) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            },
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
            // Only if nothing waits to be read: this process itself may have stood still.
            Err(RecvTimeoutError::Timeout) => {
                if let Err(error) = agent.hears_nothing() {
                    break Err(error);
                }
            }
        }
        if let Err(error) = agent.beat() {
            break Err(error);
        }
    };
    if let Some(running) = agent.running.take() {
        running.end_within(LAST);
    }
    out.drain_within(LAST);
    ended
}

struct Agent {
    about: About,
    allowed: Arc<Allowed>,
    out: Arc<Outbox>,
    /// From here on the agent's clock counts.
    began: Instant,
    observer: ServerObserver,
    running: Option<Running>,
    /// When the coordinator was last heard; `None`: there is none.
    joined: Option<Instant>,
    beat: Instant,
}

impl Agent {
    /// Handles a line; `false` if it is the last one.
    fn handle(&mut self, line: &[u8]) -> io::Result<bool> {
        let frame = match serde_json::from_slice(line).map_err(|_| invalid())? {
            Request::Observe(request) => {
                let answer: Answer = self.observer.answer(request).ok_or_else(invalid)?;
                self.out.answer(&answer)?;
                return Ok(true);
            }
            Request::Fleet(frame) => frame,
        };
        let now = Instant::now();
        if let ToAgent::Join { .. } = frame.message {
            self.joined = Some(now);
        }
        if self.joined.is_none() {
            return Err(invalid());
        }
        self.joined = Some(now);
        if !self.out.accept(frame.number, frame.seen) {
            return Ok(true);
        }
        match frame.message {
            ToAgent::Join { .. } => self.out.send(FromAgent::Here(Box::new(self.about.clone())))?,
            ToAgent::Ping { number } => {
                let at_ns = now.saturating_duration_since(self.began).as_nanos() as u64;
                self.out.send_once(FromAgent::Pong { number, at_ns })?;
            }
            ToAgent::Beat => {}
            ToAgent::Load(load) => {
                if self.running.as_ref().is_some_and(Running::is_running) {
                    return Err(invalid());
                }
                self.running = Some(Running::start(*load, Arc::clone(&self.allowed), Arc::clone(&self.out))?);
            }
            ToAgent::Go { at_ns } => {
                let at = self.began + Duration::from_nanos(at_ns);
                self.running.as_ref().ok_or_else(invalid)?.go(at);
            }
            ToAgent::Stop => self.running.as_ref().ok_or_else(invalid)?.stop(),
            ToAgent::Close => self.running.as_ref().ok_or_else(invalid)?.close(),
            ToAgent::Abort => {
                if let Some(running) = &mut self.running {
                    running.abort();
                }
            }
            ToAgent::Observe(request) => {
                if matches!(request, kurabe_observe::Request::Begin { .. }) {
                    // The coordinator did not wait for the end of the last one.
                    self.observer.forget();
                }
                let none = || Answer::Not("no observation has begun".to_owned());
                let answer = self.observer.answer(request).unwrap_or_else(none);
                self.out.send(FromAgent::Observed(Box::new(answer)))?;
            }
            ToAgent::Leave => return Ok(false),
        }
        Ok(true)
    }

    /// Fails if the coordinator is silent.
    fn hears_nothing(&self) -> io::Result<()> {
        match self.joined {
            Some(heard) if heard.elapsed() >= SILENCE => {
                let why = format!("the coordinator gave no sign of life for {:.1} s", SILENCE.as_secs_f64());
                Err(io::Error::new(io::ErrorKind::TimedOut, why))
            }
            _ => Ok(()),
        }
    }

    fn beat(&mut self) -> io::Result<()> {
        if self.joined.is_none() || self.beat.elapsed() < BEAT {
            return Ok(());
        }
        self.beat = Instant::now();
        // Nobody reads: what waits would only grow.
        if self.out.is_stuck() {
            return Ok(());
        }
        let completed = self.running.as_ref().map_or(0, Running::completed);
        self.out.send_once(FromAgent::Beat { completed })?;
        self.out.send_again()
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the request does not follow the protocol")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// An output that a test can read.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The agent's answers to these lines, without its greeting.
    fn answers(requests: &str) -> (io::Result<()>, Vec<String>) {
        let out = Shared::default();
        let input = io::Cursor::new(requests.as_bytes().to_vec());
        let ended = serve(input, out.clone(), Some("me"), BTreeMap::new(), Allowed::ANY);
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        let mut lines = text.lines().map(str::to_owned);
        assert_eq!(lines.next().as_deref(), Some(r#"{"kurabe_agent":3}"#));
        (ended, lines.collect())
    }

    #[test]
    fn invalid_or_incomplete_requests_end_the_agent() {
        let load_before_join = r#"{"number":1,"seen":0,"message":"beat"}"#;
        for request in [
            "GET / HTTP/1.1\r\n",
            "{}\n",
            "\"end\"\n",
            "\n",
            "\u{1}\u{0}\n",
            &format!("{load_before_join}\n"),
        ] {
            let (ended, answers) = answers(request);
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData, "{request:?}");
            assert!(answers.is_empty(), "{answers:?}");
        }
        for request in ["", "{\"begin\":{\"host\":\"127.0.0.1\",\"port\":1}"] {
            let (ended, answers) = answers(request);
            assert!(ended.is_ok() && answers.is_empty(), "{request:?}: {ended:?} {answers:?}");
        }
    }

    #[test]
    fn endless_line_is_refused_and_not_stored() {
        let endless = io::Read::take(io::repeat(b'1'), 1 << 30);
        let ended = serve(endless, io::sink(), None, BTreeMap::new(), Allowed::ANY);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn agent_says_what_it_is_and_answers_each_message_once() {
        let join = r#"{"number":1,"seen":0,"message":{"join":{"run":"r"}}}"#;
        let ping = r#"{"number":0,"seen":0,"message":{"ping":{"number":7}}}"#;
        let (ended, answers) = answers(&format!("{join}\n{join}\n{ping}\n"));
        ended.unwrap();
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert!(
            answers[0].contains(r#""name":"me""#) && answers[0].starts_with(r#"{"number":1,"seen":1,"#),
            "{answers:?}"
        );
        assert!(answers[1].contains(r#"{"pong":{"number":7,"#), "{answers:?}");
    }

    /// An output that nobody reads: it takes the first lines only.
    struct Blocked(usize);

    impl Write for Blocked {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(left) = self.0.checked_sub(1) {
                self.0 = left;
                return Ok(bytes.len());
            }
            loop {
                thread::park();
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn agent_whose_coordinator_neither_reads_nor_writes_ends() {
        let (input, mut coordinator) = io::pipe().unwrap();
        let join = "{\"number\":1,\"seen\":0,\"message\":{\"join\":{\"run\":\"r\"}}}\n";
        let ping = "{\"number\":0,\"seen\":0,\"message\":{\"ping\":{\"number\":1}}}\n";
        coordinator.write_all(format!("{join}{ping}{ping}").as_bytes()).unwrap();
        let (to, ended) = channel();
        // Its greeting is read, and nothing of what follows.
        thread::spawn(move || to.send(serve(input, Blocked(1), None, BTreeMap::new(), Allowed::ANY)));
        let ended = ended.recv_timeout(SILENCE * 3).expect("the agent waits for ever");
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(coordinator);
    }

    #[test]
    fn silent_coordinator_ends_the_agent() {
        let (input, mut coordinator) = io::pipe().unwrap();
        coordinator.write_all(b"{\"number\":1,\"seen\":0,\"message\":{\"join\":{\"run\":\"r\"}}}\n").unwrap();
        let began = Instant::now();
        let ended = serve(input, io::sink(), None, BTreeMap::new(), Allowed::ANY);
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= SILENCE);
        drop(coordinator);
    }
}
