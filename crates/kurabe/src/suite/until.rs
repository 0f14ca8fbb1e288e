//! `--until conclusive` and its limits.

use super::Request;
use kurabe_core::run::{DEFAULT_MARGIN, Until};
use kurabe_core::{Error, Result};

/// The default maximum number of rounds.
const MAX_ROUNDS: u32 = 100;

impl Request {
    /// Until when rounds are added, if that was requested.
    pub(super) fn until(&self) -> Result<Option<Until>> {
        match self.until.as_deref() {
            Some("conclusive") => Ok(Some(Until {
                margin: self.margin.unwrap_or(DEFAULT_MARGIN),
                max_rounds: self.max_rounds.map_or(MAX_ROUNDS, |n| n.min(100_000) as u32),
                budget_ns: self.budget.map(|budget| budget.as_nanos() as u64),
            })),
            Some(other) => {
                Err(Error::usage(format!("--until: unknown value '{other}'"))
                    .hint("write --until conclusive"))
            }
            None if self.margin.is_some() || self.max_rounds.is_some() => {
                Err(Error::usage("--margin and --max-rounds require --until").hint("add --until conclusive"))
            }
            None => Ok(None),
        }
    }
}

/// Reads `5%`, `5 %`, `5` or `0.05` as 0.05. A number without a unit is in per cent from 1 on, as `--budget 5` is in
/// seconds.
pub(crate) fn percentage(text: &str) -> Result<f64> {
    let number = text.trim().strip_suffix('%').map_or(text, str::trim).trim();
    let in_percent = text.contains('%');
    match number
        .parse::<f64>()
        .map(|number| if in_percent || number >= 1.0 { number / 100.0 } else { number })
    {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err(Error::usage(format!("'{text}' is not a margin")).hint("from 0.1% to 100%, such as 5%")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_are_shares_or_percentages() {
        for text in ["5%", "5 %", "5", "0.05", " 5.0% "] {
            assert_eq!(percentage(text), Ok(0.05), "{text}");
        }
        assert_eq!((percentage("1"), percentage("0.5%")), (Ok(0.01), Ok(0.005)));
        for text in ["", "5 percent", "-1%", "-5", "0", "101%", "101", "NaN", "inf%"] {
            assert!(percentage(text).is_err(), "{text}");
        }
    }
}
