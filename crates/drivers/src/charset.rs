//! How a new connection names the character set of its texts, which is UTF-8 always.

use crate::info::OptionInfo;
use kurabe_core::target::TargetUrl;
use kurabe_core::{Error, Result};

/// When the character set is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Charset {
    /// While connecting, with what is sent anyway.
    #[default]
    Connecting,
    /// By a statement afterwards, as many drivers do: a round trip more.
    Statement,
}

/// The option of a URL.
pub(crate) const OPTION: OptionInfo = OptionInfo {
    name: "charset",
    help: "when the character set, UTF-8, is named: connecting (default), or by a statement (SET …) afterwards, as many \
           drivers do",
};

impl Charset {
    /// Reads the option; `wrapped`: another's client is asked for, which has a way of its own.
    pub(crate) fn from_url(url: &TargetUrl, wrapped: bool) -> Result<Self> {
        let refused =
            |what: String, hint: &str| Err(Error::usage(format!("{}: {what}", url.scheme)).hint(hint));
        match url.option(OPTION.name) {
            Some(_) if wrapped => refused(
                "client=driver names the character set in its own way".to_owned(),
                "leave charset= or client= out",
            ),
            None | Some("connecting") => Ok(Self::Connecting),
            Some("statement") => Ok(Self::Statement),
            Some(other) => refused(format!("charset={other} is unknown"), "connecting or statement"),
        }
    }
}
