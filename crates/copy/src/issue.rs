//! What does not map from one engine to another: listed before anything is copied, and refused unless accepted by name.

use crate::script::Entry;
use kurabe_core::{Error, Result, units};

macro_rules! kinds {
    ($($kind:ident $name:literal $about:literal;)*) => {
        /// A kind of difference.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize)]
        pub enum IssueKind {
            $(#[doc = $about] #[serde(rename = $name)] $kind,)*
        }

        impl IssueKind {
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// Its name in `--accept`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// What accepting it means, one sentence.
            pub fn about(self) -> &'static str {
                match self { $(Self::$kind => $about,)* }
            }
        }
    };
}

kinds! {
    Type "type" "A type that the target does not have is stored as text.";
    Unsigned64 "unsigned-64" "Unsigned 64-bit integers are stored as decimal numbers or text.";
    Decimal "decimal" "Exact decimal numbers are stored as text, or with a limited number of digits.";
    Enum "enum" "Columns that allow listed words allow any text.";
    Json "json" "JSON documents lose spaces, repeated keys and the order of keys; MySQL's numbers in them have 64 bits.";
    Bits "bits" "Bit fields are stored as integers.";
    TimeZone "time-zone" "Instants are stored in UTC, in a type without a time zone.";
    Collation "collation" "Text is compared by its bytes, or by the target's own rules.";
    TextLength "text-length" "Text and bytes of keys and indexes get a maximum length.";
    ZeroDate "zero-date" "Dates whose year, month or day is 0 become null.";
    DateRange "date-range" "Dates outside the years 1 to 9999, and infinite ones, become null.";
    TimeRange "time-range" "Times that are negative, or of 24 hours and more, become null.";
    NotANumber "not-a-number" "NaN and infinite numbers become null.";
    NulCharacter "nul-character" "Zero characters are removed from text.";
    StorageClass "storage-class" "Columns with values of another type than declared become text or bytes.";
    Default "default" "Columns lose a default that is an expression.";
    Identity "identity" "Columns lose the numbers that the server gives.";
    Generated "generated-column" "Generated columns become ordinary ones with the values that they have.";
    Check "check" "Check constraints are not made.";
    PartialIndex "partial-index" "Indexes of some rows only are not made.";
    ExpressionIndex "expression-index" "Indexes on expressions are not made.";
    PrefixIndex "prefix-index" "Indexes on the first characters of a column are not made.";
    IndexOption "index-option" "Indexes lose what the target has not: included columns, an order, special comparisons.";
    Constraint "constraint" "Constraints lose what the target has not: being deferred, or not proven, ON CONFLICT.";
    TableOption "table-option" "Tables lose what the target has not: partitions, inheritance, a history, policies, storage.";
    IndexType "index-type" "Full-text, spatial and other special indexes are not made.";
    ForeignKey "foreign-key" "Foreign keys to tables that are not copied, or with unknown actions, are not made.";
    Trigger "trigger" "Triggers are not made.";
    View "view" "Views, sequences and other objects that are no tables are not made.";
    Routine "routine" "Functions, procedures and events are not made.";
    Unlocked "unlocked" "Tables without transactions are read while others may change them.";
    Comment "comment" "Comments are not made; listed only.";
    Grant "grant" "Privileges are not given; listed only.";
}

impl IssueKind {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// Whether a copy without what is lost need not be accepted.
    pub fn is_only_listed(self) -> bool {
        matches!(self, Self::Comment | Self::Grant)
    }
}

/// A difference that would be lost.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Issue {
    pub kind: IssueKind,
    /// The table, with a column, an index or a constraint: `orders.placed`.
    pub object: String,
    /// What does not map, shortened.
    pub detail: String,
    /// What stands in the file of leftovers, if it is an object of its own.
    #[serde(skip)]
    pub text: Option<Entry>,
}

impl Issue {
    /// One that is no object of its own.
    pub fn new(kind: IssueKind, object: String, detail: String) -> Self {
        Self { kind, object, detail, text: None }
    }

    /// Its place in a plan: triggers stay in the order in which they are made.
    pub(crate) fn place(&self) -> (IssueKind, Option<String>) {
        (self.kind, Some(self.object.clone()).filter(|_| self.kind != IssueKind::Trigger))
    }
}

/// What a value becomes that the target cannot hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Becomes {
    /// What [`IssueKind::about`] says.
    #[default]
    Usual,
    /// Itself: the target decides, and rows that it refuses go to the file of such rows.
    Itself,
    /// This text; what is removed from text is replaced by it.
    Text(String),
}

/// What the user accepts: kinds, or kinds of one object (`zero-date:orders.placed`), perhaps with what becomes of the values
/// (`zero-date=0001-01-01`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted(Vec<(IssueKind, Option<String>, Becomes)>);

impl Accepted {
    /// Reads a list of `--accept`.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        let read = |word: &str| {
            let (of, becomes) = match word.split_once('=') {
                None => (word, Becomes::Usual),
                Some((of, "refuse")) => (of, Becomes::Itself),
                Some((of, "null" | "remove")) => (of, Becomes::Usual),
                Some((of, text)) => (of, Becomes::Text(text.to_owned())),
            };
            let (name, object) = of.split_once(':').map_or((of, None), |(name, of)| (name, Some(of)));
            let kind = IssueKind::named(name).ok_or_else(|| {
                let names: Vec<&str> = IssueKind::ALL.iter().map(|kind| kind.name()).collect();
                Error::usage(format!("--accept: there is no kind '{name}'"))
                    .hint(units::suggestion(name, &names, "there are"))
            })?;
            let choices =
                [IssueKind::ZeroDate, IssueKind::DateRange, IssueKind::TimeRange, IssueKind::NulCharacter];
            if becomes != Becomes::Usual && !choices.contains(&kind) {
                return Err(Error::usage(format!("--accept {word}: '{name}' has no choice")));
            }
            Ok((kind, object.map(str::to_owned), becomes))
        };
        words.into_iter().map(read).collect::<Result<_>>().map(Self)
    }

    pub fn all() -> Self {
        Self(IssueKind::ALL.iter().map(|kind| (*kind, None, Becomes::Usual)).collect())
    }

    /// Whether the user accepts this difference.
    pub fn has(&self, kind: IssueKind, object: &str) -> bool {
        self.entry(kind, object).is_some()
    }

    /// What becomes of the values of a column.
    pub fn becomes(&self, kind: IssueKind, object: &str) -> Becomes {
        self.entry(kind, object).cloned().unwrap_or_default()
    }

    fn entry(&self, kind: IssueKind, object: &str) -> Option<&Becomes> {
        let table = object.split('.').next();
        let is = |of: &Option<String>| of.as_deref().is_none_or(|of| of == object || Some(of) == table);
        // What is said of an object precedes what is said of all.
        let found = self.0.iter().filter(|(accepted, of, _)| *accepted == kind && is(of));
        found.max_by_key(|(_, of, _)| of.as_ref().map(String::len)).map(|(.., becomes)| becomes)
    }
}
