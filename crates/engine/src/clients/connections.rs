//! The cost of a client's connections: sums over the measured transactions that opened or obtained one.

use kurabe_core::driver::ConnectTimes;
use kurabe_core::metric::{
    AUTHENTICATE, CLOSE, CONNECT, CONNECT_ROUND_TRIPS, Metric, MetricValue, REACH, SET_UP, TLS, WAIT,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A count and a total, in nanoseconds unless it is of round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Sum {
    times: u64,
    total: u64,
}

impl Sum {
    fn add(&mut self, took: Duration) {
        self.add_number(took.as_nanos() as u64);
    }

    fn add_number(&mut self, number: u64) {
        self.times += 1;
        self.total += number;
    }
}

/// What is measured of connections.
const PARTS: [Metric; 8] = [CONNECT, REACH, TLS, AUTHENTICATE, SET_UP, CONNECT_ROUND_TRIPS, CLOSE, WAIT];

/// The costs of connections: of each of [`PARTS`], as far as it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Connections([Sum; PARTS.len()]);

impl Connections {
    /// Adds a new connection that was ready after this time, with its phases if the driver measures them.
    pub(crate) fn opened(&mut self, took: Duration, parts: Option<ConnectTimes>) {
        let [connect, reach, tls, authenticate, set_up, round_trips, ..] = &mut self.0;
        connect.add(took);
        if let Some(parts) = parts {
            reach.add(parts.reach);
            authenticate.add(parts.authenticate);
            set_up.add(parts.set_up);
            round_trips.add_number(parts.round_trips);
            if let Some(time) = parts.tls {
                tls.add(time);
            }
        }
    }

    /// Adds a closed connection.
    pub(crate) fn closed(&mut self, took: Duration) {
        let [.., close, _] = &mut self.0;
        close.add(took);
    }

    /// Adds a wait for the pool.
    pub(crate) fn waited(&mut self, took: Duration) {
        let [.., wait] = &mut self.0;
        wait.add(took);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, other) in self.0.iter_mut().zip(&other.0) {
            sum.times += other.times;
            sum.total += other.total;
        }
    }

    /// The means of the measured values.
    pub(crate) fn metrics(&self) -> Vec<MetricValue> {
        let measured = PARTS.iter().zip(&self.0).filter(|(_, sum)| sum.times > 0);
        measured.map(|(part, sum)| part.value(sum.total as f64 / sum.times as f64)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_is_mean_of_measured_values_and_absent_without_any() {
        let ms = Duration::from_millis;
        let mut one = Connections::default();
        assert_eq!(one.metrics(), []);
        one.opened(ms(10), None);
        let parts = ConnectTimes {
            reach: ms(1),
            tls: None,
            authenticate: ms(3),
            set_up: ms(2),
            round_trips: 4,
            login: "",
        };
        let mut two = Connections::default();
        two.opened(ms(20), Some(parts));
        two.closed(ms(1));
        one.merge(&two);
        let found: Vec<(String, f64)> =
            one.metrics().into_iter().map(|metric| (metric.name, metric.value)).collect();
        let expected = [
            ("connect", 15e6),
            ("reach", 1e6),
            ("auth", 3e6),
            ("set-up", 2e6),
            ("connect round trips", 4.0),
            ("close", 1e6),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
