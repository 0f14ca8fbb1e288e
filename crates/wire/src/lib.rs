//! A relay between any client and a database, and what the client sends, decoded.
//!
//! [`Relay`](relay::Relay) forwards bytes and gives each piece to the [`Account`](account::Account) of its connection. The
//! account counts bytes and round trips, and lists statements. It learns these from a
//! [`Conversation`](view::Conversation), which reads a copy: whatever that does, the stream stays as it is. The only thing
//! that a relay changes is the offer of TLS, if it is told so, since encrypted statements cannot be read.
//!
//! A protocol is one file in `protocols/` and one line in [`registry::PROTOCOLS`].

pub mod account;
mod bounded;
mod conceal;
pub mod environment;
mod input;
mod moment;
mod protocols;
pub mod registry;
pub mod relay;
pub mod render;
mod rows;
pub mod statement;
pub mod terminate;
pub mod tls;
pub mod view;
