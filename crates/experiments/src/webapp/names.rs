//! Words for names and addresses, from `names.txt`.

use std::sync::LazyLock;

/// A word in kanji, and its reading in katakana.
pub(super) type Word = (&'static str, &'static str);

/// The words, by what they are used for.
pub(super) struct Names {
    /// Prefectures by the first three digits of their postal codes: each range ends where the next begins. From Japan
    /// Post's list, in which a few towns at borders have codes of their neighbours.
    pub(super) prefectures: Vec<(u32, Word)>,
    /// First parts of place names.
    pub(super) heads: Vec<Word>,
    /// Last parts of place names.
    pub(super) tails: Vec<Word>,
    /// Suffixes of municipalities.
    pub(super) cities: Vec<Word>,
    /// Suffixes of quarters.
    pub(super) towns: Vec<Word>,
    /// Family names, in kanji and in Latin letters.
    pub(super) families: Vec<Word>,
    /// Given names, without readings.
    pub(super) given: Vec<Word>,
}

pub(super) static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let lines = |list: &'static str| {
        let lines = include_str!("names.txt").lines().filter_map(|line| line.split_once(": "));
        lines.filter(move |(name, _)| *name == list).flat_map(|(_, words)| words.split_whitespace())
    };
    let word = |text: &'static str| text.split_once('/').unwrap_or((text, ""));
    let words = |list| lines(list).map(word).collect();
    let prefecture = |text| {
        let (first, name) = word(text);
        (first.parse().unwrap_or_default(), word(name))
    };
    Names {
        prefectures: lines("prefectures").map(prefecture).collect(),
        heads: words("heads"),
        tails: words("tails"),
        cities: words("cities"),
        towns: words("towns"),
        families: words("families"),
        given: words("given"),
    }
});
