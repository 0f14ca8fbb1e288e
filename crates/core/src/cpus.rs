//! Processors that a server is given: the axes that every loop has beside its own.

use crate::axis::{AxisInfo, AxisKind, AxisValue, Cell};
use crate::named::named;

/// The axis of the number of the server's processors. Without it, nothing is restricted.
pub const CPUS: AxisInfo = AxisInfo::new(
    "cpus",
    "processors given to a throwaway server; clients use the others",
    AxisKind::count(1, 4_096),
    &[],
);

/// The axis of how the server's threads use these processors.
pub const CPU_PLACEMENT: AxisInfo = AxisInfo::new(
    "cpu-placement",
    "with --cpus: where the server's threads run",
    AxisKind::choice(&[
        ("spread", "the scheduler places them on the server's processors"),
        ("pinned", "each is pinned to one of the server's processors, in turn"),
        ("shared", "as spread, but clients use all processors, also those of the server"),
    ]),
    &["spread"],
);

named! {
    /// How threads use the processors of a server.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Placement {
        /// The scheduler places the server's threads.
        #[default]
        Spread => "spread",
        /// Each thread of the server is pinned to one processor.
        Pinned => "pinned",
        /// The scheduler places the server's threads, and clients use all processors.
        Shared => "shared",
    }
    /// Its value of the axis.
    pub fn name;
}

/// The processors that a cell's server is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuAllotment {
    /// Their number.
    pub count: usize,
    /// How threads use them.
    pub placement: Placement,
}

impl CpuAllotment {
    /// The allotment of a cell; `None` if it has no such axis.
    pub fn of(cell: &Cell) -> Option<Self> {
        let Some(AxisValue::Number(count)) = cell.get(CPUS.name) else { return None };
        let word = cell.word(CPU_PLACEMENT.name).ok();
        let placement = Placement::ALL.into_iter().find(|one| word == Some(one.name()));
        Some(Self { count: *count as usize, placement: placement.unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allotment_is_read_from_axes() {
        let cell = |placement: &str| {
            Cell::new([
                (CPUS.name.to_owned(), CPUS.parse("4").unwrap()),
                (CPU_PLACEMENT.name.to_owned(), CPU_PLACEMENT.parse(placement).unwrap()),
            ])
        };
        let of = |placement| CpuAllotment::of(&cell(placement)).unwrap();
        assert_eq!(of("pinned"), CpuAllotment { count: 4, placement: Placement::Pinned });
        assert_eq!(of("spread").placement, Placement::Spread);
        assert_eq!(of("shared").placement, Placement::Shared);
        assert_eq!(CpuAllotment::of(&Cell::default()), None);
        assert!(CPUS.parse("0").is_err());
    }
}
