//! An entry of a log of PostgreSQL, by the names of jsonlog.

use crate::log::lines;
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    pub(super) timestamp: String,
    pub(super) user: String,
    pub(super) dbname: String,
    /// What the session does: the tag of its command.
    pub(super) ps: String,
    pub(super) session_id: String,
    pub(super) error_severity: String,
    pub(super) state_code: String,
    pub(super) message: String,
    pub(super) detail: String,
    pub(super) context: String,
    pub(super) statement: String,
    pub(super) backend_type: String,
}

pub(super) enum Read {
    Line(Box<Line>),
    /// What belongs to no entry.
    Unread,
    End,
}

impl Line {
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.starts_with('{') {
            return serde_json::from_str(text).ok();
        }
        let mut fields = lines::fields(text);
        let has_all = fields.len() >= 23;
        let mut field = |place: usize| fields.get_mut(place).map(std::mem::take).unwrap_or_default();
        has_all.then(|| Self {
            timestamp: field(0),
            user: field(1),
            dbname: field(2),
            session_id: field(5),
            ps: field(7),
            error_severity: field(11),
            state_code: field(12),
            message: field(13),
            detail: field(14),
            context: field(18),
            statement: field(19),
            backend_type: field(23),
        })
    }
}
