//! Names that come from messages, files and URLs, checked once where they enter the program.
//!
//! A value of these types is safe as a part of a path, a subject of a broker and an argument of a command.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::path::Path;

/// Declares a type that holds a text which `check` accepts.
macro_rules! checked {
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:path) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Checks a text of unknown origin.
            ///
            /// # Errors
            /// [`Usage`](crate::ErrorKind::Usage) with what is allowed.
            pub fn parse(text: &str) -> Result<Self> {
                $check(text).map(Self).ok_or_else(|| Error::usage(concat!("this is not ", $what)))
            }

        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<Path> for $name {
            fn as_ref(&self) -> &Path {
                Path::new(&self.0)
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.pad(&self.0)
            }
        }
    };
}

checked! {
    /// A name of 1 to 120 letters, digits and `-`, of ASCII, that does not begin with `-`: of an agent, or of
    /// a run on it.
    Name, "a name of 1 to 120 letters, digits and '-' that does not begin with '-'", name
}

checked! {
    /// A visible file name of 1 to 120 letters, digits, `.`, `-` and `_`, of ASCII, that begins with neither `.` nor `-`: of
    /// a run's folder, or of a file in it.
    FileName,
    "a file name of 1 to 120 letters, digits, '.', '-' and '_' that begins with neither '.' nor '-'",
    file_name
}

/// The maximum length of a name.
const LONGEST: usize = 120;

fn name(text: &str) -> Option<String> {
    let fits = (1..=LONGEST).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    fits.then(|| text.to_owned())
}

fn file_name(text: &str) -> Option<String> {
    let fits = (1..=LONGEST).contains(&text.len())
        && !text.starts_with(['.', '-'])
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    fits.then(|| text.to_owned())
}

impl Name {
    /// The name that is nearest to a text: other characters become `-`. `None` if nothing of it is left.
    pub fn nearest(text: &str) -> Option<Self> {
        let plain: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let plain = plain.trim_matches('-');
        // The text is of ASCII.
        name(&plain[..plain.len().min(LONGEST)]).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Component;

    /// Texts that lead out of a folder, hide a file, or break a message.
    const HOSTILE: [&str; 18] = [
        "", ".", "..", "/", "/etc/passwd", "../x", "a/../../x", "a/..", "a\0b", "a\nb", "\u{1b}[2J", "a\\b",
        "~/x/..", "./..", "//host/x", "a/", "\u{7f}", "a\r\nPUB x 0\r\n",
    ];

    #[test]
    fn hostile_texts_are_no_names_and_no_paths() {
        let long = "a".repeat(LONGEST + 1);
        for text in HOSTILE.iter().copied().chain(["-rf", "a b", "é", "a.b", "*", ">", "a/b", &long]) {
            assert!(Name::parse(text).is_err(), "{text:?}");
            assert!(serde_json::from_value::<Name>(text.into()).is_err(), "{text:?}");
        }
        for text in HOSTILE.iter().copied().chain(["-rf", ".jobs", ".new-1", "a b", "é", "a/b", &long]) {
            assert!(FileName::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn usual_names_are_taken_as_they_are() {
        for text in ["20261126-043722-smoke", "a", "A9", "a-"] {
            assert_eq!(Name::parse(text).unwrap(), text);
        }
        for text in ["run.jsonl", "20261126-043722-point_read.2", "report.html"] {
            assert_eq!(FileName::parse(text).unwrap(), text);
        }
    }

    #[test]
    fn nearest_name_of_a_host_or_a_file_is_valid() {
        for (text, name) in
            [("db1.example.com", "db1-example-com"), ("_x", "x"), ("naïve", "na-ve"), ("--fleet", "fleet")]
        {
            assert_eq!(Name::nearest(text).unwrap(), name);
        }
        assert_eq!(Name::nearest(&"é".repeat(500)), None);
        assert_eq!(Name::nearest(&"a".repeat(500)).unwrap().len(), LONGEST);
    }

    proptest::proptest! {
        #[test]
        fn no_text_leads_out_of_a_folder(text in "[a-zA-Z0-9./_\\x00-\\x20-]{0,12}|\\PC{0,140}") {
            let parts = |text: &str| Path::new(text).components().map(|part| matches!(part, Component::Normal(_))).collect::<Vec<_>>();
            if let Ok(name) = Name::parse(&text) {
                assert_eq!(parts(&name), [true]);
            }
            if let Ok(name) = FileName::parse(&text) {
                assert_eq!(parts(&name), [true]);
            }
            if let Some(name) = Name::nearest(&text) {
                assert_eq!(Name::parse(&name), Ok(name));
            }
        }
    }
}
