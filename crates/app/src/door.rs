//! Where clients come in, and where whoever has nothing to do waits for them.

use crate::conversation::Conversation;
use crate::table::{Seen, Table};
use kurabe_core::{Error, ErrorKind, Result};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, accept_with};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Connections that the system may complete before they are accepted.
const BACKLOG: i32 = 4_096;
/// What a worker takes at once where no other is free.
pub(crate) const HANDFUL: usize = 64;

/// Numbers that no file has.
const NEW: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// All connections, their clients' and the one that waits for new ones, in one epoll that every free worker waits on:
/// the kernel wakes one worker for each event, which is the only change of threads that a request costs.
pub(crate) struct Door {
    poll: OwnedFd,
    listener: TcpListener,
    bell: OwnedFd,
    table: Table,
    open: AtomicUsize,
    /// The most connections at once.
    most: usize,
    /// New connections are not waited for just now.
    shut: AtomicBool,
}

/// What happened at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A client wants a connection.
    Arrival,
    /// Somebody rang: there is work in the queue.
    Bell,
    /// Something came on a connection.
    Of(usize, Seen),
}

impl From<Event> for News {
    fn from(event: Event) -> Self {
        let flags = event.flags;
        match event.data.u64() {
            NEW => Self::Arrival,
            BELL => Self::Bell,
            number => {
                let ends = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
                Self::Of(number as usize, Seen { ends })
            }
        }
    }
}

impl Door {
    /// Listens at an address, for at most so many connections.
    pub(crate) fn open(address: SocketAddr, most: usize, own_files: usize) -> Result<Self> {
        let refused = |error: std::io::Error| {
            let kind = match error.kind() {
                std::io::ErrorKind::AddrInUse => ErrorKind::InUse,
                std::io::ErrorKind::PermissionDenied => ErrorKind::NotPermitted,
                std::io::ErrorKind::AddrNotAvailable => ErrorKind::Usage,
                _ => ErrorKind::Environment,
            };
            Error::new(kind, format!("cannot listen at {address}: {error}"))
                .hint("name another address by --listen; port 0 is any that is free")
        };
        let listener = TcpListener::bind(address).map_err(refused)?;
        rustix::net::listen(&listener, BACKLOG).map_err(|error| refused(error.into()))?;
        listener.set_nonblocking(true).map_err(refused)?;
        // Answers are small and each is written at once. Linux hands this on to every connection that is accepted.
        rustix::net::sockopt::set_tcp_nodelay(&listener, true).map_err(|error| refused(error.into()))?;
        let environment = |error: Errno| {
            Error::new(
                ErrorKind::Environment,
                format!("this system has no way to wait for connections: {error}"),
            )
        };
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(environment)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(environment)?;
        let (new, rung) = (EventData::new_u64(NEW), EventData::new_u64(BELL));
        // One worker is woken for one arrival; it looks again before it attends to the client.
        epoll::add(&poll, &listener, new, EventFlags::IN | EventFlags::ONESHOT).map_err(environment)?;
        epoll::add(&poll, &bell, rung, EventFlags::IN | EventFlags::ET).map_err(environment)?;
        let table = Table::new(most + own_files);
        let open = AtomicUsize::new(0);
        Ok(Self { poll, listener, bell, table, open, most, shut: AtomicBool::new(false) })
    }

    pub(crate) fn address(&self) -> Result<SocketAddr> {
        let none =
            |error| Error::new(ErrorKind::Environment, format!("where it listens is not known: {error}"));
        self.listener.local_addr().map_err(none)
    }

    /// The most connections at once.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// How many connections are open.
    pub(crate) fn guests(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits for news, as many as `news` has room for.
    pub(crate) fn wait(&self, news: &mut Vec<Event>) {
        news.clear();
        // Interrupted is as good as nothing.
        let _ = epoll::wait(&self.poll, rustix::buffer::spare_capacity(news), None);
    }

    /// The news that there are, without waiting.
    pub(crate) fn look(&self, news: &mut Vec<Event>) {
        news.clear();
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = epoll::wait(&self.poll, rustix::buffer::spare_capacity(news), Some(&at_once));
    }

    /// Wakes one who waits.
    pub(crate) fn ring(&self) {
        // It fails where it was rung 2⁶⁴ times.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    /// Accepts up to so many new connections, and lets the next ones be told of.
    pub(crate) fn accept(&self, most: usize, fresh: &mut Vec<OwnedFd>) {
        for _ in 0..most {
            match accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(stream) => fresh.push(stream),
                Err(Errno::AGAIN) => break,
                // The client went away before it was received.
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(_) => {
                    // This machine has no more files, which passes; or the application stops, which does not.
                    self.shut.store(true, Ordering::Relaxed);
                    return;
                }
            }
        }
        self.wait_for_arrivals();
    }

    fn wait_for_arrivals(&self) {
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        if epoll::modify(&self.poll, &self.listener, EventData::new_u64(NEW), flags).is_err() {
            self.shut.store(true, Ordering::Relaxed);
        }
    }

    /// Waits for new connections again if it was given up for want of files.
    pub(crate) fn reopen(&self) {
        if self.shut.swap(false, Ordering::Relaxed) {
            self.wait_for_arrivals();
        }
    }

    /// Takes no new connections any more: whoever comes is told so by the kernel.
    pub(crate) fn lock(&self) {
        let _ = rustix::net::shutdown(&self.listener, Shutdown::Both);
    }

    /// Counts a new connection in; gives it back where there are too many.
    pub(crate) fn admit(&self, stream: OwnedFd) -> Result<OwnedFd, OwnedFd> {
        let full = self.open.fetch_add(1, Ordering::Relaxed) >= self.most;
        if full || !self.table.open(number(&stream)) {
            self.open.fetch_sub(1, Ordering::Relaxed);
            return Err(stream);
        }
        Ok(stream)
    }

    /// The connection that something happened to, if nobody attends to it.
    pub(crate) fn find(&self, number: usize, seen: Seen) -> Option<(Box<Conversation>, Seen)> {
        self.table.take(number, seen)
    }

    /// Lets a connection wait for its client; it comes back at once if something has happened to it already.
    ///
    /// # Errors
    /// The connection, where the kernel cannot watch it.
    pub(crate) fn keep(
        &self,
        mut conversation: Box<Conversation>,
    ) -> Result<Option<(Box<Conversation>, Seen)>, Box<Conversation>> {
        let number = number(&conversation.stream);
        let (data, wish) = (EventData::new_u64(number as u64), conversation.wish());
        // Before it is put into the table, from which another thread may take and close it. What is told of it
        // meanwhile is kept there.
        let watched = match conversation.watched {
            Some(flags) if flags == wish => Ok(()),
            Some(_) => epoll::modify(&self.poll, &conversation.stream, data, wish),
            None => epoll::add(&self.poll, &conversation.stream, data, wish),
        };
        if watched.is_err() {
            return Err(conversation);
        }
        conversation.watched = Some(wish);
        Ok(self.table.put(number, conversation))
    }

    /// Wants to hear no more of a connection, which is about to end.
    pub(crate) fn forget(&self, stream: &OwnedFd) {
        // Where it fails, somebody is woken for nothing.
        let _ = epoll::delete(&self.poll, stream);
    }

    /// Ends a connection.
    pub(crate) fn dismiss(&self, conversation: Box<Conversation>) {
        self.table.close(number(&conversation.stream));
        drop(conversation);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes those that wait and of which `due` is true, one after the other.
    pub(crate) fn due(&self, due: impl Fn(&Conversation) -> bool, then: impl FnMut(Box<Conversation>)) {
        self.table.due(due, then);
    }
}

fn number(stream: &OwnedFd) -> usize {
    // Numbers of files are not negative.
    stream.as_raw_fd() as usize
}
