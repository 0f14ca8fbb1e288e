//! One who attends to clients: a worker, or the porter while all workers are busy.

use crate::answer::{Answer, Ending};
use crate::calendar::Now;
use crate::conversation::{Conversation, Hands, Next};
use crate::crew::{Counts, Office};
use crate::door::{HANDFUL, News};
use crate::queue::Job;
use rustix::event::epoll::Event;
use rustix::fd::OwnedFd;
use rustix::net::SendFlags;

pub(crate) struct Host<'a> {
    office: &'a Office,
    hands: Hands,
    fresh: Vec<OwnedFd>,
    /// The next request that asks the database is for this one itself and not for the queue.
    takes: bool,
    own: Option<Job>,
}

impl<'a> Host<'a> {
    pub(crate) fn new(office: &'a Office) -> Self {
        Self { office, hands: Hands::default(), fresh: Vec::new(), takes: false, own: None }
    }

    /// Attends to what happened, and returns what a worker is to do itself: the first request among it. The porter does
    /// nothing itself. `alone` says that no other waits who would be told of the rest.
    pub(crate) fn receive(&mut self, news: &[Event], alone: bool, worker: bool) -> Option<Job> {
        self.takes = worker;
        for event in news {
            match News::from(*event) {
                News::Bell => {}
                News::Arrival => self.welcome(if alone { HANDFUL } else { 1 }),
                News::Of(number, seen) => {
                    if let Some((mut conversation, seen)) = self.office.door.find(number, seen) {
                        conversation.note(seen);
                        self.go_on(conversation);
                    }
                }
            }
        }
        self.takes = false;
        self.own.take()
    }

    /// Goes on with a connection until it has to wait.
    pub(crate) fn go_on(&mut self, mut conversation: Box<Conversation>) {
        let next = conversation.go_on(self.office, &mut self.hands);
        self.follow(conversation, next, 0);
    }

    /// Gives the database's answer to whoever asked for it.
    pub(crate) fn reply(&mut self, mut conversation: Box<Conversation>, answer: &Answer) {
        let next = conversation.reply(answer, self.office, &mut self.hands);
        // What it asks for next waits its turn, since others have waited longer; and this worker comes for it.
        self.follow(conversation, next, 1);
    }

    /// Gives up a connection whose time is over.
    pub(crate) fn expire(&mut self, mut conversation: Box<Conversation>) {
        let next = conversation.expire(self.office, &mut self.hands);
        self.follow(conversation, next, 0);
    }

    /// Receives new clients. As a rule what they want is there already, and they need not be waited for.
    fn welcome(&mut self, most: usize) {
        let mut fresh = std::mem::take(&mut self.fresh);
        self.office.door.accept(most, &mut fresh);
        for stream in fresh.drain(..) {
            match self.office.door.admit(stream) {
                Ok(stream) => {
                    let idle_time = self.office.application.options.idle_time;
                    self.go_on(Box::new(Conversation::new(stream, idle_time)));
                }
                Err(stream) => self.turn_away(&stream),
            }
        }
        self.fresh = fresh;
    }

    fn turn_away(&self, stream: &OwnedFd) {
        let answer = Answer::says(503, &format!("{} connections are open already", self.office.door.most()));
        let mut bytes = Vec::new();
        answer.write(&mut Now::default(), Ending::Closes, false, &mut bytes);
        let _ = rustix::net::send(stream, &bytes, SendFlags::NOSIGNAL);
        Counts::one(&self.office.counts.refused);
    }

    /// Puts a connection where it belongs. `free` workers are about to come to the queue.
    fn follow(&mut self, mut conversation: Box<Conversation>, mut next: Next, free: usize) {
        let office = self.office;
        loop {
            match next {
                Next::End => return office.door.dismiss(conversation),
                Next::Client => match office.door.keep(conversation) {
                    Ok(None) => return,
                    Ok(Some((back, seen))) => {
                        conversation = back;
                        conversation.note(seen);
                        next = conversation.go_on(office, &mut self.hands);
                    }
                    Err(conversation) => return office.door.dismiss(conversation),
                },
                Next::Page { page, key } => {
                    let job = Job { page, key, conversation };
                    if std::mem::take(&mut self.takes) {
                        self.own = Some(job);
                        return;
                    }
                    match office.queue.offer(job, free) {
                        Ok(wake) => {
                            if wake {
                                office.door.ring();
                            }
                            return;
                        }
                        Err(job) => {
                            conversation = job.conversation;
                            Counts::one(&office.counts.refused);
                            let most = office.application.options.queue;
                            let answer = Answer::says(503, &format!("{most} requests are waiting already"));
                            next = conversation.reply(&answer, office, &mut self.hands);
                        }
                    }
                }
            }
        }
    }
}
