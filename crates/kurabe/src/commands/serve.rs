//! `kurabe serve`: a web page of this machine's runs, until Ctrl-C.

use crate::exit::{self, Exit, OfRunFile};
use crate::options::options;
use crate::output::Output;
use crate::{places, signals};
use anyhow::Result;
use clap::ArgMatches;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, ErrorKind};
use kurabe_report::Language;
use kurabe_serve::{Options, Page, random_token};
use std::path::PathBuf;

options! {
    /// The options of `kurabe serve`.
    ServeOptions {
        target: Vec<String>,
        allow_any_target: bool,
        listen: Option<String>,
        host: Vec<String>,
        token: Option<String>,
        lang: Option<String>,
        runs_dir: Option<PathBuf>,
    }
}

pub(super) fn serve(matches: &ArgMatches, output: &Output) -> Result<Exit> {
    let options = ServeOptions::of(matches);
    let listen = options.listen.as_deref().unwrap_or_default();
    let listen = listen.parse().map_err(|_| {
        Error::usage(format!("--listen: '{listen}' is not an address with a port"))
            .hint("write 127.0.0.1:8096 or [::1]:8096")
    })?;
    let token = match options.token.as_deref().unwrap_or_default() {
        "" => Some(random_token()?),
        "none" => None,
        token => Some(checked(token)?),
    };
    let program = std::env::current_exe().map_err(|error| {
        Error::new(ErrorKind::Environment, format!("the program's own file is not known: {error}"))
    })?;
    let store = places::writable_runs(options.runs_dir.as_deref())?;
    let started = kurabe_testbed::engines().map(|engine| format!("up:{engine}"));
    for target in &options.target {
        kurabe_targets::check_scheme(&TargetUrl::parse(target)?)?;
    }
    let targets = std::iter::once("sqlite:".to_owned()).chain(options.target).chain(started).collect();
    let (hosts, any_target) = (options.host, options.allow_any_target);
    let open = token.is_none();
    let language = options.lang.as_ref().and_then(|name| Language::named(name));
    let options = Options { listen, token, program, targets, any_target, hosts, language };
    let page = Page::open(options, store).map_err(OfRunFile)?;
    let stop = signals::watch(exit::DONE, output)?;
    output.result(&page.url())?;
    if !page.address().ip().is_loopback() {
        output.warning("other machines can reach this address, and the token is sent without encryption");
    }
    if open {
        output.warning(
            "there is no token: everybody who reaches this address can start and stop runs as this user",
        );
    }
    output.note("Ctrl-C ends the page; runs that were started from it go on");
    page.serve(&stop)?;
    Ok(exit::DONE)
}

/// A token that can stand in a URL and in a cookie.
fn checked(token: &str) -> kurabe_core::Result<String> {
    if token.len() >= 8 && token.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(token.to_owned());
    }
    Err(Error::usage("--token: it must have at least 8 letters or digits, and nothing else")
        .hint("leave it out for a random one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_that_could_be_guessed_or_break_a_header_is_refused() {
        for token in ["1234567", "12345678;", "12345678\r\n", ""] {
            assert_eq!(checked(token).unwrap_err().kind(), ErrorKind::Usage, "{token}");
        }
        assert_eq!(checked("12345678").unwrap(), "12345678");
    }
}
