//! Labels at the ends of lines.

use super::palette::Px;
use kurabe_core::sort;
use maud::{Markup, html};

pub(super) struct Label {
    pub text: String,
    pub color: Option<usize>,
    pub x: f64,
    pub y: f64,
}

/// Labels at the ends of lines, moved apart if they overlap, each connected to its line.
pub(super) fn labels_at_ends(mut labels: Vec<Label>, x: f64, bottom: f64) -> Markup {
    const STEP: f64 = 13.0;
    sort::by(&mut labels, |a, b| a.y.total_cmp(&b.y));
    let mut places: Vec<f64> = labels.iter().map(|label| label.y).collect();
    for n in 1..places.len() {
        places[n] = places[n].max(places[n - 1] + STEP);
    }
    // Labels moved beyond the end are moved back and move others.
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - STEP;
    }
    html! {
        @for (label, place) in labels.iter().zip(places) {
            @let class = label.color.map_or_else(|| "reference".to_owned(), |color| format!("c{}", color % 8));
            @let leader = format!("M{} {}L{} {}", Px(label.x + 5.0), Px(label.y), Px(x - 2.0), Px(place));
            path class="leader" data-line=(label.text) d=(leader) {}
            text class={ "name " (class) } data-line=(label.text) x=(Px(x)) y=(Px(place + 4.0)) { (label.text) }
        }
    }
}
