//! The results that a finding refers to.

use super::INFO;
use kurabe_core::axis::AxisValue;
use kurabe_core::load::RATE;
use kurabe_core::metric::Better;
use kurabe_report::finding::{Estimate, Pair, Scope, Side};
use kurabe_report::summary::{CellResult, Decision, Status, Summary, TargetId, Verdict};

/// The points of a scope: each operation at each value of the chart axis.
pub fn points(scope: &Scope) -> Vec<(String, Option<AxisValue>)> {
    // Every experiment here has a chart axis; only a slope has no value of it.
    let mut xs: Vec<Option<AxisValue>> = scope.at.iter().cloned().map(Some).collect();
    if xs.is_empty() {
        xs.push(None);
    }
    scope.operations.iter().flat_map(|o| xs.iter().map(move |x| (o.clone(), x.clone()))).collect()
}

/// The cells of a target at the baseline of every axis except the given ones.
pub struct Figures<'a>(pub &'a Summary);

impl Figures<'_> {
    fn baseline(&self, axis: &str) -> AxisValue {
        self.0.spec.axes[axis][0].clone()
    }

    /// The chart axis: rates if several were given.
    pub fn chart(&self) -> &str {
        if self.0.spec.axes.get(RATE.name).is_some_and(|rates| rates.len() > 1) {
            RATE.name
        } else {
            "payload"
        }
    }

    /// The cell at this point; `axis` has this value, all others their baseline.
    pub fn cell(
        &self,
        target: &str,
        operation: &str,
        x: Option<&AxisValue>,
        axis: (&str, &str),
    ) -> &CellResult {
        let found = self.0.cells.iter().find(|cell| {
            let is = |(name, value): (&String, &AxisValue)| match x {
                None if name == self.chart() => true,
                Some(x) if name == self.chart() => value == x,
                _ if name == axis.0 => value.to_string() == axis.1,
                _ => *value == self.baseline(name),
            };
            cell.target.name() == target
                && cell.operation == operation
                && !cell.aa_control
                && cell.axes.values().iter().all(is)
        });
        found.unwrap_or_else(|| panic!("no cell of {target}, {operation}, {x:?}, {axis:?}"))
    }

    /// The two cells of a pair, and its verdict: `a` against `b`.
    pub fn pair(
        &self,
        pair: &Pair,
        target: Option<&TargetId>,
        point: &(String, Option<AxisValue>),
    ) -> Compared<'_> {
        let (operation, x) = point;
        let side = |side: &Side| match (target, side) {
            (None, Side::Target(at)) => self.cell(&self.0.targets[*at].name, operation, x.as_ref(), ("", "")),
            (Some(target), Side::Value(value)) => {
                self.cell(target.name(), operation, x.as_ref(), (&pair.axis, &value.to_string()))
            }
            other => panic!("{other:?} is no side of a comparison in one run"),
        };
        let (a, b) = (side(&pair.a), side(&pair.b));
        let position = |cell: &CellResult| self.0.cells.iter().position(|one| std::ptr::eq(one, cell));
        let verdict = self.0.verdicts.iter().find_map(|verdict| {
            let here = verdict.operation == *operation
                && verdict.pair.axis == pair.axis
                && verdict.pair.metric == pair.metric
                && verdict.target.as_ref() == target
                && verdict.at.get(self.chart()) == x.as_ref();
            let sides = (&verdict.pair.a, &verdict.pair.b);
            match sides {
                _ if !here => None,
                _ if sides == (&pair.a, &pair.b) => {
                    assert_eq!(verdict.cells, [position(a), position(b)]);
                    Some((verdict, true))
                }
                _ if sides == (&pair.b, &pair.a) => Some((verdict, false)),
                _ => None,
            }
        });
        let (verdict, forward) = verdict.unwrap_or_else(|| panic!("no verdict on {pair:?} at {point:?}"));
        Compared { a, b, verdict, forward }
    }
}

/// Two cells and the verdict on them.
pub struct Compared<'a> {
    pub a: &'a CellResult,
    pub b: &'a CellResult,
    pub verdict: &'a Verdict,
    pub forward: bool,
}

impl Compared<'_> {
    /// Whether a saturated client bounds the metric.
    pub fn is_timed(&self) -> bool {
        !INFO.metrics.iter().any(|metric| metric.name == self.verdict.pair.metric)
    }

    /// Whether `a` is significantly better than `b`, and the results allow it; returns the ratio with its interval.
    pub fn won(&self) -> Estimate {
        let wanted = if self.forward { Decision::Above } else { Decision::Below };
        assert_eq!(self.verdict.result, wanted, "{:?}", self.verdict);
        let timed = self.is_timed();
        for cell in [self.a, self.b] {
            assert_eq!(cell.status, Status::Ok);
            assert!(!cell.is_overloaded() && !cell.is_generator_late(), "{cell:?}");
        }
        assert!(self.verdict.target.is_some() || !timed || !self.b.is_lower_bound(), "{:?}", self.b);
        let ratio = self.verdict.ratio.unwrap();
        let (low, high) = ratio.ends().unwrap();
        let back = Estimate { value: 1.0 / ratio.value, low: Some(1.0 / high), high: Some(1.0 / low) };
        let ratio = if self.forward { ratio } else { back };
        assert!(ratio.low.unwrap() > 1.0, "an interval that excludes 1: {:?}", self.verdict);
        // The means of many rounds agree with the verdict; those of few noisy rounds may differ slightly.
        let metric = &self.verdict.pair.metric;
        let (a, b) = (self.a.metric(metric).unwrap().figure, self.b.metric(metric).unwrap().figure);
        let lower = INFO.metrics.iter().any(|known| known.name == metric && known.better == Better::Lower)
            || metric.ends_with("p99");
        let (most, least) = if lower { (b, a) } else { (a, b) };
        assert!(most.high.unwrap_or(most.value) >= least.low.unwrap_or(least.value), "{a:?} {b:?}");
        ratio
    }
}

/// The targets of a scope; one `None` if targets are compared.
pub fn targets(scope: &Scope) -> Vec<Option<&TargetId>> {
    if scope.targets.is_empty() { vec![None] } else { scope.targets.iter().map(Some).collect() }
}
