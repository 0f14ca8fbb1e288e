//! What a planner knows of a table: gathered after Kurabe has loaded one, and looked at where a table is the user's.

use super::dialect::Dialect;
use kurabe_core::facts::Setting;
use kurabe_core::units;

/// Differences within so many rows change no plan that matters.
const FEW: u64 = 1_000;

impl Dialect {
    /// That statistics are gathered of what is loaded, as a run records it among the settings that decide figures.
    pub fn statistics(&self) -> Option<Setting> {
        let how = self.analyse?;
        Some(Setting::new("planner statistics", format!("gathered of what kurabe loads ({how})")))
    }
}

/// What to say of a table of which the planner knows `known` rows where there are `there` or more; `None` where that is
/// about right: within `far` times, by which an estimate from the server's sample may be too low. That it knows of more is
/// not said: rows were only counted up to a point, or not at all.
pub fn outgrown(table: &str, known: u64, there: u64, far: u64, remedy: &str) -> Option<String> {
    (there > known.saturating_mul(far).saturating_add(FEW)).then(|| {
        format!(
            "table {table} had {} rows when it was last analysed and has at least {}: the planner may choose another way than it \
             would, or change its mind in the middle of the run; run {remedy} first",
            units::count(known),
            units::count(there)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_table_that_has_outgrown_what_is_known_of_it_is_told() {
        for (known, there) in [(0, 0), (0, 1_000), (50_000, 100_000), (33_000, 100_000), (5_000_000, 100_000)]
        {
            assert_eq!(outgrown("orders", known, there, 3, "ANALYZE orders"), None, "{known} {there}");
        }
        assert_eq!(outgrown("orders", 1_820, 20_000, 20, "ANALYZE orders"), None);
        let told = outgrown("orders", 2, 100_000, 20, "ANALYZE orders").unwrap();
        assert!(told.contains("run ANALYZE orders first") && told.contains("100,000"), "{told}");
    }
}
