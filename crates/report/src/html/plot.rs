//! Charts with linear axes: values over time, and over runs; and the colours, dashes and markers of the series, the same in all
//! charts.

use crate::html::chart::{WIDTH, svg};
use kurabe_core::units;
use maud::{Markup, Render, html};
use std::fmt::{self, Display, Formatter, Write as _};
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

/// Colours of the light mode. The eight of each mode were found by search: each has a contrast of at least 3 with the page
/// (WCAG 2.2, 1.4.11), and any two are distinguishable with protanopia, deuteranopia and tritanopia. The tests verify both.
/// Markers and labels carry the same information.
pub(crate) const LIGHT: [&str; 8] =
    ["#0f359b", "#ad5010", "#2e7e70", "#6a3a59", "#a98c35", "#8347cf", "#65181a", "#339cc4"];
/// Colours of the dark mode.
pub(crate) const DARK: [&str; 8] =
    ["#2f63e1", "#ed7b15", "#31e1c7", "#955a6d", "#dcd838", "#a79bfe", "#c92516", "#539fb1"];
/// The background of the page, light and dark.
pub(crate) const PAGE: [&str; 2] = ["#fcfcfa", "#16191d"];

/// `stroke-dasharray` of the second property of a series; none for the first.
pub(crate) const DASHES: [&str; 4] = ["", "6 3", "2 3", "9 3 2 3"];

/// A pixel coordinate: at most one decimal.
#[derive(Clone, Copy, Debug)]
pub struct Px(pub f64);

impl Display for Px {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
        match tenths % 10 {
            0 => write!(f, "{sign}{}", tenths / 10),
            part => write!(f, "{sign}{}.{part}", tenths / 10),
        }
    }
}

impl Render for Px {
    fn render_to(&self, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = write!(out, "{self}");
    }
}

/// The `points` of a line or polygon.
pub(crate) fn coordinates(points: &[(f64, f64)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", Px(*x), Px(*y))).collect();
    points.join(" ")
}

/// A marker around a point, filled with the series' colour. Its path begins at the point, where the script reads it.
pub(crate) fn marker(kind: usize, x: f64, y: f64) -> Markup {
    let outline = match kind % 8 {
        0 => "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0",
        1 => "m-3-3h6v6h-6z",
        2 => "m0-4l3.8 7h-7.6z",
        3 => "m0-4.4l4 4.4l-4 4.4l-4-4.4z",
        4 => "m0 4l3.8-7h-7.6z",
        5 => "m-4.4-1.5h8.8v3h-8.8z",
        6 => "m-1.5-4.4h3v8.8h-3z",
        _ => "m-4 0l7-3.8v7.6z",
    };
    html! { path class="m" d={ "M" (Px(x)) " " (Px(y)) (outline) } {} }
}

/// The custom properties of one mode: `--s0:#…;--s1:…`.
pub(crate) fn properties(colors: &[&str; 8]) -> String {
    colors.iter().enumerate().fold(String::new(), |mut text, (n, color)| {
        let _ = write!(text, "--s{n}:{color};");
        text
    })
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

    type Rgb = [f64; 3];

    /// Linear light of `#rrggbb` (IEC 61966-2-1).
    fn linear(hex: &str) -> Rgb {
        [1, 3, 5].map(|at| {
            let v = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |hex: &str| {
            let [r, g, b] = linear(hex);
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Colour vision: normal, and without one kind of cones (Machado, Oliveira and Fernandes, "A
    /// Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE TVCG 15(6), 2009, severity 1).
    const EYES: [[Rgb; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    /// Oklab (Ottosson 2020), in which distances are about perceptual.
    #[allow(clippy::many_single_char_names, reason = "they are the names of the formula")]
    fn oklab([r, g, b]: Rgb) -> Rgb {
        let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
        let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
        let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
        [
            0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
            1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
            0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
        ]
    }

    fn distance(a: &str, b: &str, eye: &[Rgb; 3]) -> f64 {
        let seen = |hex: &str| {
            let rgb = linear(hex);
            oklab(eye.map(|row| row.iter().zip(rgb).map(|(k, v)| k * v).sum::<f64>().clamp(0.0, 1.0)))
        };
        let (a, b) = (seen(a), seen(b));
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    #[test]
    fn pixels_have_no_needless_digits() {
        for (value, text) in
            [(12.0, "12"), (12.04, "12"), (12.06, "12.1"), (-0.26, "-0.3"), (-0.04, "0"), (-7.0, "-7")]
        {
            assert_eq!(Px(value).to_string(), text);
        }
    }

    #[test]
    fn every_colour_stands_out_from_the_page() {
        for (colors, page) in [(LIGHT, PAGE[0]), (DARK, PAGE[1])] {
            for color in colors {
                assert!(contrast(color, page) >= 3.0, "{color} on {page}: {:.2}", contrast(color, page));
            }
        }
    }

    #[test]
    fn no_two_colours_are_alike_to_any_reader() {
        for colors in [LIGHT, DARK] {
            for (n, a) in colors.iter().enumerate() {
                for b in &colors[n + 1..] {
                    for eye in &EYES {
                        assert!(distance(a, b, eye) >= 0.095, "{a} and {b}: {:.3}", distance(a, b, eye));
                    }
                }
            }
        }
    }
}
