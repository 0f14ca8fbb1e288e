//! What a server says of itself in its answer to `hello`
//! (<https://www.mongodb.com/docs/manual/reference/command/hello/>), and whether it is the one to use.

use super::bson::{Element, Raw};
use super::config::Config;

/// The oldest protocol that this client speaks: that of MongoDB 3.6, the first with `OP_MSG`.
pub(super) const OLDEST: i64 = 6;

/// An answer to `hello`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "as the server says it")]
pub(super) struct Hello {
    /// The name of the replica set of which it is a member.
    pub(super) set: Option<String>,
    /// The members that hold data, by the addresses that they know of each other.
    pub(super) members: Vec<String>,
    pub(super) primary: Option<String>,
    pub(super) is_writable: bool,
    pub(super) is_secondary: bool,
    /// Whether it is a `mongos`.
    pub(super) is_router: bool,
    pub(super) has_sessions: bool,
    pub(super) newest_protocol: i64,
    pub(super) document_bytes: Option<u64>,
    pub(super) message_bytes: Option<u64>,
    /// The mechanisms of the user; `None` if it does not say.
    pub(super) mechanisms: Option<Vec<String>>,
    pub(super) compressors: Vec<String>,
    pub(super) tags: Vec<(String, String)>,
    /// The number of its process, which no other has; `None` before MongoDB 4.4.
    pub(super) process: Option<Vec<u8>>,
    /// When it wrote last, in milliseconds since 1970.
    pub(super) last_write: Option<i64>,
}

impl Hello {
    pub(super) fn of(answer: Raw<'_>) -> Self {
        let text = |name: &str| answer.text(name).map(ToOwned::to_owned);
        let is = |name: &str| answer.bool(name) == Some(true);
        let mut members = answer.texts("hosts");
        members.extend(answer.texts("passives"));
        let tags = answer.document("tags").into_iter().flat_map(Raw::elements);
        let tag = |element| match element {
            Ok((name, Element::Text(value))) => {
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                Some((text(name), text(value)))
            }
            _ => None,
        };
        Self {
            set: text("setName"),
            members,
            primary: text("primary"),
            is_writable: is("isWritablePrimary") || is("ismaster"),
            is_secondary: is("secondary"),
            is_router: answer.text("msg") == Some("isdbgrid"),
            has_sessions: answer.number("logicalSessionTimeoutMinutes").is_some(),
            newest_protocol: answer.number("maxWireVersion").unwrap_or(0),
            document_bytes: answer.size("maxBsonObjectSize"),
            message_bytes: answer.size("maxMessageSizeBytes"),
            mechanisms: answer.has("saslSupportedMechs").then(|| answer.texts("saslSupportedMechs")),
            compressors: answer.texts("compression"),
            tags: tags.filter_map(tag).collect(),
            process: match answer.at(&["topologyVersion", "processId"]) {
                Some(Element::ObjectId(bytes)) => Some(bytes.to_vec()),
                _ => None,
            },
            last_write: match answer.at(&["lastWrite", "lastWriteDate"]) {
                Some(Element::DateTime(at)) => Some(at),
                _ => None,
            },
        }
    }

    /// Why writes cannot be sent to it; `None` if they can.
    pub(super) fn unsuitable(&self, config: &Config) -> Option<String> {
        if config.set.is_some() && self.set != config.set {
            return Some(match &self.set {
                Some(set) => format!("it is a member of the replica set {set}"),
                None => "it is in no replica set".to_owned(),
            });
        }
        if config.is_direct || self.is_router || self.is_writable && self.set.is_some() {
            return None;
        }
        match (&self.set, &*config.hosts) {
            (None, [_]) => None,
            (None, _) => Some("it is in no replica set".to_owned()),
            (Some(_), _) if self.is_secondary => Some("it is a secondary".to_owned()),
            (Some(_), _) => Some("it is no primary".to_owned()),
        }
    }
}
