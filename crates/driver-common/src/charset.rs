//! How a new connection sets its character set, which is always UTF-8.

use crate::info::OptionInfo;
use crate::prelude::*;

/// When the character set is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charset {
    /// While connecting, without another request.
    #[default]
    Connecting,
    /// By a statement afterwards, as many drivers do: one more round trip.
    Statement,
}

/// The option `charset` of a URL.
pub const OPTION: OptionInfo = OptionInfo::new(
    "charset",
    "when the character set, UTF-8, is set: connecting (default), or by a statement (SET …) afterwards, as many \
           drivers do",
);

impl Charset {
    /// Reads the option; `wrapped`: a third-party client is used, which sets the character set itself.
    pub fn from_url(url: &TargetUrl, wrapped: bool) -> Result<Self> {
        if wrapped && url.option(OPTION.name).is_some() {
            return Err(url
                .wrong("client=driver sets the character set in its own way")
                .hint("leave charset= or client= out"));
        }
        url.choice(OPTION.name, &[("connecting", Self::Connecting), ("statement", Self::Statement)])
    }
}
