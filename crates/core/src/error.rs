//! The error type of all libraries: what happened and what to do about it.

use crate::text::{into_printable, printable};
use serde::{Deserialize, Serialize};
use std::error::Error as Cause;
use std::fmt;
use std::sync::Arc;

/// The result of everything that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The command that builds the program with everything that a default build leaves out.
pub const FULL_BUILD: &str = "cargo install --path crates/kurabe --features full";

/// The kind of error. It decides the exit code, and whether a run can continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The command line, a suite file or a URL is wrong.
    Usage,
    /// Nothing answers at the target's address.
    Unreachable,
    /// The server refused the user or the password.
    Denied,
    /// The named database, file or table does not exist.
    NotFound,
    /// The user may not do what is needed, such as creating a table.
    NotPermitted,
    /// A write was refused: the server, its database or the session only reads.
    ReadOnly,
    /// Something in Kurabe's namespace was not made by Kurabe; it is left alone.
    NotOurs,
    /// Another run is using the target.
    InUse,
    /// A limit of the server, of this machine or of a file system was reached.
    Limit,
    /// The database does not support the request.
    Unsupported,
    /// The server answered with an error.
    Server,
    ConnectionLost,
    /// No reply within the time limit.
    Timeout,
    /// A reply was wrong: the trial has no result.
    Mismatch,
    /// The received data violates the protocol.
    Protocol,
    /// A run file is damaged or of another version.
    Damaged,
    /// The user asked to stop.
    Interrupted,
    /// This machine lacks a resource (disk full, no more threads, …).
    Environment,
    /// A defect of Kurabe itself, such as a panic in a client thread.
    Internal,
}

/// An error for display. Its first line is the message, then the hint, if any; below it, indented, the lines of a
/// log, if any. Text from a server is escaped ([`text`](crate::text)). The message says what there is to know of its
/// [`source`](Cause::source), which programs read and nobody prints besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

/// Boxed, so that results are small where nothing fails.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    kind: ErrorKind,
    message: String,
    code: Option<String>,
    code_name: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
    log: Vec<String>,
    source: Source,
}

/// The cause of an error. Errors are equal if they say the same, whatever their causes.
#[derive(Clone, Debug, Default)]
struct Source(Option<Arc<dyn Cause + Send + Sync>>);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Source {}

/// Maximum characters shown of one line that a server sent.
const LINE: usize = 600;

/// Characters of a statement's line shown around a position.
const EXCERPT: usize = 100;

impl Error {
    /// An error of this kind. `message` says what happened, without a final full stop. The numbers of the operating system's
    /// errors are removed from it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = into_printable(without_os_numbers(message.into()));
        Self(Box::new(Parts {
            kind,
            message,
            code: None,
            code_name: None,
            hint: None,
            position: None,
            log: Vec::new(),
            source: Source::default(),
        }))
    }

    /// An error whose message is `what: cause`, with this cause as its source.
    pub fn of_cause(
        kind: ErrorKind,
        what: impl fmt::Display,
        cause: impl Cause + Send + Sync + 'static,
    ) -> Self {
        Self::new(kind, format!("{what}: {cause}")).caused_by(cause)
    }

    /// The error of a thread that cannot be started.
    pub fn no_thread(whose: impl fmt::Display, cause: std::io::Error) -> Self {
        Self::of_cause(ErrorKind::Limit, format_args!("cannot start the thread of {whose}"), cause)
    }

    /// Adds the source. The message does not change.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Cause + Send + Sync + 'static) -> Self {
        self.0.source = Source(Some(Arc::new(cause)));
        self
    }

    /// Adds what the reader can do about it. An empty text adds nothing.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        if !hint.is_empty() {
            self.0.hint = Some(into_printable(hint));
        }
        self
    }

    /// Adds another thing that the reader can do about it, behind the hint that is there.
    #[must_use]
    pub fn another_hint(self, hint: &str) -> Self {
        let hint = self.0.hint.as_deref().map_or_else(|| hint.to_owned(), |first| format!("{first}; {hint}"));
        self.hint(hint)
    }

    /// Adds the lines of a log.
    #[must_use]
    pub fn log<'a>(mut self, lines: impl IntoIterator<Item = &'a str>) -> Self {
        self.0.log = lines.into_iter().map(|line| printable(&line.replace('\t', " ")).into_owned()).collect();
        self
    }

    /// Adds what the server said besides its message, below it: `DETAIL: text`. An empty text adds nothing.
    #[must_use]
    pub fn detail(mut self, label: &str, text: &str) -> Self {
        let whole = text.trim_end();
        let mut shown: String = whole.chars().take(LINE).collect();
        if shown.len() < whole.len() {
            shown.push('…');
        }
        for (n, line) in shown.lines().enumerate() {
            let label = if n == 0 { format!("{label}: ") } else { "  ".to_owned() };
            self.0.log.push(into_printable(format!("{label}{}", line.replace('\t', " "))));
        }
        self
    }

    /// The whole text, as a sentence's part: details and lines of a log follow the message behind semicolons.
    pub fn on_one_line(&self) -> String {
        let text = self.to_string();
        // A mark stands below its place.
        text.lines().map(str::trim).filter(|line| *line != "^").collect::<Vec<_>>().join("; ")
    }

    /// Adds where in its statement the server found the error, in characters from 1.
    #[must_use]
    pub fn position(mut self, character: usize) -> Self {
        self.0.position = Some(character);
        self
    }

    /// Shows the line of the statement that the position is in, with a mark under it. Does nothing without a position.
    #[must_use]
    pub fn in_statement(mut self, statement: &str) -> Self {
        let Some(position) = self.0.position.take() else { return self };
        let at =
            statement.char_indices().nth(position.saturating_sub(1)).map_or(statement.len(), |(at, _)| at);
        let start = statement[..at].rfind('\n').map_or(0, |end| end + 1);
        let line = statement[start..].lines().next().unwrap_or_default();
        let (before, after) = line.split_at((at - start).min(line.len()));
        let shown = |text: &str| printable(&text.replace('\t', " ")).into_owned();
        let skipped = before.chars().count().saturating_sub(EXCERPT / 2);
        let before: String = before.chars().skip(skipped).collect();
        let rest: String = after.chars().take(EXCERPT / 2).collect();
        let number = statement[..start].matches('\n').count() + 1;
        let head = format!("LINE {number}: {}{}", if skipped > 0 { "…" } else { "" }, shown(&before));
        let tail = if rest.len() < after.len() { "…" } else { "" };
        let mark = format!("{}^", " ".repeat(head.chars().count()));
        self.0.log.splice(0..0, [format!("{head}{}{tail}", shown(&rest)), mark]);
        self
    }

    /// Adds the name of the server's code, such as that of an SQLSTATE. An empty name adds nothing.
    #[must_use]
    pub fn code_name(mut self, name: &str) -> Self {
        self.0.code_name = Some(into_printable(name.to_owned())).filter(|name| !name.is_empty());
        self
    }

    /// Adds the server's own code (`1045`, `28P01`, `SERVER_ERROR`).
    #[must_use]
    pub fn code(mut self, code: impl fmt::Display) -> Self {
        self.0.code = Some(into_printable(code.to_string()));
        self
    }

    /// Prefixes the message with the context: `context: message`. Does nothing if the message begins with it
    /// already.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        let context = into_printable(format!("{context}: "));
        if !self.0.message.starts_with(&context) {
            self.0.message.insert_str(0, &context);
        }
        self
    }

    /// The same as an error of another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.0.kind = kind;
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The server's own code, if the server reported the error.
    pub fn server_code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// A wrong command line, URL or suite file.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// A request for a part that was left out of this build. `what` begins the message: `--fleet`.
    pub fn not_built_in(what: impl fmt::Display) -> Self {
        Self::usage(format!("{what} is not built into this program"))
            .hint(format!("build it in: {FULL_BUILD}"))
    }

    /// A reply that is wrong.
    pub fn mismatch(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Mismatch, message)
    }

    /// Something that the database does not support, with the reason.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }
}

/// Removes ` (os error 2)`, which the standard library adds to the texts of the operating system's errors.
fn without_os_numbers(mut text: String) -> String {
    const MARK: &str = " (os error ";
    let mut from = 0;
    while let Some(at) = text[from..].find(MARK).map(|at| from + at) {
        let digits = text[at + MARK.len()..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
        let end = at + MARK.len() + digits;
        if digits > 0 && text[end..].starts_with(')') {
            text.replace_range(at..=end, "");
            from = at;
        } else {
            from = at + MARK.len();
        }
    }
    text
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { message, code, code_name, hint, log, .. } = &*self.0;
        f.write_str(message)?;
        match (code, code_name) {
            (Some(code), Some(name)) => write!(f, " [{code} {name}]")?,
            (Some(code), None) => write!(f, " [{code}]")?,
            (None, _) => {}
        }
        if let Some(hint) = hint {
            write!(f, "; {hint}")?;
        }
        for line in log {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl Cause for Error {
    fn source(&self) -> Option<&(dyn Cause + 'static)> {
        self.0.source.0.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_without_value_is_one_word() {
        // Frames of clients' stacks have several, and ten thousand clients have a stack each.
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn source_is_kept_and_displayed_once() {
        let cause = || std::io::Error::from_raw_os_error(28);
        let error = Error::of_cause(ErrorKind::Environment, "cannot write a", cause()).context("b");
        assert_eq!(error.to_string(), "b: cannot write a: No space left on device");
        let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
        assert_eq!(source.and_then(std::io::Error::raw_os_error), Some(28));
        assert_eq!(error.clone(), Error::new(error.kind(), error.to_string()));
        assert!(error.clone().source().is_some() && Error::usage("c").source().is_none());
    }

    #[test]
    fn numbers_of_the_operating_system_are_not_shown() {
        let io = std::io::Error::from_raw_os_error(2);
        let shown = |text: &str| Error::usage(text).to_string();
        assert_eq!(
            shown(&format!("a: {io}; b: {io}")),
            "a: No such file or directory; b: No such file or directory"
        );
        for other in ["x (os error ", "x (os error )", "x (os error 2", "µ (os error two) (os error"] {
            assert_eq!(shown(other), other);
        }
    }

    #[test]
    fn error_escapes_control_characters_of_server_text() {
        let error = Error::new(ErrorKind::Server, "no\nkurabe: all is well\u{1b}[1A")
            .code("1\r2")
            .hint("h\u{9b}")
            .context("c\u{202e}")
            .log(["a\u{7}\tb", "kurabe: forged"]);
        assert_eq!(
            error.to_string(),
            "c\\u{202e}: no\\nkurabe: all is well\\u{1b}[1A [1\\r2]; h\\u{9b}\n  a\\u{7} b\n  kurabe: forged"
        );
    }

    #[test]
    fn statement_is_shown_at_the_position() {
        let at = |position, statement: &str| {
            let error = Error::new(ErrorKind::Server, "no").detail("DETAIL", "a\nb\u{7}").position(position);
            error.in_statement(statement).to_string()
        };
        // Positions count characters, not bytes.
        let mark = format!("{}^", " ".repeat(11));
        assert_eq!(
            at(14, "SELECT 'é',\n\tnopé FROM t\nWHERE x"),
            format!("no\n  LINE 2:  nopé FROM t\n{mark}\n  DETAIL: a\n    b\\u{{7}}")
        );
        let error = Error::new(ErrorKind::Server, "no").detail("DETAIL", "a").position(8);
        assert_eq!(error.in_statement("SELECT x").on_one_line(), "no; LINE 1: SELECT x; DETAIL: a");
        let long = format!("SELECT {}", "x".repeat(1_000));
        let shown = at(508, &long);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].chars().filter(|c| *c == 'x').count(), EXCERPT);
        assert_eq!(lines[2].chars().count() - 3, "LINE 1: …".chars().count() + EXCERPT / 2);
        // A position after the end, as of an unexpected end, and one that is no position.
        let mark = format!("{}^", " ".repeat(16));
        assert!(at(99, "SELECT").contains(&format!("LINE 1: SELECT\n{mark}")), "{}", at(99, "SELECT"));
        assert!(at(0, "").contains("LINE 1: \n"));
    }

    #[test]
    fn empty_hint_is_ignored() {
        let error = Error::new(ErrorKind::Server, "it went wrong").hint("ask again").hint("");
        assert_eq!(error.to_string(), "it went wrong; ask again");
    }

    #[test]
    fn error_displays_message_and_hint_on_one_line() {
        let error = Error::new(ErrorKind::Denied, "the server refused user bob")
            .code(1045)
            .hint("check the password")
            .context("mysql://bob@localhost")
            .context("mysql://bob@localhost");
        assert_eq!(
            error.to_string(),
            "mysql://bob@localhost: the server refused user bob [1045]; check the password"
        );
    }
}
