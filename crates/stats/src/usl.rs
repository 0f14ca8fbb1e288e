//! The Universal Scalability Law: throughput as a function of the number of processors.
//!
//! Gunther, "Guerrilla Capacity Planning", Springer 2007, chapters 4 to 6: X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)). λ is the
//! throughput of one processor, σ the share of work that processors wait for each other (contention), κ the cost of
//! keeping each pair of processors coherent.

/// The number of parameters.
const PARAMETERS: usize = 3;

/// The parameters of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// λ: the throughput with one processor.
    pub rate: f64,
    pub contention: f64,
    pub coherency: f64,
}

impl Usl {
    /// Fits the law to throughputs by number of processors. `None` with fewer than four different numbers, which would leave
    /// nothing that could contradict the three parameters, or with values that are not positive.
    ///
    /// The quotient N ÷ X is linear in (1, N − 1, N(N − 1)), and its parameters follow by least squares of relative
    /// deviations. Parameters may be negative: of a scaling better than linear, or by noise.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let mut counts: Vec<f64> = points.iter().map(|(count, _)| *count).collect();
        counts.sort_by(f64::total_cmp);
        counts.dedup();
        let valid = |(count, rate): &(f64, f64)| *count >= 1.0 && *rate > 0.0 && rate.is_finite();
        if counts.len() <= PARAMETERS || !points.iter().all(valid) {
            return None;
        }
        // The normal equations; each row is divided by N ÷ X.
        let mut sums = [[0.0; PARAMETERS + 1]; PARAMETERS];
        for &(n, rate) in points {
            let row = [1.0, n - 1.0, n * (n - 1.0)].map(|term| term * rate / n);
            for (sum, left) in sums.iter_mut().zip(row) {
                for (part, right) in sum.iter_mut().zip(row.into_iter().chain([1.0])) {
                    *part += left * right;
                }
            }
        }
        let [base, contention, coherency] = solve(sums)?;
        let law = Self { rate: 1.0 / base, contention: contention / base, coherency: coherency / base };
        (law.rate > 0.0 && law.rate.is_finite()).then_some(law)
    }

    /// The throughput with this number of processors.
    pub fn throughput(&self, count: f64) -> f64 {
        let pairs = count * (count - 1.0);
        self.rate * count / (1.0 + self.contention * (count - 1.0) + self.coherency * pairs)
    }
}

/// Gaussian elimination with partial pivoting; `None` if the equations are dependent.
fn solve(mut rows: [[f64; PARAMETERS + 1]; PARAMETERS]) -> Option<[f64; PARAMETERS]> {
    for column in 0..PARAMETERS {
        let pivot =
            (column..PARAMETERS).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        rows.swap(column, pivot);
        // Without a pivot, what follows is not finite.
        let first = rows[column];
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let factor = row[column] / first[column];
            for (part, of_first) in row.iter_mut().zip(first) {
                *part -= factor * of_first;
            }
        }
    }
    let mut found = [0.0; PARAMETERS];
    for (at, value) in found.iter_mut().enumerate() {
        *value = rows[at][PARAMETERS] / rows[at][at];
    }
    found.iter().all(|value| value.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parameters_are_recovered_from_exact_points(
            rate in 1.0..1e6_f64,
            contention in 0.0..0.5_f64,
            coherency in 0.0..0.01_f64,
        ) {
            let law = Usl { rate, contention, coherency };
            let points: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0].map(|n| (n, law.throughput(n))).to_vec();
            let found = Usl::fit(&points).unwrap();
            prop_assert!((found.rate / rate - 1.0).abs() < 1e-6, "{found:?}");
            prop_assert!((found.contention - contention).abs() < 1e-6, "{found:?}");
            prop_assert!((found.coherency - coherency).abs() < 1e-6, "{found:?}");
        }
    }

    #[test]
    fn linear_scaling_has_neither_contention_nor_coherency() {
        let found = Usl::fit(&[1.0, 2.0, 3.0, 4.0].map(|n| (n, 100.0 * n))).unwrap();
        assert!(found.contention.abs() < 1e-9 && found.coherency.abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn few_or_invalid_points_have_no_fit() {
        let three = [1.0, 2.0, 4.0].map(|n| (n, n));
        assert_eq!(Usl::fit(&three), None);
        assert_eq!(Usl::fit(&[three, three].concat()), None);
        assert_eq!(Usl::fit(&[(1.0, 1.0), (2.0, 0.0), (3.0, 1.0), (4.0, 1.0)]), None);
        assert_eq!(Usl::fit(&[]), None);
        // N ÷ X is 2N − 3: the law of a rate below 0.
        assert_eq!(Usl::fit(&[2.0, 3.0, 4.0, 5.0].map(|n| (n, n / (2.0 * n - 3.0)))), None);
    }
}
