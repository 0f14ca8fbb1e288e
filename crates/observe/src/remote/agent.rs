//! The agent's side: `kurabe agent --stdio`.

use super::{Answer, Greeting, RemoteSample, Request, VERSION, boot, read_line, send};
use crate::monitor::Monitor;
use kurabe_core::observation::{Observer, ServerUse};
use std::io::{self, BufRead, Write};

/// Observes servers of this host as the requests in `from` say, and writes the answers to `to`, until `from` ends.
///
/// # Errors
/// If reading or writing fails, or if a request is invalid.
pub fn serve(mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    send(&mut to, &Greeting { kurabe_agent: VERSION })?;
    let monitor = Monitor::new();
    while let Some(request) = next(&mut from)? {
        let Request::Begin { host, port } = request else { return Err(invalid()) };
        let endpoint = crate::find::here(&host, port);
        if let Err(why) = crate::find::listeners(&endpoint) {
            send(&mut to, &Answer::Not(why))?;
            continue;
        }
        let guard = monitor.begin(&endpoint);
        send(&mut to, &Answer::Begun { boot: boot() })?;
        let Some(request) = next(&mut from)? else { break };
        let Request::End = request else { return Err(invalid()) };
        let seen = guard.end();
        let wire = seen.wire.unwrap_or_default();
        let answer = match seen.server {
            ServerUse::Seen(server) => Answer::Ended(Box::new(RemoteSample {
                server: *server,
                host: seen.host,
                samples: seen.samples,
                classified: wire.classified,
                at_server: wire.at_server,
            })),
            ServerUse::NotObserved(why) => Answer::Not(why),
            ServerUse::InClient => Answer::Not("it has no process of its own".to_owned()),
        };
        send(&mut to, &answer)?;
    }
    Ok(())
}

fn next(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let Some(line) = read_line(from)? else { return Ok(None) };
    serde_json::from_slice(&line).map(Some).map_err(|_| invalid())
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the request does not follow the protocol")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// The agent's answers to these lines, without its greeting.
    fn answers(requests: &str) -> (io::Result<()>, Vec<String>) {
        let mut out = Vec::new();
        let ended = serve(requests.as_bytes(), &mut out);
        let lines = String::from_utf8(out).unwrap();
        let mut lines = lines.lines().map(str::to_owned);
        assert_eq!(lines.next().as_deref(), Some(r#"{"kurabe_agent":2}"#));
        (ended, lines.collect())
    }

    #[test]
    fn port_at_which_nothing_listens_is_refused_with_reason() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let request = format!(r#"{{"begin":{{"host":"127.0.0.1","port":{free}}}}}"#);
        let (ended, answers) = answers(&format!("{request}\n{request}\n"));
        ended.unwrap();
        assert_eq!(answers.len(), 2);
        assert!(answers.iter().all(|line| line.contains("no process here listens")), "{answers:?}");
    }

    #[test]
    fn invalid_or_incomplete_requests_end_the_agent() {
        for request in ["GET / HTTP/1.1\r\n", "{}\n", "\"end\"\n", "\n", "\u{1}\u{0}\n"] {
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
        let endless = io::BufReader::new(io::Read::take(io::repeat(b'1'), 1 << 30));
        let ended = serve(endless, io::sink());
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
