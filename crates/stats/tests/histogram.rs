//! The histogram against the sorted latencies themselves.

use hdrhistogram::serialization::{Serializer as _, V2Serializer};
use kurabe_stats::Histogram;
use kurabe_stats::histogram::{CLAMP_NS, RELATIVE_ERROR};
use proptest::prelude::*;

fn of(latencies: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for &ns in latencies {
        histogram.record(ns);
    }
    histogram
}

fn merged(parts: &[&Histogram]) -> Histogram {
    let mut total = Histogram::new();
    for part in parts {
        total.merge(part);
    }
    total
}

/// Latencies of every magnitude, not only of the largest as a uniform draw would give.
fn latency() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(word, shift)| word >> shift)
}

fn latencies() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(latency(), 0..200)
}

proptest! {
    #[test]
    fn merging_is_recording_together_in_any_order(a in latencies(), b in latencies(), c in latencies()) {
        let (a_all, b_all, c_all) = (of(&a), of(&b), of(&c));
        let together = of(&[a, b, c].concat());
        prop_assert_eq!(&merged(&[&a_all, &b_all, &c_all]), &together);
        prop_assert_eq!(&merged(&[&c_all, &a_all, &b_all]), &together);
        prop_assert_eq!(&merged(&[&a_all, &merged(&[&b_all, &c_all])]), &together);
    }

    #[test]
    fn a_quantile_is_never_below_the_exact_one_and_at_most_the_stated_error_above(
        mut all in prop::collection::vec(latency().prop_map(|ns| ns.min(CLAMP_NS)), 1..200),
        percent in 0..=100_usize,
    ) {
        let found = of(&all).quantile(percent as f64 / 100.0).unwrap();
        all.sort_unstable();
        let rank = (percent * all.len()).div_ceil(100).max(1);
        let exact = all[rank - 1];
        prop_assert!(found >= exact, "{} below {}", found, exact);
        prop_assert!(found as f64 <= exact as f64 * (1.0 + RELATIVE_ERROR), "{} above {}", found, exact);
    }

    #[test]
    fn count_sum_and_ends_are_exact(all in prop::collection::vec(latency(), 1..200)) {
        let histogram = of(&all);
        prop_assert_eq!(histogram.count(), all.len() as u64);
        prop_assert_eq!(histogram.sum(), all.iter().map(|&ns| u128::from(ns)).sum::<u128>());
        prop_assert_eq!(histogram.min(), all.iter().copied().min());
        prop_assert_eq!(histogram.max(), all.iter().copied().max());
        prop_assert_eq!(histogram.quantile(0.0), histogram.min());
        prop_assert_eq!(histogram.quantile(1.0), histogram.max());
        prop_assert_eq!(histogram.buckets().map(|b| b.count).sum::<u64>(), histogram.count());
    }

    #[test]
    fn serialised_histogram_round_trips(all in latencies()) {
        let histogram = of(&all);
        let text = serde_json::to_string(&histogram).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Histogram>(&text).unwrap(), &histogram);
        // Also through a reader that buffers values, as tagged enums do.
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&serde_json::from_value::<Histogram>(value).unwrap(), &histogram);
    }

    #[test]
    fn a_cleared_histogram_is_a_new_one(all in latencies()) {
        let mut histogram = of(&all);
        histogram.clear();
        prop_assert_eq!(histogram, Histogram::new());
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        min in latency(), max in latency(), sum in any::<(u64, u64)>(), all in latencies(), at in any::<prop::sample::Index>(), to in any::<u8>(),
    ) {
        let mut hdr = of(&all).to_hdr().into_bytes();
        let at = at.index(hdr.len());
        hdr[at] = to & 0x7f;
        let hdr = String::from_utf8(hdr).unwrap();
        let text = serde_json::json!({ "min": min, "max": max, "sum": sum, "hdr": hdr }).to_string();
        let _ = serde_json::from_str::<Histogram>(&text);
    }
}

#[test]
fn empty_histogram_has_no_quantiles() {
    let histogram = Histogram::new();
    assert!(histogram.is_empty());
    assert_eq!((histogram.min(), histogram.max(), histogram.quantile(0.5)), (None, None, None));
    assert!(histogram.mean().is_none());
    assert_eq!(histogram.buckets().count(), 0);
}

#[test]
fn deviation_is_that_of_the_latencies() {
    let histogram = of(&[2, 4, 4, 4, 5, 5, 7, 9].map(|ms: u64| ms * 1_000_000));
    // The square root of 32 over 8, within the width of buckets.
    assert!((histogram.deviation() / 1e6 - 2.0).abs() < 0.03, "{}", histogram.deviation());
}

#[test]
fn percentiles_end_with_all_latencies_and_the_longest() {
    let histogram = of(&(1..=1_000).map(|us| us * 1_000).collect::<Vec<_>>());
    let steps: Vec<_> = histogram.percentiles().collect();
    assert!(steps.windows(2).all(|two| two[0].quantile <= two[1].quantile && two[0].value <= two[1].value));
    let last = steps.last().unwrap();
    assert_eq!((last.value, last.count), (1_000_000, 1_000));
    let half = steps.iter().find(|step| step.quantile >= 0.5).unwrap();
    assert!((495_000..=510_000).contains(&half.value), "{half:?}");
}

#[test]
fn ranks_do_not_slip_by_rounding() {
    // 0.07 · 100 is 7.000000000000001 in floating point; the seventh of 1…100 is 7.
    let histogram = of(&(1..=100).collect::<Vec<_>>());
    for percent in 1..=100 {
        assert_eq!(histogram.quantile(percent as f64 / 100.0), Some(percent));
    }
    assert_eq!(histogram.quantile(f64::NAN), None);
    assert_eq!((histogram.quantile(-1.0), histogram.quantile(2.0)), (Some(1), Some(100)));
}

#[test]
fn a_day_is_clamped_into_the_last_bucket_but_counted_and_kept_as_maximum() {
    let day = 86_400_000_000_000;
    let histogram = of(&[1_000, day, 2 * day]);
    assert_eq!(histogram.count(), 3);
    assert_eq!(histogram.max(), Some(2 * day));
    assert_eq!(histogram.quantile(0.5), Some(2 * day), "beyond the range only the maximum is known");
    assert_eq!(histogram.sum(), u128::from(3 * day) + 1_000);
}

#[test]
fn full_bucket_keeps_its_count_and_reads_back() {
    let mut histogram = of(&[50, 5_000]);
    for _ in 0..40 {
        histogram.merge(&histogram.clone());
    }
    assert!(histogram.buckets().all(|bucket| bucket.count == u64::from(u32::MAX)));
    assert_eq!((histogram.quantile(0.5), histogram.max()), (Some(50), Some(5_000)));
    let read: Histogram = serde_json::from_str(&serde_json::to_string(&histogram).unwrap()).unwrap();
    assert!(read.buckets().eq(histogram.buckets()));
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
}

#[test]
fn written_form_is_what_tools_of_hdrhistogram_read() {
    // "HISTFAAA" is the cookie of the compressed V2 format with the upper bytes of its length.
    let text = serde_json::to_string(&of(&[3, 3, 5, 1_000])).unwrap();
    assert!(text.starts_with(r#"{"min":3,"max":1000,"sum":[0,1011],"hdr":"HISTFAAA"#), "{text}");
}

#[test]
fn a_damaged_form_is_refused_with_the_reason() {
    let hdr = of(&[3, 5]).to_hdr();
    let empty = Histogram::new().to_hdr();
    let other = hdrhistogram::Histogram::<u32>::new_with_bounds(1, 1_000, 3).unwrap();
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&other, &mut bytes).unwrap();
    let other = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    for (text, reason) in [
        (r#"{"min":3,"max":5,"sum":[0,8],"hdr":"HISTFAAA"}"#.to_owned(), "V2 format"),
        (r#"{"min":3,"max":5,"sum":[0,8],"hdr":"%"}"#.to_owned(), "V2 format"),
        (format!(r#"{{"min":0,"max":0,"sum":[0,0],"hdr":"{other}"}}"#), "other buckets"),
        (format!(r#"{{"min":1,"max":0,"sum":[0,0],"hdr":"{empty}"}}"#), "summary contradicts"),
        (format!(r#"{{"min":0,"max":1,"sum":[0,0],"hdr":"{empty}"}}"#), "summary contradicts"),
        (format!(r#"{{"min":0,"max":0,"sum":[0,1],"hdr":"{empty}"}}"#), "summary contradicts"),
        (format!(r#"{{"min":3,"max":5,"sum":[0,9],"hdr":"{hdr}"}}"#), "sum contradicts"),
        (format!(r#"{{"min":4,"max":5,"sum":[0,8],"hdr":"{hdr}"}}"#), "minimum contradicts"),
        (format!(r#"{{"min":3,"max":9,"sum":[0,8],"hdr":"{hdr}"}}"#), "maximum contradicts"),
        (format!(r#"{{"min":3,"max":5,"sum":[0,7],"hdr":"{hdr}"}}"#), "sum contradicts"),
        (format!(r#"{{"min":3,"max":5,"sum":[0,8],"hdr":"{hdr}","more":1}}"#), "unknown field"),
        (format!(r#"{{"min":3,"max":5,"sum":8,"hdr":"{hdr}"}}"#), "invalid type"),
    ] {
        let error = serde_json::from_str::<Histogram>(&text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn mean_is_of_what_was_recorded_and_not_of_buckets() {
    let mut histogram = Histogram::new();
    histogram.record(1_000_003);
    histogram.record_many(5, 3);
    assert_eq!(histogram.mean(), Some((1_000_003.0 + 15.0) / 4.0));
    assert_eq!((histogram.sum(), histogram.count()), (1_000_018, 4));
    histogram.record_many(7, 0);
    assert_eq!((histogram.mean(), histogram.min()), (Some(250_004.5), Some(5)));
}

#[test]
fn latencies_from_a_limit_on_are_counted_with_its_bucket() {
    let mut histogram = Histogram::new();
    for ns in [10, 10, 500, 2_000_000] {
        histogram.record(ns);
    }
    let counts = [0, 10, 11, 500, 1_000, 2_000_000, 2_000_001, u64::MAX];
    assert_eq!(counts.map(|ns| histogram.count_from(ns)), [4, 4, 2, 2, 1, 1, 0, 0]);
    // Beyond the last bucket, which is that of all latencies beyond.
    let beyond = CLAMP_NS + 1_000_000_000_000;
    histogram.record(beyond);
    assert_eq!((histogram.count_from(beyond), histogram.count_from(beyond + 1)), (1, 0));
    let text = serde_json::to_string(&histogram).unwrap();
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
    assert_eq!(Histogram::new().count_from(0), 0);
}
