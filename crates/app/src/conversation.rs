//! One connection of a client: requests and their answers, one after the other. Nothing here blocks: whoever attends to a
//! connection goes on with it until it has to wait, for its client or for the database.

use crate::answer::{Answer, Ending};
use crate::calendar::Now;
use crate::catalogue::Wanted;
use crate::clock::{self, Moment};
use crate::crew::{Counts, Office};
use crate::head::{self, Head, Method};
use crate::table::Seen;
use rustix::event::epoll::EventFlags;
use rustix::fd::OwnedFd;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{SendFlags, Shutdown};
use std::time::Duration;

/// How long a client may take to take its answer.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// How long a client that was refused is listened to, so that it can read why.
const LINGER: Duration = Duration::from_secs(1);
/// What goes out in one packet, or few.
const PACKET: usize = 16 * 1024;
/// What there is room for at least when something is read.
const READ: usize = 2 * 1024;

#[derive(Debug)]
pub(crate) struct Conversation {
    pub stream: OwnedFd,
    /// What the kernel was asked to tell of it; nothing as long as it is not watched.
    pub watched: Option<EventFlags>,
    stage: Stage,
    /// What came and was not understood yet: the beginning of a head, or the next requests.
    inbox: Vec<u8>,
    /// What is still to be sent of an answer.
    outbox: Vec<u8>,
    /// There may be something to read.
    unread: bool,
    /// What there is to read has an end, which will be told only once.
    ends: bool,
    /// When it is given up, unless something happens.
    until: Moment,
    /// What the present request asks for beside its page.
    ending: Ending,
    head_only: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The client is to begin a request.
    Silent,
    /// It has begun one.
    Asking,
    /// A worker has its request.
    Waiting,
    /// It is to take its answer.
    Answered,
    /// It was refused, and is listened to for a little longer.
    Leaving,
}

/// What a connection waits for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Its client.
    Client,
    /// The database.
    Page { page: usize, key: Option<u64> },
    /// Nothing: it is over.
    End,
}

/// What one who attends to connections needs for any of them.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    now: Now,
    inbox: Vec<u8>,
    outbox: Vec<u8>,
}

impl Conversation {
    pub(crate) fn new(stream: OwnedFd, idle_time: Duration) -> Self {
        Self {
            stream,
            watched: None,
            stage: Stage::Silent,
            inbox: Vec::new(),
            outbox: Vec::new(),
            unread: true,
            ends: false,
            until: clock::after(idle_time),
            ending: Ending::Closes,
            head_only: false,
        }
    }

    /// What the kernel is to tell of it. Each thing is told once (`ET`): reading is done until there is nothing left.
    pub(crate) fn wish(&self) -> EventFlags {
        let read = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
        if self.stage == Stage::Answered { read | EventFlags::OUT } else { read }
    }

    /// Something happened to it.
    pub(crate) fn note(&mut self, seen: Seen) {
        self.unread = true;
        self.ends |= seen.ends;
    }

    /// Goes on until it has to wait.
    pub(crate) fn go_on(&mut self, office: &Office, hands: &mut Hands) -> Next {
        loop {
            let next = match self.stage {
                Stage::Silent | Stage::Asking => self.hear(office, hands),
                Stage::Waiting => Some(Next::Client),
                Stage::Answered => self.send_rest(office),
                Stage::Leaving => Some(self.drain(hands)),
            };
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// What is to be done, once its time is over.
    pub(crate) fn expire(&mut self, office: &Office, hands: &mut Hands) -> Next {
        if self.stage != Stage::Asking {
            return Next::End;
        }
        let seconds = office.application.options.head_time.as_secs_f64();
        let why = format!("the head of the request did not come within {seconds} s");
        self.refuse(&Answer::says(408, &why), office, hands).unwrap_or_else(|| self.go_on(office, hands))
    }

    /// Whether its time is over.
    pub(crate) fn overdue(&self, now: Moment) -> bool {
        self.until <= now
    }

    /// Whether it only waits for a request.
    pub(crate) fn listens(&self) -> bool {
        matches!(self.stage, Stage::Silent | Stage::Asking)
    }

    /// Reads and answers a request; nothing if there is more to do at once.
    fn hear(&mut self, office: &Office, hands: &mut Hands) -> Option<Next> {
        let mut inbox = std::mem::take(&mut hands.inbox);
        inbox.clear();
        if !self.inbox.is_empty() {
            inbox.append(&mut self.inbox);
            // Ten thousand idle connections need no memory to read into.
            self.inbox = Vec::new();
        }
        let next = self.hear_into(&mut inbox, office, hands);
        hands.inbox = inbox;
        next
    }

    fn hear_into(&mut self, inbox: &mut Vec<u8>, office: &Office, hands: &mut Hands) -> Option<Next> {
        loop {
            if !inbox.is_empty() {
                match head::read(inbox) {
                    Ok(Some(head)) => {
                        self.inbox.extend_from_slice(&inbox[head.length..]);
                        return self.understand(&head, office, hands);
                    }
                    Ok(None) => {}
                    Err(answer) => return self.refuse(&answer, office, hands),
                }
            }
            if !self.unread {
                if office.stops() {
                    return Some(Next::End);
                }
                self.inbox.extend_from_slice(inbox);
                if self.stage == Stage::Silent && !inbox.is_empty() {
                    self.stage = Stage::Asking;
                    self.until = clock::after(office.application.options.head_time);
                }
                return Some(Next::Client);
            }
            inbox.reserve(READ);
            if !self.read(inbox) {
                return Some(Next::End);
            }
        }
    }

    /// Reads what there is; false if there will be no more.
    fn read(&mut self, into: &mut Vec<u8>) -> bool {
        let room = into.capacity() - into.len();
        match rustix::io::read(&self.stream, rustix::buffer::spare_capacity(into)) {
            Ok(0) => return false,
            // Less than there was room for: what comes later is told. That it ends was told already.
            Ok(came) => self.unread = came == room || self.ends,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => self.unread = false,
            Err(_) => return false,
        }
        true
    }

    fn understand(&mut self, head: &Head, office: &Office, hands: &mut Hands) -> Option<Next> {
        self.ending = head.ending;
        self.head_only = head.method == Method::Head;
        let known = if head.method == Method::Other {
            Answer::says(405, "pages are asked for by GET")
        } else {
            match office.catalogue.find(&head.target) {
                Wanted::Known(answer) => answer,
                // What changes the database is not done for a head.
                Wanted::Page { .. } if self.head_only => {
                    Answer::says(405, "pages that ask the database are asked for by GET")
                }
                Wanted::Page { page, key } => {
                    self.stage = Stage::Waiting;
                    return Some(Next::Page { page, key });
                }
            }
        };
        self.answer(&known, office, hands)
    }

    /// Answers the request, and goes on until it has to wait.
    pub(crate) fn reply(&mut self, answer: &Answer, office: &Office, hands: &mut Hands) -> Next {
        self.answer(answer, office, hands).unwrap_or_else(|| self.go_on(office, hands))
    }

    fn answer(&mut self, answer: &Answer, office: &Office, hands: &mut Hands) -> Option<Next> {
        Counts::one(&office.counts.answered);
        if answer.status >= 500 {
            Counts::one(&office.counts.failed);
        }
        if office.stops() {
            self.ending = Ending::Closes;
        }
        self.send(answer, office, hands)
    }

    /// Answers what is no request.
    fn refuse(&mut self, answer: &Answer, office: &Office, hands: &mut Hands) -> Option<Next> {
        Counts::one(&office.counts.malformed);
        self.ending = Ending::Refuses;
        self.head_only = false;
        self.send(answer, office, hands)
    }

    fn send(&mut self, answer: &Answer, office: &Office, hands: &mut Hands) -> Option<Next> {
        answer.write(&mut hands.now, self.ending, self.head_only, &mut hands.outbox);
        // The last answer of a connection goes out together with its end: one packet fewer, and its client is woken once.
        let last = self.ending == Ending::Closes && self.inbox.is_empty() && !self.unread;
        let last = last && hands.outbox.len() <= PACKET;
        let flags = if last { SendFlags::MORE } else { SendFlags::empty() };
        // As a rule it goes out at once.
        match self.write(&hands.outbox, flags) {
            Ok(sent) if sent == hands.outbox.len() => {
                if last {
                    if self.watched.take().is_some() {
                        // A client ends its half at once, and nobody needs to be woken for it.
                        office.door.forget(&self.stream);
                    }
                    // Closing alone would throw away what has not gone out yet, if something came that nobody reads.
                    let _ = rustix::net::shutdown(&self.stream, Shutdown::Write);
                }
                self.said(office)
            }
            Ok(sent) => {
                self.outbox.extend_from_slice(&hands.outbox[sent..]);
                self.stage = Stage::Answered;
                self.until = clock::after(WRITE_TIME);
                Some(Next::Client)
            }
            Err(_) => Some(Next::End),
        }
    }

    fn write(&self, bytes: &[u8], flags: SendFlags) -> Result<usize, Errno> {
        match retry_on_intr(|| rustix::net::send(&self.stream, bytes, SendFlags::NOSIGNAL | flags)) {
            Err(Errno::AGAIN) => Ok(0),
            sent => sent,
        }
    }

    fn send_rest(&mut self, office: &Office) -> Option<Next> {
        while !self.outbox.is_empty() {
            match self.write(&self.outbox, SendFlags::empty()) {
                Ok(0) => return Some(Next::Client),
                Ok(sent) => drop(self.outbox.drain(..sent)),
                Err(_) => return Some(Next::End),
            }
        }
        self.outbox = Vec::new();
        self.said(office)
    }

    /// The answer is said.
    fn said(&mut self, office: &Office) -> Option<Next> {
        if matches!(self.ending, Ending::Stays | Ending::StaysOld) {
            self.stage = Stage::Silent;
            self.until = clock::after(office.application.options.idle_time);
            // As a rule it has only been answered, and the next request is not there yet.
            return (self.inbox.is_empty() && !self.unread).then_some(Next::Client);
        }
        if self.inbox.is_empty() && self.ending == Ending::Closes {
            return Some(Next::End);
        }
        // Closing with unread bytes would reset the connection, and the client would lose the answer: our half is ended,
        // and what still comes is read.
        if rustix::net::shutdown(&self.stream, Shutdown::Write).is_err() {
            return Some(Next::End);
        }
        self.stage = Stage::Leaving;
        self.until = clock::after(LINGER);
        self.unread = true;
        None
    }

    fn drain(&mut self, hands: &mut Hands) -> Next {
        while self.unread {
            hands.inbox.clear();
            hands.inbox.reserve(READ);
            let mut inbox = std::mem::take(&mut hands.inbox);
            let more = self.read(&mut inbox);
            hands.inbox = inbox;
            if !more {
                return Next::End;
            }
        }
        Next::Client
    }
}
