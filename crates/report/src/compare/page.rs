//! A comparison of two runs as HTML, for a page around it.

use super::{Compared, render::tables};
use crate::finding::Section;
use crate::html::one_table;
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
