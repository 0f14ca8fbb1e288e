//! The options of commands, as values: each command reads its own once, and nothing else knows their names.

use clap::ArgMatches;
use clap::parser::ValueSource;
use kurabe_core::{Error, Result};
use std::ffi::OsString;
use std::path::PathBuf;

/// Declares the options of a command, and how they are read. A field has the name of its option, with `_` for `-`, unless
/// another name follows.
macro_rules! options {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $field:ident: $kind:ty $(= $id:literal)?),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        #[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
        pub(crate) struct $name {
            $($(#[$about])* pub(crate) $field: $kind,)+
        }

        impl $name {
            /// Reads them from a command line. Not every command has every option.
            pub(crate) fn of(matches: &clap::ArgMatches) -> Self {
                Self { $($field: $crate::options::Value::read(matches, &options!(@name $field $($id)?)),)+ }
            }

            /// Their names.
            #[cfg(test)]
            pub(crate) fn names() -> Vec<String> {
                vec![$(options!(@name $field $($id)?)),+]
            }
        }
    };
    (@name $field:ident $id:literal) => { $id.to_owned() };
    (@name $field:ident) => { stringify!($field).replace('_', "-") };
}
pub(crate) use options;

/// What an option can be read as.
pub(crate) trait Value {
    fn read(matches: &ArgMatches, name: &str) -> Self;
}

/// A flag.
impl Value for bool {
    fn read(matches: &ArgMatches, name: &str) -> Self {
        matches.try_get_one::<Self>(name).ok().flatten().copied().unwrap_or(false)
    }
}

macro_rules! values {
    ($($kind:ty),+) => { $(
        impl Value for Option<$kind> {
            fn read(matches: &ArgMatches, name: &str) -> Self {
                matches.try_get_one::<$kind>(name).ok().flatten().cloned()
            }
        }

        impl Value for Vec<$kind> {
            fn read(matches: &ArgMatches, name: &str) -> Self {
                matches.try_get_many::<$kind>(name).ok().flatten().into_iter().flatten().cloned().collect()
            }
        }
    )+ };
}
values!(String, PathBuf, OsString, u16);

/// Where the value of an option comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The settings file, or the program's own default.
    Default,
    Environment,
    CommandLine,
}

/// A value, and where it comes from; `None` if there is none.
#[derive(Clone, Debug)]
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    pub(crate) source: Option<Source>,
}

impl<T> Sourced<T> {
    /// Whether it was given on the command line.
    pub(crate) fn is_given(&self) -> bool {
        self.source == Some(Source::CommandLine)
    }

    /// Whether it is from the settings file, or the program's own default.
    pub(crate) fn is_default(&self) -> bool {
        self.source == Some(Source::Default)
    }
}

impl<T: Value> Value for Sourced<T> {
    fn read(matches: &ArgMatches, name: &str) -> Self {
        let known = matches.try_contains_id(name).is_ok();
        let source = known.then(|| matches.value_source(name)).flatten().map(|source| match source {
            ValueSource::CommandLine => Source::CommandLine,
            ValueSource::EnvVariable => Source::Environment,
            _ => Source::Default,
        });
        Self { value: T::read(matches, name), source }
    }
}

/// The value of an option, if it is given; an error names the option.
pub(crate) fn parsed<T>(
    name: &str,
    text: Option<&String>,
    parse: impl Fn(&str) -> Result<T>,
) -> Result<Option<T>> {
    text.map(|text| parse(text).map_err(|error: Error| error.context(format!("--{name}")))).transpose()
}
