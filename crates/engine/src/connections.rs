//! The cost of a client's connections: sums over the measured transactions that opened or obtained one.

use kurabe_core::driver::ConnectTimes;
use kurabe_core::metric::{AUTHENTICATE, CLOSE, CONNECT, MetricValue, REACH, SET_UP, TLS, WAIT};
use std::time::Duration;

/// A count and a total time.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    times: u64,
    took: Duration,
}

impl Sum {
    fn add(&mut self, took: Duration) {
        self.times += 1;
        self.took += took;
    }

    fn merge(&mut self, other: Self) {
        self.times += other.times;
        self.took += other.took;
    }
}

/// The costs of connections, each part as far as it was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Connections {
    connect: Sum,
    reach: Sum,
    tls: Sum,
    authenticate: Sum,
    set_up: Sum,
    close: Sum,
    wait: Sum,
}

impl Connections {
    /// Adds a new connection that was ready after this time, with its phases if the driver measures them.
    pub(crate) fn opened(&mut self, took: Duration, parts: Option<ConnectTimes>) {
        self.connect.add(took);
        if let Some(parts) = parts {
            self.reach.add(parts.reach);
            self.authenticate.add(parts.authenticate);
            self.set_up.add(parts.set_up);
            if let Some(tls) = parts.tls {
                self.tls.add(tls);
            }
        }
    }

    /// Adds a closed connection.
    pub(crate) fn closed(&mut self, took: Duration) {
        self.close.add(took);
    }

    /// Adds a wait for the pool.
    pub(crate) fn waited(&mut self, took: Duration) {
        self.wait.add(took);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.connect.merge(other.connect);
        self.reach.merge(other.reach);
        self.tls.merge(other.tls);
        self.authenticate.merge(other.authenticate);
        self.set_up.merge(other.set_up);
        self.close.merge(other.close);
        self.wait.merge(other.wait);
    }

    /// The means of the measured values.
    pub(crate) fn metrics(&self) -> Vec<MetricValue> {
        [
            (CONNECT, self.connect),
            (REACH, self.reach),
            (TLS, self.tls),
            (AUTHENTICATE, self.authenticate),
            (SET_UP, self.set_up),
            (CLOSE, self.close),
            (WAIT, self.wait),
        ]
        .into_iter()
        .filter(|(_, sum)| sum.times > 0)
        .map(|(metric, sum)| metric.value(sum.took.as_nanos() as f64 / sum.times as f64))
        .collect()
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
        let parts = ConnectTimes { reach: ms(1), tls: None, authenticate: ms(3), set_up: ms(2) };
        let mut two = Connections::default();
        two.opened(ms(20), Some(parts));
        two.closed(ms(1));
        one.merge(&two);
        let found: Vec<(String, f64)> =
            one.metrics().into_iter().map(|metric| (metric.name, metric.value / 1e6)).collect();
        let expected = [("connect", 15.0), ("reach", 1.0), ("auth", 3.0), ("set-up", 2.0), ("close", 1.0)];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
