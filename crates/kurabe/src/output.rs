//! The only module that prints. Results go to standard output, messages to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(
    clippy::unused_self,
    reason = "who prints must hold the output, whether or not it changes what is printed"
)]

use crate::options::options;
use clap::ArgMatches;
use clap::error::{ContextKind, ContextValue};
use kurabe_core::target::without_words;
use kurabe_core::text::{is_unprintable, printable};
use kurabe_core::{Error, ErrorKind, Result};
use kurabe_os::limits::advice_on_writing;
use kurabe_report::Language;
use kurabe_report::terminal::wrapped_list;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// The words of the command line. No message repeats those that may contain a password.
fn words() -> &'static [String] {
    static WORDS: OnceLock<Vec<String>> = OnceLock::new();
    WORDS.get_or_init(|| std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect())
}

/// Prints help, the version, or a usage error. A password in a URL on the command line is not printed.
pub(crate) fn refuse(error: &clap::Error) {
    let words = words();
    let elsewhere = |value: &String| !words.iter().any(|word| word.contains(value));
    let hint = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) if !value.is_empty() && elsewhere(value) => {
            "\nThe value is from an environment variable (KURABE_…) or from the settings file.\n"
        }
        _ => "",
    };
    // Styles within a word could hide it.
    let plain = error.render().to_string();
    let text = without_words(&plain, words);
    if text == plain {
        let _ = error.print();
        eprint!("{hint}");
        return;
    }
    if error.use_stderr() { eprint!("{text}") } else { print!("{text}") }
}

/// What kind of error it is, in Japanese: what happened follows in English, as servers and drivers say it.
fn of_kind(kind: Option<ErrorKind>, language: Language) -> String {
    if language == Language::English {
        return String::new();
    }
    let Some(kind) = kind else { return "エラー: ".to_owned() };
    let text = match kind {
        ErrorKind::Usage => "指定に誤りがあります",
        ErrorKind::Unreachable => "サーバーに接続できません",
        ErrorKind::Denied => "サーバーに拒否されました(ユーザーかパスワードを確かめてください)",
        ErrorKind::NotFound => "見つかりません",
        ErrorKind::NotPermitted => "権限がありません",
        ErrorKind::ReadOnly => "読み取り専用のため書き込めません",
        ErrorKind::NotOurs => "Kurabe が作ったものではないので、変更しません",
        ErrorKind::InUse => "ほかの実行が使用中です",
        ErrorKind::Limit => "上限に達しました",
        ErrorKind::Unsupported => "このデータベースでは利用できません",
        ErrorKind::Server => "サーバーがエラーを返しました",
        ErrorKind::ConnectionLost => "接続が切れました",
        ErrorKind::Timeout => "時間内に応答がありません",
        ErrorKind::Mismatch => "応答が誤っています",
        ErrorKind::Protocol => "プロトコルに違反するデータを受け取りました",
        ErrorKind::Damaged => "実行の記録が壊れているか、別の版のものです",
        ErrorKind::Interrupted => "中断しました",
        ErrorKind::Environment => "このマシンでは実行できません",
        ErrorKind::Internal => "Kurabe の不具合です",
    };
    format!("{text}: ")
}

/// Prints why the settings file, or a word that there is not, cannot be used.
pub(crate) fn refuse_settings(error: &Error) {
    tell(&format!("kurabe: {}", lines(&error.to_string())));
}

options! {
    /// The options of all commands about what is printed.
    GlobalOptions {
        color: Option<String>,
        lang: Option<String>,
        quiet: bool,
        verbose: bool,
    }
}

options! {
    /// The option of runs about what is printed.
    LogOptions { log_format: Option<String> }
}

/// The output settings.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub(crate) struct Output {
    /// Whether results may be coloured.
    pub(crate) colour: bool,
    /// Columns of the terminal, or those that the environment sets (`COLUMNS`).
    pub(crate) width: Option<usize>,
    /// Columns to which messages are broken; `None`: they are not.
    message_width: Option<usize>,
    /// Whether progress can be redrawn in place.
    pub(crate) live: bool,
    /// Whether to show progress.
    pub(crate) quiet: bool,
    /// Whether reports on the terminal have all details.
    pub(crate) verbose: bool,
    /// Whether each line of standard error is a JSON object.
    pub(crate) json: bool,
    /// The language of reports and of the first words of errors.
    pub(crate) language: Language,
}

/// The language that was asked for, or that of the environment.
fn language(asked: Option<&String>) -> Language {
    let asked = asked.and_then(|name| Language::named(name));
    let locale = || {
        let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
        let set = names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        set.map_or_else(Language::default, |locale| Language::of_locale(&locale))
    };
    asked.unwrap_or_else(locale)
}

/// An error with its contexts. A message of the libraries says its own causes.
pub(crate) fn shown(error: &anyhow::Error) -> String {
    let last = error.chain().position(<dyn std::error::Error>::is::<Error>).unwrap_or(usize::MAX);
    let texts: Vec<String> = error.chain().take(last.saturating_add(1)).map(ToString::to_string).collect();
    texts.join(": ")
}

/// Columns from which lines of messages are left whole, for those who copy or search them.
const WIDE: usize = 80;
/// Columns to which lines are broken at least.
const LEAST: usize = 32;

/// The columns of the terminal of standard output, or those that the environment sets (`COLUMNS`).
pub(crate) fn width() -> Option<usize> {
    columns(std::io::stdout())
}

fn columns(stream: impl IsTerminal + AsFd) -> Option<usize> {
    let size = stream.is_terminal().then(|| rustix::termios::tcgetwinsize(stream).ok());
    let columns = size.flatten().map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    let set = || std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    columns.or_else(|| set().filter(|columns| *columns > 0))
}

impl Output {
    pub(crate) fn new(matches: &ArgMatches) -> Self {
        let options = GlobalOptions::of(matches);
        let stdout = std::io::stdout().is_terminal();
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        let plain = is_dumb || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = match options.color.as_deref() {
            Some("always") => true,
            Some("never") => false,
            _ => stdout && !plain,
        };
        Self {
            colour,
            width: width(),
            message_width: columns(std::io::stderr()).filter(|columns| *columns < WIDE),
            live: std::io::stderr().is_terminal() && !is_dumb,
            quiet: options.quiet,
            verbose: options.verbose,
            json: is_json(matches),
            language: language(options.lang.as_ref()),
        }
    }

    /// Prints a result. A closed pipe (`kurabe report | head`) is not an error; a full disk is.
    ///
    /// # Errors
    /// [`Environment`](ErrorKind::Environment) if it could not be written.
    pub(crate) fn result(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        written(write!(out, "{}{end}", screen(text, self.colour)).and_then(|()| out.flush()))
    }

    /// Prints a result in JSON.
    pub(crate) fn json_result(&self, text: serde_json::Result<String>) -> Result<()> {
        let none = |error| Error::new(ErrorKind::Internal, format!("the result is no JSON: {error}"));
        self.result(&text.map_err(none)?)
    }

    /// Prints a list, whose lines fit the terminal.
    pub(crate) fn list(&self, text: &str) -> Result<()> {
        self.width
            .map_or_else(|| self.result(text), |width| self.result(&wrapped_list(text, width.max(LEAST))))
    }

    /// Prints an event of a run as a line of JSON.
    pub(crate) fn event(&self, event: &serde_json::Value) {
        tell(&event.to_string());
    }

    /// Prints a message to standard error: as it is, or as an event of this kind.
    fn message(&self, kind: &str, text: &str, plain: &str) {
        if self.json {
            // Before signs are escaped, which would hide a word.
            let text = without_words(text, words());
            self.event(&serde_json::json!({ "event": kind, "text": printable(&text) }));
        } else if let Some(width) = self.message_width {
            // Passwords are removed before the text is wrapped.
            tell(wrapped_list(&without_words(plain, words()), width.max(LEAST)).trim_end());
        } else {
            tell(plain);
        }
    }

    /// Prints a note beside the result.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.message("note", text, &lines(text));
        }
    }

    /// Prints where a result is or what to do next. `--quiet` does not suppress it.
    pub(crate) fn hint(&self, text: &str) {
        self.message("hint", text, &lines(text));
    }

    /// Prints an error.
    pub(crate) fn error(&self, error: &anyhow::Error) {
        let text = shown(error);
        let kind = error.chain().find_map(|one| one.downcast_ref::<Error>()).map(Error::kind);
        let kind = of_kind(kind, self.language);
        self.message("error", &text, &format!("kurabe: {kind}{}", lines(&text)));
    }

    /// Asks whether to go on with what was not expected.
    ///
    /// # Errors
    /// [`Usage`](ErrorKind::Usage) if the answer is no, or nobody can be asked.
    pub(crate) fn confirm(&self, what: &str) -> Result<()> {
        let refused = || {
            Error::usage(what.to_owned())
                .hint("use --yes to start it, or fewer values, --rounds or --duration")
        };
        if !self.live || self.json || !std::io::stdin().is_terminal() {
            return Err(refused());
        }
        let _ = write!(std::io::stderr().lock(), "{what}. Start it? [y/N] ");
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer).is_ok();
        if read && matches!(answer.trim(), "y" | "Y" | "yes") { Ok(()) } else { Err(refused()) }
    }

    /// Prints a warning.
    pub(crate) fn warning(&self, text: &str) {
        self.message("warning", text, &format!("kurabe: warning: {}", printable(text)));
    }
}

/// The error of a result that could not be written; one of a pipe that nobody reads any more is none.
fn written(done: std::io::Result<()>) -> Result<()> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let advice = advice_on_writing(&error, "check the free space of the output device");
            Err(Error::new(ErrorKind::Environment, format!("the result cannot be written: {error}"))
                .hint(advice))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error. If nobody reads it any more (`kurabe run 2>&1 | head`), that is no error.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", without_words(line, words()));
}

/// Whether the command that was given has `--log-format json`.
fn is_json(matches: &ArgMatches) -> bool {
    LogOptions::of(matches).log_format.as_deref() == Some("json")
        || matches.subcommand().is_some_and(|(_, below)| is_json(below))
}

/// Escapes a result for display. Lines (which end in CR and LF in CSV), tabs and, if enabled, colour sequences stay. In JSON, which
/// has no other control characters, the text means the same as before.
fn screen(text: &str, colour: bool) -> Cow<'_, str> {
    let stays = |character: char| matches!(character, '\n' | '\t');
    if !text.contains(|c| is_unprintable(c) && !stays(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        let ends_line = character == '\r' && text[at..].starts_with("\r\n");
        if stays(character) || ends_line || colour && character == '\u{1b}' && sets_colour(&text[at..]) {
            out.push(character);
        } else if character >= '\u{7f}' {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push_str(&printable(character.encode_utf8(&mut [0; 4])));
        }
    }
    Cow::Owned(out)
}

/// Whether a text begins with a sequence that only sets colours.
fn sets_colour(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return false };
    rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
}

/// Escapes a text of several lines. Only the first may look like a message of the program.
fn lines(text: &str) -> String {
    let line = |(n, line): (usize, &str)| {
        let indent = if n > 0 && line.starts_with("kurabe: ") { "  " } else { "" };
        format!("{indent}{}", printable(line))
    };
    text.lines().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_keeps_only_enabled_colours() {
        let text = "a\u{1b}[1;31mb\u{1b}[0m\n\tc\u{1b}[2J\u{9b}31m\r";
        assert_eq!(screen(text, true), "a\u{1b}[1;31mb\u{1b}[0m\n\tc\\u{1b}[2J\\u009b31m\\r");
        assert_eq!(screen("\u{1b}[1m", false), "\\u{1b}[1m");
    }

    #[test]
    fn result_in_json_means_the_same() {
        let value = serde_json::json!({ "note": "a\u{7f}\u{85}\u{202e}b\n\u{1b}c\u{feff}" });
        let shown = screen(&value.to_string(), false).into_owned();
        assert!(!shown.contains(is_unprintable), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn ends_of_csv_lines_are_not_escaped() {
        assert_eq!(screen("a,b\r\n1,\r2\r\n", false), "a,b\r\n1,\\r2\r\n");
    }

    #[test]
    fn further_line_of_a_message_does_not_look_like_a_message() {
        assert_eq!(lines("kurabe: a\nkurabe: b\nc\u{7}"), "kurabe: a\n  kurabe: b\nc\\u{7}");
    }
}
