//! Tests without a server: statements, with an independent grammar and golden files; errors, with listeners that refuse
//! connections; and sessions, with a fake server that implements the necessary part of the protocol. The fake server
//! cannot show how Oracle replies.

mod grammar;
mod listener;
mod peer;
mod refusals;
mod sessions;
mod statements;
mod tokens;

use super::config::Config;
use kurabe_core::target::TargetUrl;

/// The configuration of a URL, with the password `hunter2`.
fn config(url: &str) -> Config {
    Config::new(&TargetUrl::parse(url).unwrap(), &|name| {
        (name == super::config::PASSWORD).then(|| "hunter2".to_owned())
    })
    .unwrap()
}
