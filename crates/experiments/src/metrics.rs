//! Short forms of metrics that several experiments declare.

use crate::prelude::*;

/// A time, of which less is better.
pub(crate) const fn time(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Nanoseconds, Better::Lower, about)
}

/// A number that is shown, and not compared.
pub(crate) const fn count(name: &'static str, about: &'static str) -> Metric {
    Metric::new(name, Unit::Count, Better::Neither, about)
}
