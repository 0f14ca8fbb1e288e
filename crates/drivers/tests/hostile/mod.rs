//! Servers that send slowly, endlessly, too much or twice, and servers that are too old. Each test ends within the
//! timeout, and the client's memory grows by at most 64 MB.

mod deadlines;
mod limits;
mod old;
mod server;
mod surplus;
