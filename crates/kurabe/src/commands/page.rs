//! The frame of pages of commands that show no run.

use kurabe_report::Language;
use kurabe_report::html::Document;
use maud::{Markup, html};

const STYLE: &str = "table{display:block;overflow-x:auto;margin:1em 0}th,td{vertical-align:top;white-space:normal}code{overflow-wrap:anywhere}\
    .n{text-align:right}td.n{white-space:nowrap}.s{color:var(--bad)}\
    figure{max-width:none;margin:1em 0}figure svg{height:8em;color:var(--s0);overflow:hidden}";

/// A page without a script.
pub(super) fn document(title: &str, body: &Markup) -> String {
    let body = html! {
        header { h1 { (title) } }
        main { (body) }
    };
    Document { language: Language::English, title, style: STYLE, body, script: String::new() }.text()
}
