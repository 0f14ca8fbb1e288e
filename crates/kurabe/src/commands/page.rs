//! The head and the style of pages of commands that show no run.

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em;color-scheme:light dark}\
    table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}th,td{padding:.2em .8em;border-bottom:1px solid #8884;\
    text-align:left;vertical-align:top}.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}code{overflow-wrap:anywhere}\
    svg{display:block;width:100%;height:8em;color:#2a78d6}figure{margin:1em 0}.s{color:#b00}@media(prefers-color-scheme:dark){.s{color:#f88}}";

/// A page that loads nothing from elsewhere.
pub(super) fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    };
    page.into_string()
}
