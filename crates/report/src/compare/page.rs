//! A comparison of two runs, or of two targets, as HTML: for a page around it, and as a page of its own.

use super::Compared;
use super::render::{gate_table, judged, tables};
use crate::finding::Section;
use crate::html::{Document, one_table};
use crate::messages::Message;
use maud::{Markup, html};

/// The findings and tables, without a heading.
pub fn fragment(compared: &Compared) -> Markup {
    let list = |class: &str, section: Section| {
        let sentences = compared.sentences(section);
        html! {
            @if !sentences.is_empty() {
                ul class=(class) { @for sentence in sentences { li { (sentence) } } }
            }
        }
    };
    html! {
        (list("plain", Section::Publishing))
        (list("verdict", Section::Verdict))
        @for table in tables(compared) {
            h3 { (table.title) }
            (one_table(&table))
        }
        (list("plain", Section::Warning))
    }
}

/// The comparison as a page of its own: the decision and its reasons, then what was judged, then all figures.
pub fn page(compared: &Compared) -> String {
    let language = compared.labels.language;
    let title = format!("{} → {}", compared.first, compared.second);
    let rows = judged(compared);
    let body = html! {
        header { h1 { (title) } }
        main {
            @if compared.gate.is_some() && !rows.is_empty() {
                ul class="verdict" { @for sentence in compared.sentences(Section::Verdict) { li { (sentence) } } }
                (one_table(&gate_table(&rows, language)))
                details {
                    summary { (Message::InDetail.text(language)) }
                    @for table in tables(compared) { h3 { (table.title) } (one_table(&table)) }
                }
                ul class="plain" { @for sentence in compared.sentences(Section::Warning) { li { (sentence) } } }
            } @else {
                (fragment(compared))
            }
        }
    };
    Document { language, title: &title, style: "", body, script: String::new() }.text()
}
