//! Escaping for HTML and SVG.

use std::fmt::{self, Display, Write};

/// Displays a text escaped for HTML and SVG, including quoted attributes. Control characters, which HTML does not
/// allow, become spaces.
pub(crate) struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' => f.write_char('\n')?,
                c if c.is_control() => f.write_char(' ')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn escaped_text_never_becomes_markup(text in "\\PC{0,40}|[<>&\"'a-z/=! \u{0}-\u{1f}]{0,40}") {
            let escaped = Escaped(&text).to_string();
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
            let back = escaped
                .replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#39;", "'").replace("&amp;", "&");
            let plain: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
            prop_assert_eq!(back, plain);
        }
    }
}
