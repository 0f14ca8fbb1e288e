//! The only place that prints. Results go to standard output; what happens on the way goes to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(
    clippy::unused_self,
    reason = "who prints must hold the output, whether or not it changes what is printed"
)]

use crate::targets;
use clap::ArgMatches;
use std::io::{IsTerminal, Write};

/// Prints help, the version, or what is wrong with the command line. It repeats words of the command line, and a URL among
/// them in the wrong place is not repeated with its password.
pub(crate) fn refuse(error: &clap::Error) {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let shown = targets::without_passwords(words.iter().cloned());
    if words == shown {
        let _ = error.print();
        return;
    }
    // Styles could stand within a word, and so hide it.
    let mut text = error.render().to_string();
    for (word, shown) in words.iter().zip(&shown).filter(|(word, shown)| word != shown) {
        text = text.replace(word, shown);
    }
    if error.use_stderr() { eprint!("{text}") } else { print!("{text}") }
}

/// How to print.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// Whether results may be coloured.
    pub(crate) colour: bool,
    /// Columns of the terminal, where standard output is one.
    pub(crate) width: Option<usize>,
    /// Whether progress may be redrawn in place.
    pub(crate) live: bool,
    /// Whether progress is wanted at all.
    pub(crate) quiet: bool,
}

impl Output {
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let stdout = std::io::stdout().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = match matches.get_one::<String>("color").map(String::as_str) {
            Some("always") => true,
            Some("never") => false,
            _ => stdout && !plain,
        };
        let width = stdout.then(|| rustix::termios::tcgetwinsize(std::io::stdout()).ok()).flatten();
        Self {
            colour,
            width: width.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0),
            live: std::io::stderr().is_terminal(),
            quiet: matches.get_flag("quiet"),
        }
    }

    /// Prints a result. A reader that went away (`kurabe show | head`) is no error.
    pub(crate) fn result(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let _ = write!(out, "{text}{end}").and_then(|()| out.flush());
    }

    /// Says something beside the result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }

    /// Says where a result is, or what to do next: not progress, so `--quiet` keeps it.
    pub(crate) fn hint(&self, text: &str) {
        eprintln!("{text}");
    }

    /// Says what went wrong.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        eprintln!("kurabe: {error:#}");
    }

    /// Warns of something that is not wrong enough to stop.
    pub(crate) fn warning(&self, text: &str) {
        eprintln!("kurabe: warning: {text}");
    }
}
