//! The histogram against the sorted latencies themselves.

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
    fn what_is_written_reads_back_equal(all in latencies()) {
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
    fn no_text_makes_the_reader_panic_or_accept_a_contradiction(
        layout in 0..3_u32, min in latency(), max in latency(), sum in any::<(u64, u64)>(),
        buckets in prop::collection::vec((0..5_000_u32, latency()), 0..6),
    ) {
        let text = serde_json::json!({
            "layout": layout, "min": min, "max": max, "sum": sum, "buckets": buckets,
        }).to_string();
        if let Ok(histogram) = serde_json::from_str::<Histogram>(&text) {
            prop_assert_eq!(serde_json::to_string(&histogram).unwrap().len(), text.len());
        }
    }
}

#[test]
fn an_empty_histogram_has_no_figures() {
    let histogram = Histogram::new();
    assert!(histogram.is_empty());
    assert_eq!((histogram.min(), histogram.max(), histogram.quantile(0.5)), (None, None, None));
    assert!(histogram.mean().is_none());
    assert_eq!(histogram.buckets().count(), 0);
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
fn a_bucket_counts_past_32_bits() {
    let mut histogram = of(&[50, 5_000]);
    for _ in 0..40 {
        histogram.merge(&histogram.clone());
    }
    assert_eq!(histogram.count(), 2 << 40);
    assert!(histogram.buckets().all(|bucket| bucket.count == 1 << 40));
    assert_eq!(histogram.quantile(0.5), Some(50));
    let text = serde_json::to_string(&histogram).unwrap();
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);

    // One below the edge, then over it by recording.
    let edge = u64::from(u32::MAX);
    let text = format!(r#"{{"layout":1,"min":1,"max":1,"sum":[0,{edge}],"buckets":[[1,{edge}]]}}"#);
    let mut histogram: Histogram = serde_json::from_str(&text).unwrap();
    histogram.record(1);
    histogram.record(1);
    assert_eq!(histogram.buckets().next().unwrap().count, edge + 2);
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
}

#[test]
fn the_written_form_is_sparse_and_stays_what_it_was() {
    let text = serde_json::to_string(&of(&[3, 3, 5, 1_000])).unwrap();
    assert_eq!(text, r#"{"layout":1,"min":3,"max":1000,"sum":[0,1011],"buckets":[[3,2],[2,1],[447,1]]}"#);
    let empty = serde_json::to_string(&Histogram::new()).unwrap();
    assert_eq!(empty, r#"{"layout":1,"min":0,"max":0,"sum":[0,0],"buckets":[]}"#);
}

#[test]
fn a_damaged_form_is_refused_with_the_reason() {
    for (text, reason) in [
        (r#"{"layout":2,"min":0,"max":0,"sum":[0,0],"buckets":[]}"#, "layout 2"),
        (r#"{"layout":1,"min":1,"max":0,"sum":[0,0],"buckets":[]}"#, "summary contradicts"),
        (r#"{"layout":1,"min":3,"max":3,"sum":[0,3],"buckets":[[3,0]]}"#, "empty bucket"),
        (r#"{"layout":1,"min":3,"max":3,"sum":[0,6],"buckets":[[3,1],[0,1]]}"#, "out of order"),
        (r#"{"layout":1,"min":3,"max":3,"sum":[0,3],"buckets":[[99999,1]]}"#, "out of range"),
        (r#"{"layout":1,"min":4,"max":3,"sum":[0,3],"buckets":[[3,1]]}"#, "minimum contradicts"),
        (r#"{"layout":1,"min":3,"max":9,"sum":[0,3],"buckets":[[3,1]]}"#, "maximum contradicts"),
        (r#"{"layout":1,"min":1000,"max":1001,"sum":[0,1000],"buckets":[[452,1]]}"#, "maximum contradicts"),
        (r#"{"layout":1,"min":3,"max":5,"sum":[0,4],"buckets":[[3,1],[2,1]]}"#, "sum contradicts"),
        (
            r#"{"layout":1,"min":3,"max":5,"sum":[0,8],"buckets":[[3,18446744073709551615],[2,1]]}"#,
            "counts overflow",
        ),
        (r#"{"layout":1,"min":3,"max":3,"sum":[0,3],"buckets":[[3,1]],"more":1}"#, "unknown field"),
        (r#"{"layout":1,"min":3,"max":3,"sum":3,"buckets":[[3,1]]}"#, "invalid type"),
    ] {
        let error = serde_json::from_str::<Histogram>(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
