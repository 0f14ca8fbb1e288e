//! How a run was verified.

use crate::format::percent;
use crate::messages::Language;
use crate::wording::{joined, say};
use kurabe_core::units::count;
use kurabe_core::verification::{Proof, Verification};

/// How writes were verified, as a clause: "9 writes counted on the server, not read back".
pub fn writes(all: &Verification, language: Language) -> String {
    let (some, records, read_back) = (count(all.counted), count(all.records), count(all.read_back));
    let counted = match all.counted {
        0 => String::new(),
        n if n >= all.writes => say!(language, ", all counted on the server", "(すべてサーバーで計数)"),
        _ => say!(language, ", {some} of them counted on the server", "(うち {some} 件をサーバーで計数)"),
    };
    let writes = count(all.writes);
    match all.how() {
        Proof::ReadBackAll => say!(
            language,
            "{writes} writes, the record of each read back and compared{counted}",
            "書き込み {writes} 件のレコードをすべて読み戻して照合{counted}",
        ),
        Proof::ReadBackLast => say!(
            language,
            "{writes} writes to {records} records, the last version of each record read back and compared{counted}",
            "書き込み {writes} 件、レコード {records} 件の最後の版を読み戻して照合{counted}",
        ),
        Proof::Counted if all.read_back == 0 => say!(
            language,
            "{writes} writes counted on the server, not read back",
            "書き込み {writes} 件をサーバーで計数、読み戻しなし",
        ),
        Proof::Counted | Proof::Sample => say!(
            language,
            "{writes} writes acknowledged by the server{counted}, {read_back} records read back and compared",
            "書き込み {writes} 件にサーバーが応答{counted}、レコード {read_back} 件を読み戻して照合",
        ),
        _ => say!(
            language,
            "{writes} writes acknowledged by the server{counted}, not read back",
            "書き込み {writes} 件にサーバーが応答{counted}、読み戻しなし",
        ),
    }
}

/// What was verified, and the maximum share of the client's CPU for checking. `verification`: `None` if the version that made
/// the run did not record it.
pub(crate) fn sentence(
    verification: Option<&Verification>,
    cpu_share: Option<f64>,
    language: Language,
) -> String {
    let cost = cpu_share.map(percent).map_or_else(String::new, |share| {
        say!(
            language,
            "; checking took at most {share} of the client's CPU",
            "照合はクライアントの CPU の最大 {share} を使いました。",
        )
    });
    let Some(all) = verification else {
        return say!(
            language,
            "the version of Kurabe that made the run did not record how it was verified{cost}.",
            "実行した版の Kurabe は、検証の方法を記録していません。{cost}",
        );
    };
    let answers = count(all.answers);
    let answers = (all.answers > 0).then(|| {
        say!(language, "{answers} replies compared byte for byte", "応答 {answers} 件をバイト単位で照合")
    });
    let writes = (all.writes > 0).then(|| writes(all, language));
    let all: Vec<String> = answers.into_iter().chain(writes).collect();
    if all.is_empty() {
        return say!(language, "nothing was verified{cost}.", "検証したものはありません。{cost}");
    }
    let all = joined(&all, "; ", language);
    say!(language, "verified: {all}{cost}.", "検証: {all}。{cost}")
}

/// The verification of a cell over all its trials; `None` if any trial did not record it.
pub(crate) fn sum<'a>(trials: impl Iterator<Item = &'a Option<Verification>>) -> Option<Verification> {
    let mut sum = Verification::default();
    for verified in trials {
        sum += (*verified)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clause(writes: u64, records: u64, counted: u64, read_back: u64) -> String {
        super::writes(&Verification { answers: 0, writes, records, counted, read_back }, Language::English)
    }

    #[test]
    fn server_count_is_claimed_only_if_counted() {
        for text in [clause(9, 9, 0, 9), clause(9, 5, 0, 5), clause(9, 9, 0, 4), clause(9, 9, 0, 0)] {
            assert!(!text.contains("counted"), "{text}");
        }
        assert_eq!(
            clause(9, 9, 9, 9),
            "9 writes, the record of each read back and compared, all counted on the server"
        );
        assert_eq!(clause(9, 9, 9, 0), "9 writes counted on the server, not read back");
        assert_eq!(
            clause(9, 9, 4, 0),
            "9 writes acknowledged by the server, 4 of them counted on the server, not read back"
        );
    }
}
