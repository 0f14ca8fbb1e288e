//! Enums whose variants have names.

/// Declares an enum with the name of each variant after `=>`, a function that returns the name, and the list of all
/// variants.
macro_rules! named {
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident {
            $($(#[$doc:meta])* $variant:ident => $text:literal,)+
        }
        $(#[$about:meta])*
        pub fn $name:ident;
    ) => {
        $(#[$attribute])*
        pub enum $enum {
            $($(#[$doc])* $variant,)+
        }

        impl $enum {
            /// All of them, in the order of the declaration.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            $(#[$about])*
            pub fn $name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.$name())
            }
        }
    };
}

pub(crate) use named;
