//! The families of attacks, one file each.

use crate::case::Case;

mod disk;
mod foreign;
mod fuzz;
mod hostile;
mod http;
mod kill;
mod liar;
mod records;
mod secrets;
mod signals;
mod tarpit;

/// A family of attacks.
pub struct Family {
    /// Its name, for `--only`.
    pub name: &'static str,
    /// The number of tries of all its cases together, with `--quick`.
    pub quick: usize,
    /// The number without `--quick`.
    pub full: usize,
    pub cases: fn() -> Vec<Case>,
}

pub const FAMILIES: &[Family] = &[
    Family { name: "liar", quick: 77, full: 2_464, cases: liar::cases },
    Family { name: "tarpit", quick: 24, full: 240, cases: tarpit::cases },
    Family { name: "fuzz", quick: 35, full: 780, cases: fuzz::cases },
    Family { name: "kill", quick: 10, full: 100, cases: kill::cases },
    Family { name: "disk", quick: 8, full: 60, cases: disk::cases },
    Family { name: "signals", quick: 14, full: 84, cases: signals::cases },
    Family { name: "secrets", quick: 26, full: 130, cases: secrets::cases },
    Family { name: "foreign", quick: 34, full: 170, cases: foreign::cases },
    Family { name: "http", quick: 28, full: 420, cases: http::cases },
    Family { name: "records", quick: 60, full: 660, cases: records::cases },
];
