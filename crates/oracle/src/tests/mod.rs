//! What can be proven without a server: the statements, by an independent parser and golden files; the errors, by
//! listeners that refuse in every way; and what a session sends and makes of answers, by a peer that speaks as much
//! of the protocol as that takes. The peer is no Oracle: what Oracle answers, only Oracle can show.

mod listener;
mod peer;
mod refusals;
mod sessions;
mod statements;

use super::config::Config;
use kurabe_core::target::TargetUrl;

/// The configuration of a URL, with the password `hunter2`.
fn config(url: &str) -> Config {
    Config::new(&TargetUrl::parse(url).unwrap(), &|name| {
        (name == super::config::PASSWORD).then(|| "hunter2".to_owned())
    })
    .unwrap()
}
