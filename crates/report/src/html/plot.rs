//! Charts with linear axes: values over time, and over runs.

use crate::html::chart::{WIDTH, svg};
use crate::html::palette::Px;
use kurabe_core::units;
use maud::{Markup, html};
use std::time::Duration;

const HEIGHT: f64 = 190.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 36.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
/// The most ticks of an axis.
const TICKS: f64 = 5.0;
/// Steps between ticks of a time, in seconds.
const STEPS: [f64; 15] = [
    1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0, 43_200.0,
    86_400.0,
];

/// A chart with linear axes.
pub struct Plot<'a> {
    /// What it shows, for those who do not see it.
    pub name: &'a str,
    /// The ends of the horizontal axis, what it is of, and its ticks.
    pub x: (f64, f64),
    pub x_name: &'a str,
    pub x_ticks: Vec<(f64, String)>,
    /// The ends of the vertical axis, its unit, and the text of a value.
    pub y: (f64, f64),
    pub y_name: &'a str,
    pub y_tick: &'a dyn Fn(f64) -> String,
}

impl Plot<'_> {
    /// The places of two ends on an axis.
    fn along((low, high): (f64, f64), value: f64) -> f64 {
        ((value - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }

    /// The coordinates of a point.
    pub fn at(&self, x: f64, y: f64) -> (Px, Px) {
        let base = HEIGHT - BOTTOM;
        (
            Px((WIDTH - LEFT - RIGHT).mul_add(Self::along(self.x, x), LEFT)),
            Px((TOP - base).mul_add(Self::along(self.y, y), base)),
        )
    }

    /// The `points` of a line.
    pub fn line(&self, points: impl IntoIterator<Item = (f64, f64)>) -> String {
        let at = |(x, y)| {
            let (x, y) = self.at(x, y);
            format!("{x},{y}")
        };
        points.into_iter().map(at).collect::<Vec<_>>().join(" ")
    }

    /// The axes, and in them what is drawn.
    pub fn draw(&self, content: &Markup) -> Markup {
        let (base, right) = (Px(HEIGHT - BOTTOM), Px(WIDTH - RIGHT));
        svg(
            HEIGHT,
            self.name,
            &html! {
                text class="unit" x="0" y="10" { (self.y_name) }
                @for value in ticks(self.y.0, self.y.1) {
                    @let (_, y) = self.at(self.x.0, value);
                    path class="grid" d={ "M" (LEFT) " " (y) "H" (right) } {}
                    text class="tick y" x=(Px(LEFT - 6.0)) y=(Px(y.0 + 4.0)) { ((self.y_tick)(value)) }
                }
                path class="axis" d={ "M" (LEFT) " " (base) "H" (right) } {}
                @for (value, text) in &self.x_ticks {
                    @let (x, _) = self.at(*value, 0.0);
                    path class="axis" d={ "M" (x) " " (base) "v4" } {}
                    text class="tick x" x=(x) y=(Px(HEIGHT - BOTTOM + 16.0)) { (text) }
                }
                text class="unit" x=(right) y=(Px(HEIGHT - 4.0)) text-anchor="end" { (self.x_name) }
                (content)
            },
        )
    }
}

/// Round values between two, at most one more than [`TICKS`].
pub(super) fn ticks(low: f64, high: f64) -> Vec<f64> {
    let least = ((high - low) / TICKS).max(f64::MIN_POSITIVE);
    let decade = 10_f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade).into_iter().find(|step| *step >= least);
    let step = step.unwrap_or(least);
    let first = (low / step).ceil() as i64;
    (first..).map(|n| n as f64 * step).take_while(|value| *value <= high).take(TICKS as usize + 1).collect()
}

/// Ticks of a time that begins at 0, in seconds.
pub fn time_ticks(seconds: f64) -> Vec<(f64, String)> {
    let text = |at: f64| if at > 0.0 { units::time(Duration::from_secs_f64(at)) } else { "0".to_owned() };
    if seconds < TICKS {
        return ticks(0.0, seconds).into_iter().map(|at| (at, text(at))).collect();
    }
    let least = seconds / TICKS;
    let step = STEPS.into_iter().find(|step| *step >= least).unwrap_or(least.ceil());
    let shown = |n: u32| {
        let at = f64::from(n) * step;
        (at, text(at))
    };
    (0..=TICKS as u32).map(shown).take_while(|(at, _)| *at <= seconds).collect()
}

/// Maps positive values to pixels on a logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Log {
    /// Maps `low` to pixel `from` and `high` to pixel `to`; both positive, `low` below `high`.
    pub fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Self { low: low.ln(), high: high.ln(), from, to }
    }

    /// The pixel of a value; values outside are clamped.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value.max(f64::MIN_POSITIVE).ln() - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

/// The range of the values with a margin, at least a factor of `least` wide.
pub(crate) fn range(values: impl Iterator<Item = f64> + Clone, least: f64) -> Option<(f64, f64)> {
    let good = values.filter(|value| value.is_finite() && *value > 0.0);
    let low = good.clone().min_by(f64::total_cmp)?;
    let high = good.max_by(f64::total_cmp)?;
    let room = ((high / low).ln() * 0.06).exp();
    let (low, high) = (low / room, high * room);
    let lack = (least / (high / low)).sqrt().max(1.0);
    Some((low / lack, high * lack))
}

/// Ticks within a range, and whether each has a label: 1, 2 and 5 of each decade, or only 1 in wide ranges. At least
/// three have labels, unless the range is less than a decade.
pub(crate) fn log_ticks(low: f64, high: f64) -> Vec<(f64, bool)> {
    let decades = (high / low).log10();
    let first = low.log10().floor() as i32;
    let last = high.log10().ceil() as i32;
    let every = (decades / 7.0).ceil().max(1.0) as i32;
    let mut ticks = Vec::new();
    for decade in first..=last {
        for step in [1.0, 2.0, 5.0] {
            let value = step * 10_f64.powi(decade);
            let whole = (step - 1.0_f64).abs() < 1e-9;
            let label = if decades > 2.2 { whole && decade % every == 0 } else { true };
            if value >= low * 0.999 && value <= high * 1.001 && (whole || decades <= 4.0) {
                ticks.push((value, label));
            }
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_and_times_have_their_unit() {
        assert_eq!(ticks(0.0, 43.0), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks(95.0, 106.0), [95.0, 100.0, 105.0]);
        let texts = |seconds| time_ticks(seconds).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(9.5)[1..3], ["2 s", "4 s"]);
        assert_eq!(texts(7_000.0)[1], "30 min");
    }

    proptest! {
        #[test]
        fn every_axis_has_some_ticks_and_not_too_many(low in 0.0..1e6_f64, width in 1e-3..1e6_f64) {
            let found = ticks(low, low + width);
            prop_assert!((2..=6).contains(&found.len()), "{found:?}");
            prop_assert!(found.iter().all(|value| (low..=low + width).contains(value)));
            let times = time_ticks(width * 10.0);
            prop_assert!((2..=6).contains(&times.len()), "{times:?}");
        }
    }

    #[test]
    fn ticks_are_round() {
        let labelled: Vec<f64> = log_ticks(80.0, 4_000.0).iter().filter(|t| t.1).map(|t| t.0).collect();
        assert_eq!(labelled, [100.0, 200.0, 500.0, 1_000.0, 2_000.0]);
        let labelled: Vec<f64> = log_ticks(3.0, 200_000.0).iter().filter(|t| t.1).map(|t| t.0).collect();
        assert_eq!(labelled, [10.0, 100.0, 1_000.0, 10_000.0, 100_000.0]);
    }

    proptest! {
        #[test]
        fn every_value_has_a_place(low in 1e-6..1e9_f64, factor in 1.0..1e9_f64, value in -1.0..1e12_f64) {
            let scale = Log::new(low, low * factor, 10.0, 300.0);
            prop_assert!((10.0..=300.0).contains(&scale.at(value)));
            prop_assert!(log_ticks(low, low * factor.max(4.0)).len() < 60);
        }
    }
}
