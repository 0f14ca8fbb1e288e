//! Planner statistics of tables: gathered after Kurabe loads one, and checked for the user's tables.

use super::dialect::Dialect;
use kurabe_core::facts::Setting;
use kurabe_core::units;

/// Differences up to this number of rows do not affect plans.
const FEW: u64 = 1_000;

impl Dialect {
    /// The setting that records how statistics of loaded data are gathered, if they are.
    pub fn statistics(&self) -> Option<Setting> {
        let how = self.analyse?;
        Some(Setting::new("planner statistics", format!("gathered of what kurabe loads ({how})")))
    }
}

/// Warns of a table whose statistics have `known` rows while it has at least `there`. `None` if the ratio is at most
/// `far`, by which the server's estimate may be too low. There is no warning if `known` is larger: `there` may be a
/// partial count.
pub fn outgrown(table: &str, known: u64, there: u64, far: u64, remedy: &str) -> Option<String> {
    (there > known.saturating_mul(far).saturating_add(FEW)).then(|| {
        format!(
            "table {table} had {} rows when it was last analysed and has at least {}: the planner may choose a worse \
             plan, or change it during the run; run {remedy} first",
            units::count(known),
            units::count(there)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_outdated_statistics_are_warned_about() {
        for (known, there) in [(0, 0), (0, 1_000), (50_000, 100_000), (33_000, 100_000), (5_000_000, 100_000)]
        {
            assert_eq!(outgrown("orders", known, there, 3, "ANALYZE orders"), None, "{known} {there}");
        }
        assert_eq!(outgrown("orders", 1_820, 20_000, 20, "ANALYZE orders"), None);
        let warning = outgrown("orders", 2, 100_000, 20, "ANALYZE orders").unwrap();
        assert!(warning.contains("run ANALYZE orders first") && warning.contains("100,000"), "{warning}");
    }
}
