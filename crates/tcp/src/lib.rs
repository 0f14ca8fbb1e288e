//! Both ends of a `tcp:` target: the listener, and what its client needs of the protocol.
//!
//! Each connection begins with a [greeting](protocol::Greeting) that names its role:
//!
//! - **control**: the listener answers with its [facts](protocol::Hello). Then the client sends
//!   [requests](protocol::Request): to answer at once, to set the socket buffers of the next connection, and for the
//!   result of a stream.
//! - **stream**: the listener answers with the [facts of the connection](protocol::Connected). Then the client sends
//!   blocks until it closes the connection. The listener compares every byte with the expected one.
//! - **echo**: as a stream, but the listener sends each block back.
//!
//! A listener has two ports. Connections to the first have the buffers that the kernel chooses and changes by itself.
//! Those to the second have buffers of a fixed size. The size of a receive buffer decides the window that the listener
//! offers when a connection is made, so it is set on the listening socket before (`tcp(7)`).

pub mod content;
mod listener;
pub mod protocol;
mod results;
pub mod socket;
mod turn;

pub use listener::Listener;
