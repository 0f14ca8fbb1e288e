//! What the results must be for each kind of finding.

use super::figures::{Compared, Figures, points, targets};
use kurabe_core::load::RATE;
use kurabe_core::metric::THROUGHPUT;
use kurabe_report::attribution::Confidence;
use kurabe_report::finding::{Bottlenecks, Comparison, Finding, Interval, Pair, Rates, Scope, Values, Why};
use kurabe_report::summary::{CellResult, Decision, Status};

/// Asserts that the results support the finding.
#[allow(clippy::too_many_lines, reason = "one check for each kind, in one list")]
pub fn check(figures: &Figures<'_>, finding: &Finding) {
    let summary = figures.0;
    let each = |scope: &Scope, pair: &Pair, check: &mut dyn FnMut(Compared<'_>)| {
        let mut count = 0;
        for target in targets(scope) {
            for point in points(scope) {
                check(figures.pair(pair, target, &point));
                count += 1;
            }
        }
        count
    };
    match finding {
        Finding::Comparison(Comparison::Better { scope, pair, measured, lower_bound, limit, .. }) => {
            let (mut bounded, mut said) = (false, measured.iter());
            each(scope, pair, &mut |compared| {
                assert_eq!(said.next().map(|said| said.ratio.value), Some(compared.won().value));
                bounded |= pair.axis == "target" && compared.is_timed() && compared.a.is_lower_bound();
                if let Some(limit) = limit {
                    let found = compared.b.attribution.as_ref().unwrap();
                    assert_eq!(found.bottleneck, limit.bottleneck);
                    assert!(limit.confidence == Confidence::Low || found.confidence == Confidence::High);
                }
            });
            assert_eq!((said.next(), bounded), (None, *lower_bound));
        }
        Finding::Comparison(Comparison::NoDifference { scope, pair, comparisons, margin, span }) => {
            let count = each(scope, pair, &mut |compared| {
                let (low, high) = compared.verdict.ratio.unwrap().ends().unwrap();
                let Interval { low: least, high: most } = span.unwrap();
                let [low, high] = if compared.forward { [low, high] } else { [1.0 / high, 1.0 / low] };
                assert!(low >= 1.0 / (1.0 + margin) - 1e-9 && high <= 1.0 + margin + 1e-9);
                assert!(least <= low + 1e-9 && most >= high - 1e-9, "{span:?} {low} {high}");
                assert!(
                    pair.axis != "target"
                        || !compared.is_timed()
                        || !compared.a.is_lower_bound() && !compared.b.is_lower_bound()
                );
                assert!(!compared.a.is_overloaded() && !compared.b.is_overloaded());
            });
            assert_eq!(count, *comparisons);
        }
        Finding::Comparison(Comparison::Undecided { scope, pair, measured, .. }) => {
            let mut said = measured.iter();
            each(scope, pair, &mut |compared| {
                assert_eq!(compared.verdict.result, Decision::Undecided);
                let said = said.next().unwrap();
                assert_eq!(Some(said.ratio), compared.verdict.ratio);
            });
            assert_eq!(said.next(), None);
        }
        Finding::Comparison(Comparison::NotComparable { scope, pair, comparisons, why }) => {
            let count = each(scope, pair, &mut |compared| {
                assert_eq!(
                    (compared.verdict.result, compared.verdict.why.as_ref()),
                    (Decision::NotTestable, Some(why))
                );
                let some = |holds: fn(&CellResult) -> bool| holds(compared.a) || holds(compared.b);
                match why {
                    Why::ClientBound { .. } => assert!(some(CellResult::is_lower_bound)),
                    Why::Overloaded { .. } => assert!(some(CellResult::is_overloaded)),
                    Why::GeneratorLate { .. } => assert!(some(CellResult::is_generator_late)),
                    Why::NoCommonRound => {}
                    Why::NotPositive => assert_ne!(pair.metric, THROUGHPUT.name),
                    _ => assert!(some(|cell| cell.status != Status::Ok)),
                }
            });
            assert_eq!(count, *comparisons);
        }
        Finding::Rates(Rates::Overloaded { scope, .. }) => {
            for cell in scope_cells(figures, scope) {
                assert!(cell.is_overloaded(), "{cell:?}");
            }
        }
        Finding::Rates(Rates::GeneratorLate { scope, lag_us, p99_us }) => {
            assert!(*lag_us > 0.1 * p99_us);
            assert!(scope_cells(figures, scope).iter().all(|cell| cell.is_generator_late()));
        }
        Finding::Rates(Rates::ResponseTimes { scope, points, bend }) => {
            let cells = scope_cells(figures, scope);
            assert!(cells.iter().all(|cell| !cell.is_overloaded() && !cell.is_generator_late()));
            assert_eq!(cells.len(), points.len());
            if let Some(bend) = bend {
                assert!(points[0].rate < *bend && points.iter().any(|point| point.rate == *bend));
            }
        }
        Finding::Values(Values::MetricValues { scope, name, points, .. }) => {
            for point in points {
                let cell = summary.cells.iter().find(|cell| {
                    let here = point.axes.values().iter().all(|(axis, at)| cell.axes.get(axis) == Some(at));
                    here && cell.target == scope.targets[0]
                        && scope.operations.contains(&cell.operation)
                        && cell.metric(name).is_some()
                });
                let found = cell.unwrap().metric(name).unwrap().figure;
                assert_eq!(point.figure, found);
                assert!(found.low.is_none_or(|low| low <= found.value && found.value <= found.high.unwrap()));
            }
        }
        Finding::Bottlenecks(Bottlenecks::Bottleneck { scope, exact, bottleneck, cells, .. }) => {
            let with = |cell: &&CellResult| {
                cell.target == scope.targets[0]
                    && cell.operation == scope.operations[0]
                    && !cell.aa_control
                    && (scope.at.is_empty()
                        || cell.axes.get(figures.chart()).is_some_and(|x| scope.at.contains(x)))
                    && scope.axes.values().iter().all(|(axis, value)| cell.axes.get(axis) == Some(value))
            };
            let here: Vec<&CellResult> = summary.cells.iter().filter(with).collect();
            let found = |cell: &&&CellResult| {
                cell.attribution.as_ref().is_some_and(|found| found.bottleneck == *bottleneck)
            };
            assert_eq!(here.iter().filter(found).count(), *cells as usize);
            assert!(!exact || here.len() == *cells as usize, "{finding:?}");
        }
        Finding::Values(Values::Cost { pair, cost_us, factor, scope }) => {
            let target = scope.targets.first();
            let point = &points(scope)[0];
            let pair = &Pair { metric: THROUGHPUT.name.to_owned(), ..pair.clone() };
            let compared = figures.pair(pair, target, point);
            assert!(matches!(compared.verdict.result, Decision::Above | Decision::Below));
            assert!(cost_us.low.unwrap() <= cost_us.value && cost_us.value <= cost_us.high.unwrap());
            assert_eq!(cost_us.value > 0.0, factor.low.unwrap() > 1.0);
        }
        _ => {}
    }
}

/// The cells of a scope at given rates.
fn scope_cells<'a>(figures: &'a Figures<'_>, scope: &Scope) -> Vec<&'a CellResult> {
    let of = |cell: &&CellResult| {
        cell.target == scope.targets[0]
            && cell.operation == scope.operations[0]
            && !cell.aa_control
            && cell.axes.get(RATE.name).is_some_and(|rate| scope.at.contains(rate))
            && scope.axes.values().iter().all(|(axis, value)| cell.axes.get(axis) == Some(value))
    };
    figures.0.cells.iter().filter(of).collect()
}
