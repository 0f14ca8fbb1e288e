//! What is done with the pieces of a connection, and how it ends.

use crate::socket::{Socket, Way};
use std::io::{self, ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

/// The size of a piece, in bytes.
pub(crate) const PIECE: usize = 64 * 1024;

/// How a connection ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum End {
    /// It has not.
    #[default]
    Open,
    /// The client closed it.
    Client,
    /// The client died, or closed it without reading all.
    ClientReset,
    /// The server closed it.
    Server,
    /// The server died, or closed it without reading all.
    ServerReset,
    /// The relay closed it, because it ended.
    Relay,
    /// The server could not be reached, and why.
    Unreachable(String),
}

/// Both ends of a connection, as one direction sees them.
pub struct Ends {
    /// The end that sent the piece.
    pub from: Socket,
    /// The other end.
    pub to: Socket,
}

impl Way {
    /// How this direction ends: its sender closes or dies, or the other end dies.
    pub(crate) fn ends(self) -> (End, End, End) {
        match self {
            Self::ToServer => (End::Client, End::ClientReset, End::ServerReset),
            Self::ToClient => (End::Server, End::ServerReset, End::ClientReset),
        }
    }
}

impl Ends {
    /// Ends a direction.
    pub(crate) fn finish<H: Hook + ?Sized>(&mut self, hook: &H, way: Way, end: End) {
        let is_orderly = matches!(end, End::Client | End::Server);
        hook.ended(way, end);
        // An end that closed may still receive; of one that died, nothing is left to forward.
        if is_orderly {
            self.to.finish();
        } else {
            self.give_up();
        }
    }

    /// Closes both ends at once.
    pub(crate) fn give_up(&mut self) {
        self.from.give_up();
        self.to.give_up();
    }

    /// Both ends as the other direction sees them.
    pub(crate) fn turn(&mut self) {
        std::mem::swap(&mut self.from, &mut self.to);
    }
}

/// What is done with one connection. Both directions call it, each on a thread of its own, or both on a shared one.
pub trait Hook: Send + Sync + 'static {
    /// Takes a piece that `ends.from` sent. An error ends the connection.
    ///
    /// # Errors
    /// If nothing can be forwarded any more.
    fn piece(&self, _way: Way, piece: &mut [u8], ends: &mut Ends) -> io::Result<()> {
        ends.to.write_all(piece)
    }

    /// Called when a direction has ended, before the other end can notice. The first call has the cause.
    fn ended(&self, _way: Way, _end: End) {}

    /// Called when nothing is relayed any more.
    fn closed(&self) {}

    /// Relays the connection to its end. A hook that reads whole messages of both ends implements it in place of [`Hook::piece`]. A
    /// hook that negotiates with both ends first calls [`forward_both`] afterwards.
    fn serve(&self, client: Socket, server: Socket) {
        forward_both(self, client, server);
    }
}

/// Forwards both directions of a connection, through [`Hook::piece`], until both have ended.
pub fn forward_both<H: Hook + ?Sized>(hook: &H, client: Socket, server: Socket) {
    thread::scope(|scope| {
        let answers = Ends { from: server.handle(), to: client.handle() };
        let back = move || forward(hook, Way::ToClient, answers);
        match thread::Builder::new().name("relay".to_owned()).spawn_scoped(scope, back) {
            Ok(_) => forward(hook, Way::ToServer, Ends { from: client, to: server }),
            Err(_) => hook.ended(Way::ToServer, End::Unreachable(NO_THREAD.to_owned())),
        }
    });
}

/// Forwards everything.
pub struct Through;

impl Hook for Through {}

pub(crate) const NO_THREAD: &str = "the relay has no thread for it";

struct OnPiece<F>(F);

impl<F> Hook for OnPiece<F>
where
    F: Fn(Way, &mut [u8], &mut Ends) -> io::Result<()> + Send + Sync + 'static,
{
    fn piece(&self, way: Way, piece: &mut [u8], ends: &mut Ends) -> io::Result<()> {
        (self.0)(way, piece, ends)
    }
}

/// A hook that is one function: [`Hook::piece`].
pub fn on_piece(
    piece: impl Fn(Way, &mut [u8], &mut Ends) -> io::Result<()> + Send + Sync + 'static,
) -> Arc<dyn Hook> {
    Arc::new(OnPiece(piece))
}

/// Forwards one direction until it ends.
fn forward<H: Hook + ?Sized>(hook: &H, way: Way, mut ends: Ends) {
    let mut piece = vec![0; PIECE];
    let end = loop {
        if let Some(end) = forward_piece(hook, way, &mut ends, &mut piece) {
            break end;
        }
    };
    ends.finish(hook, way, end);
}

/// Receives one piece, and has the hook forward it. Returns how the direction has ended, if it has.
pub(crate) fn forward_piece<H: Hook + ?Sized>(
    hook: &H,
    way: Way,
    ends: &mut Ends,
    piece: &mut [u8],
) -> Option<End> {
    let (closes, dies, other_dies) = way.ends();
    let bytes = match ends.from.read(piece) {
        // A client that takes leave closes at once, and the server then: its end may be read first.
        Ok(0) if way == Way::ToClient && ends.to.has_closed() => return Some(End::Client),
        Ok(0) => return Some(closes),
        Ok(read) => piece.get_mut(..read)?,
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => return None,
        Err(_) => return Some(dies),
    };
    let forwarded = contained(|| hook.piece(way, bytes, ends));
    if matches!(forwarded, Some(Ok(()))) { None } else { Some(other_dies) }
}

/// The result of a hook, unless it panics: that ends its connection, and no other.
pub(crate) fn contained<T>(hook: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(hook)).ok()
}
