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
    /// Reads the option.
    pub fn from_url(url: &TargetUrl) -> Result<Self> {
        url.choice(OPTION.name, &[("connecting", Self::Connecting), ("statement", Self::Statement)])
    }
}
