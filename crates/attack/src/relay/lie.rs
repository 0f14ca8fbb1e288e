//! The lies that the relay can tell.

use super::protocol::Kind;

/// One kind of lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A write is acknowledged and never sent.
    Drop,
    /// A request is executed twice, the second time in place of the next one, which is never sent.
    Twice,
    /// An answer is delivered twice.
    AnswerTwice,
    /// A write is acknowledged and sent when its trial has ended.
    Late,
    /// A read is given the answer of another.
    OtherKey,
    /// A read is given the answer that the same read had before the record was changed.
    Older,
    /// One bit of a value is flipped in an answer.
    FlipAnswer,
    /// One bit of a value is flipped in a write.
    FlipRequest,
}

impl Lie {
    /// Every kind, with its name in the table.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Drop, "drop"),
        (Self::Twice, "twice"),
        (Self::AnswerTwice, "answer-twice"),
        (Self::Late, "late"),
        (Self::OtherKey, "other-key"),
        (Self::Older, "older"),
        (Self::FlipAnswer, "flip-answer"),
        (Self::FlipRequest, "flip-request"),
    ];

    /// Whether it applies to such a request.
    pub fn concerns(self, kind: Kind) -> bool {
        match self {
            Self::Drop | Self::Late | Self::FlipRequest => kind == Kind::Write,
            Self::OtherKey | Self::Older | Self::FlipAnswer => kind == Kind::Read,
            Self::Twice | Self::AnswerTwice => kind != Kind::Other,
        }
    }
}
