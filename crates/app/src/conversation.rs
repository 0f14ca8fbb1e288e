//! One connection of a client: requests and their answers, one after the other.

use crate::answer::{Answer, Ending};
use crate::calendar::Now;
use crate::catalogue::Wanted;
use crate::crew::Office;
use crate::head::{self, Head, Method};
use crate::queue::Job;
use crate::server::Counts;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// How long a client may take to take its answer.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// How long a client that was refused is listened to, so that it can read why.
const LINGER: Duration = Duration::from_secs(1);
/// What is read at once.
const READ: usize = 2 * 1024;

pub(crate) struct Conversation {
    pub stream: TcpStream,
    pub office: Arc<Office>,
    pub counts: Arc<Counts>,
    /// Becomes true when no further request is to be read.
    pub stopping: watch::Receiver<bool>,
}

/// What came.
enum Next {
    Request(Head),
    /// It is no request, or came too slowly.
    Refused(Answer),
    /// The client went away, or said nothing for long, or the application stops.
    End,
}

impl Conversation {
    /// Answers requests until the connection ends.
    pub(crate) async fn run(mut self) {
        let (mut inbox, mut outbox) = (Vec::new(), Vec::new());
        let mut now = Now::default();
        loop {
            match self.next(&mut inbox).await {
                Next::End => return,
                Next::Refused(answer) => {
                    Counts::one(&self.counts.malformed);
                    answer.write(&mut now, Ending::Closes, false, &mut outbox);
                    if self.send(&outbox).await.is_ok() {
                        self.linger().await;
                    }
                    return;
                }
                Next::Request(head) => {
                    inbox.drain(..head.length);
                    let answer = self.answer(&head).await;
                    Counts::one(&self.counts.answered);
                    if answer.status >= 500 {
                        Counts::one(&self.counts.failed);
                    }
                    let ending = if *self.stopping.borrow() { Ending::Closes } else { head.ending };
                    answer.write(&mut now, ending, head.method == Method::Head, &mut outbox);
                    if self.send(&outbox).await.is_err() {
                        return;
                    }
                    if ending == Ending::Closes {
                        if !inbox.is_empty() {
                            self.linger().await;
                        }
                        return;
                    }
                }
            }
        }
    }

    async fn next(&mut self, inbox: &mut Vec<u8>) -> Next {
        let options = self.office.application.options;
        let mut began = None;
        let waits_since = Instant::now();
        loop {
            if !inbox.is_empty() {
                match head::read(inbox) {
                    Ok(Some(head)) => return Next::Request(head),
                    Ok(None) => {}
                    Err(answer) => return Next::Refused(answer),
                }
                began.get_or_insert_with(Instant::now);
            }
            inbox.reserve(READ);
            match self.stream.try_read_buf(inbox) {
                Ok(0) => return Next::End,
                Ok(_) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Next::End,
            }
            let deadline = match began {
                None => waits_since + options.idle_time,
                Some(began) => began + options.head_time,
            };
            if began.is_none() {
                // Ten thousand idle connections need no memory to read into.
                *inbox = Vec::new();
            }
            let ended = tokio::select! {
                biased;
                ready = self.stream.readable() => ready.is_err(),
                () = stopped(&mut self.stopping) => true,
                () = sleep_until(deadline) => {
                    if began.is_some() {
                        let seconds = options.head_time.as_secs_f64();
                        let why = format!("the head of the request did not come within {seconds} s");
                        return Next::Refused(Answer::says(408, &why));
                    }
                    true
                }
            };
            if ended {
                return Next::End;
            }
        }
    }

    async fn answer(&self, head: &Head) -> Answer {
        if head.method == Method::Other {
            return Answer::says(405, "pages are asked for by GET");
        }
        match self.office.catalogue.find(&head.target) {
            Wanted::Known(answer) => answer,
            // What changes the database is not done for a head.
            Wanted::Page { .. } if head.method == Method::Head => {
                Answer::says(405, "pages that ask the database are asked for by GET")
            }
            Wanted::Page { page, key } => {
                let (reply, answer) = oneshot::channel();
                if self.office.queue.offer(Job { page, key, reply }).is_err() {
                    Counts::one(&self.counts.refused);
                    let most = self.office.application.options.queue;
                    return Answer::says(503, &format!("{most} requests are waiting already"));
                }
                answer.await.unwrap_or_else(|_| Answer::says(500, "the worker ended without an answer"))
            }
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        // As a rule it goes out at once, and no timer is needed.
        let sent = match self.stream.try_write(bytes) {
            Ok(sent) => sent,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        if sent == bytes.len() {
            return Ok(());
        }
        timeout(WRITE_TIME, self.stream.write_all(&bytes[sent..]))
            .await
            .unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Ends our half and reads what still comes: closing with unread bytes would reset the connection, and the client
    /// would lose the answer.
    async fn linger(mut self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        let drain = async {
            let mut scratch = Vec::with_capacity(READ);
            while self.stream.readable().await.is_ok() {
                scratch.clear();
                match self.stream.try_read_buf(&mut scratch) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
        };
        let _ = timeout(LINGER, drain).await;
    }
}

/// Returns when the application stops.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    while !*stopping.borrow_and_update() {
        if stopping.changed().await.is_err() {
            return;
        }
    }
}
