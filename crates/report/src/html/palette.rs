//! Colours, dashes and markers of the series, the same in all charts.
//!
//! Eight colours for each mode, found by search: each has a contrast of at least 3 with the page (WCAG 2.2, 1.4.11),
//! and any two are distinguishable with protanopia, deuteranopia and tritanopia. The tests verify both. Markers and
//! labels carry the same information.

use maud::{Markup, Render, html};
use std::fmt::{self, Display, Formatter, Write as _};

/// Colours of the light mode.
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
