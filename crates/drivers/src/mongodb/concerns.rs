//! What a URL demands of writes and reads: write concern and read preference.

use crate::prelude::*;
use crate::url::{number, truth};

/// The smallest `maxStalenessSeconds` that MongoDB accepts.
const MIN_STALENESS: u64 = 90;

/// How many members acknowledge a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Acknowledged {
    By(u32),
    Majority,
    /// A name that the replica set defines.
    As(String),
}

impl Acknowledged {
    pub(super) fn of(text: &str) -> Self {
        match (text, text.parse()) {
            ("majority", _) => Self::Majority,
            (_, Ok(members)) => Self::By(members),
            _ => Self::As(text.to_owned()),
        }
    }
}

/// A write concern. A part that is `None` is left to the server's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WriteConcern {
    pub(super) w: Option<Acknowledged>,
    pub(super) journal: Option<bool>,
    pub(super) timeout: Option<u64>,
}

impl WriteConcern {
    pub(super) fn from_url(url: &TargetUrl) -> Result<Self> {
        let w = url.option("w").map(Acknowledged::of);
        match &w {
            Some(Acknowledged::By(0)) => {
                let message = "mongodb: w=0 requests unacknowledged writes, of which nothing is known";
                return Err(Error::unsupported(message).hint("use w=1 or more, or majority"));
            }
            Some(Acknowledged::As(name)) if name.is_empty() || name.parse::<f64>().is_ok() => {
                return Err(url.wrong(format!("w={name} is neither a number of members nor a name")));
            }
            _ => {}
        }
        Ok(Self { w, journal: truth(url, "journal")?, timeout: number(url, "wTimeoutMS")? })
    }
}

/// Which members answer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
    Nearest,
}

const MODES: [(&str, Mode); 5] = [
    ("primary", Mode::Primary),
    ("primaryPreferred", Mode::PrimaryPreferred),
    ("secondary", Mode::Secondary),
    ("secondaryPreferred", Mode::SecondaryPreferred),
    ("nearest", Mode::Nearest),
];

/// A read preference other than the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadPreference {
    pub(super) mode: Mode,
    /// Tags that a secondary must have.
    pub(super) tags: Vec<(String, String)>,
    /// The most seconds that a secondary may lag behind.
    pub(super) staleness: Option<u64>,
}

impl ReadPreference {
    /// `None` means the primary.
    pub(super) fn from_url(url: &TargetUrl) -> Result<Option<Self>> {
        let mode = url.choice("readPreference", &MODES)?;
        let staleness: Option<i64> = number(url, "maxStalenessSeconds")?;
        let staleness = match staleness {
            None | Some(-1) => None,
            Some(seconds) => {
                let allowed = u64::try_from(seconds).ok().filter(|seconds| *seconds >= MIN_STALENESS);
                let low = || url.wrong(format!("maxStalenessSeconds={seconds} is below {MIN_STALENESS}"));
                Some(allowed.ok_or_else(low)?)
            }
        };
        let mut tags = Vec::new();
        for tag in url.option("readPreferenceTags").into_iter().flat_map(|tags| tags.split(',')) {
            match tag.split_once(':') {
                Some((name, value)) => tags.push((name.to_owned(), value.to_owned())),
                None if tag.is_empty() => {}
                None => return Err(url.wrong(format!("readPreferenceTags: '{tag}' is not name:value"))),
            }
        }
        if mode != Mode::Primary {
            return Ok(Some(Self { mode, tags, staleness }));
        }
        if staleness.is_none() && tags.is_empty() {
            return Ok(None);
        }
        let wrong =
            "readPreferenceTags and maxStalenessSeconds select secondaries, and readPreference=primary none";
        Err(url.wrong(wrong).hint("use readPreference=secondaryPreferred"))
    }

    pub(super) fn name(&self) -> &'static str {
        MODES.iter().find(|(_, mode)| *mode == self.mode).map_or("", |(name, _)| name)
    }
}
