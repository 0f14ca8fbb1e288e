//! How a new connection names the character set of its texts, which is UTF-8 always.

use crate::info::OptionInfo;
use crate::prelude::*;

/// When the character set is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// While connecting, with what is sent anyway.
    #[default]
    Connecting,
    /// By a statement afterwards, as many drivers do: a round trip more.
    Statement,
}

/// The option of a URL.
pub const OPTION: OptionInfo = OptionInfo::new(
    "charset",
    "when the character set, UTF-8, is named: connecting (default), or by a statement (SET …) afterwards, as many \
           drivers do",
);

impl Charset {
    /// Reads the option; `wrapped`: another's client is asked for, which has a way of its own.
    pub fn from_url(url: &TargetUrl, wrapped: bool) -> Result<Self> {
        if wrapped && url.option(OPTION.name).is_some() {
            return Err(url
                .wrong("client=driver names the character set in its own way")
                .hint("leave charset= or client= out"));
        }
        url.choice(OPTION.name, &[("connecting", Self::Connecting), ("statement", Self::Statement)])
    }
}
