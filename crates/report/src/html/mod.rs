//! Pages of HTML: without network access, for light and dark mode, phones, paper, and browsers without scripts. The page of a
//! report is [`render`]'s; other crates show what they have in a [`Document`].

mod blocks;
mod cells;
mod chart;
mod charts;
mod lines;
mod page;
mod palette;
mod plot;
mod ranking;

use crate::html::palette::{DARK, LIGHT, PAGE, properties};
use crate::messages::Language;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

pub use crate::html::blocks::grid;
pub(crate) use crate::html::blocks::write;
pub use crate::html::page::{Options, render};
pub use crate::html::plot::{Plot, time_ticks};

/// The style sheet with the colours of both modes.
pub fn style() -> String {
    include_str!("style.css")
        .replace("@LIGHT@", &properties(&LIGHT))
        .replace("@DARK@", &properties(&DARK))
        .replace("@PAGE-LIGHT@", PAGE[0])
        .replace("@PAGE-DARK@", PAGE[1])
}

/// The end of each page, before which its script is.
const END: &str = "</body></html>";

/// A page that is written to a file, for browsers without a network.
#[derive(Debug)]
pub struct Document<'a> {
    pub language: Language,
    pub title: &'a str,
    /// Style after that of all pages.
    pub style: &'a str,
    /// What is shown.
    pub body: Markup,
    /// The page's only script; empty: it has none.
    pub script: String,
}

impl Document<'_> {
    /// The page as text.
    pub fn text(self) -> String {
        // HTML does not allow control characters, which names from servers may contain.
        let printable = |text: String| text.replace(|c: char| c.is_control() && c != '\n', " ");
        let script = printable(self.script);
        let page = html! {
            (DOCTYPE)
            html lang=(self.language.name()) {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(policy(&script));
                    meta name="generator" content="Kurabe";
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(style())) (PreEscaped(self.style)) }
                }
                body { (self.body) }
            }
        };
        // Elements of SVG may close themselves. No text has such an end: its `<` is escaped.
        let page = ["path", "circle", "polyline", "use"]
            .iter()
            .fold(printable(page.into_string()), |text, name| text.replace(&format!("></{name}>"), "/>"));
        if script.is_empty() {
            return page;
        }
        format!("{}<script>{script}</script>{END}", page.strip_suffix(END).unwrap_or(&page))
    }
}

/// What a page may do: no network access and no script but this one, even if a name from a server were taken for markup.
fn policy(script: &str) -> String {
    let scripts = if script.is_empty() {
        "'none'".to_owned()
    } else {
        format!("'sha256-{}'", BASE64_STANDARD.encode(digest(&SHA256, script.as_bytes())))
    };
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src {scripts}; img-src data:; base-uri 'none'; \
         form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_allows_the_script_as_it_is_written_and_no_other() {
        let page = |script: &str| {
            let body = html! { p title="</body></html>" { "a\u{7}b</body></html>" } };
            let script = script.to_owned();
            Document { language: Language::English, title: "T", style: "", body, script }.text()
        };
        let with = page("let a = 'x\u{85}y';");
        let written = with.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
        assert!(with.contains(&policy(written)) && written == "let a = 'x y';", "{with}");
        assert_ne!(policy(written), policy("let a = 'z y';"));
        assert_eq!(with.matches("<script").count(), 1);
        let without = page("");
        assert!(without.contains("script-src 'none';") && !without.contains("<script"), "{without}");
        assert!(without.contains("a b&lt;/body") && without.ends_with(END), "{without}");
    }
}
