//! The requests of one client: a pure function of its seed, so that the expected data are known after a trial.
//!
//! A request changes one of the client's own users (users are assigned to clients in turn), and changes each of them
//! once before any twice. A request that only logs in draws any user. So all users are equally likely to be changed,
//! and the last version of each is known exactly for any number of clients.

use crate::prelude::*;
use kurabe_core::planned::share;
use kurabe_stats::Permutation;
use std::fmt::Write as _;

/// Of this many successive requests, one changes the user.
pub(super) const CHANGES: u64 = 20;
/// One request of this many searches the postal codes.
const SEARCHES: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Draw {
    /// The number of its line in the log, from 1.
    pub(super) line: u64,
    /// The user that logs in, from 1.
    pub(super) user: u64,
    /// The user's new version, if the request changes it.
    pub(super) version: Option<u64>,
    /// The position of the town whose prefix is searched, if any.
    pub(super) town: Option<u64>,
}

#[derive(Clone, Debug)]
pub(super) struct Draws {
    rng: Rng,
    client: Client,
    users: u64,
    towns: u64,
    /// The order in which the client's own users are changed.
    order: Permutation,
    drawn: u64,
    /// The position, within the current [`CHANGES`] requests, of the one that changes a user.
    change: u64,
}

impl Draws {
    pub(super) fn new(client: Client, users: u64, towns: u64) -> Self {
        let order = Permutation::new(client.seed, share(users, client.index, client.count).max(1));
        let rng = Rng::new(mix(client.seed, 0x7765_6261));
        Self { rng, client, users, towns, order, drawn: 0, change: 0 }
    }

    pub(super) fn next(&mut self) -> Draw {
        let (index, count) = (self.client.index as u64, self.client.count as u64);
        let line = index + 1 + self.drawn * count;
        let (block, place) = (self.drawn / CHANGES, self.drawn % CHANGES);
        self.drawn += 1;
        if place == 0 {
            self.change = self.rng.below(CHANGES);
        }
        let changes = place == self.change;
        let searches = self.rng.below(SEARCHES) == 0;
        let user =
            if changes { 1 + index + count * self.order.at(block) } else { 1 + self.rng.below(self.users) };
        let town = searches.then(|| self.rng.below(self.towns));
        Draw { line, user, version: changes.then_some(self.client.base_version() + self.drawn), town }
    }
}

/// The origin of a request in the log: an address of the private network 10.0.0.0/8.
pub(super) fn address(seed: u64, line: u64, out: &mut String) {
    let word = mix(seed ^ 0x6970, line);
    out.clear();
    // Writing to a String cannot fail.
    let _ = write!(out, "10.{}.{}.{}", word as u8, (word >> 8) as u8, (word >> 16) as u8);
}

/// The time of a log line: a millisecond after the previous line, in microseconds since 1970 UTC.
pub(super) fn time(line: u64) -> i64 {
    const BASE: i64 = 1_356_998_400_000_000;
    BASE + (line % 1_000_000_000_000) as i64 * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn draws(index: usize, count: usize) -> Draws {
        Draws::new(Client { index, count, seed: 5 + index as u64, trial: 1 }, 103, 50)
    }

    #[test]
    fn clients_change_disjoint_users() {
        let mut lines = HashSet::new();
        let mut users = HashSet::new();
        for index in 0..7 {
            let mut draws = draws(index, 7);
            for _ in 0..3_000 {
                let draw = draws.next();
                assert!(lines.insert(draw.line));
                assert!((1..=103).contains(&draw.user) && draw.town.is_none_or(|town| town < 50));
                assert!(draw.version.is_none() || (draw.user - 1) % 7 == index as u64);
                users.insert(draw.user);
            }
        }
        assert_eq!((users.len(), lines.len()), (103, 21_000));
        assert_eq!(lines.iter().max(), Some(&21_000));
    }

    #[test]
    fn one_in_20_requests_changes_and_one_in_10_searches() {
        let mut draws = draws(0, 1);
        let all: Vec<Draw> = (0..100_000).map(|_| draws.next()).collect();
        let changes = all.iter().filter(|draw| draw.version.is_some()).count();
        let searches = all.iter().filter(|draw| draw.town.is_some()).count();
        // Within five standard deviations.
        assert!(changes == 5_000 && searches.abs_diff(10_000) < 475, "{changes} {searches}");
        let versions: Vec<u64> = all.iter().filter_map(|draw| draw.version).collect();
        assert!(versions.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn client_changes_each_of_its_users_once_before_any_twice() {
        for index in 0..7 {
            let mut draws = draws(index, 7);
            let own = share(103, index, 7);
            for _ in 0..2 {
                let requests: Vec<Draw> = (0..own * CHANGES).map(|_| draws.next()).collect();
                let changed = requests.iter().filter(|draw| draw.version.is_some()).map(|draw| draw.user);
                assert_eq!(changed.collect::<HashSet<_>>().len() as u64, own);
            }
        }
    }

    #[test]
    fn same_seed_draws_same_requests() {
        let (mut a, mut b) = (draws(3, 7), draws(3, 7));
        assert!((0..1_000).all(|_| a.next() == b.next()));
    }
}
