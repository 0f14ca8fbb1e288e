//! What can be proven without a server.

mod statements;
