//! The members that answer reads (`readPreference`), over a second connection of each session. Sessions take them in turn.
//! Source: <https://www.mongodb.com/docs/manual/core/read-preference-mechanics/>.

use super::client::Link;
use super::concerns::{Mode, ReadPreference};
use super::hello::Hello;
use super::shared::{Shared, places};
use crate::prelude::*;
use crate::wire::Place;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How much slower than the fastest a member may answer to be chosen (`localThresholdMS`).
const THRESHOLD: Duration = Duration::from_millis(15);
/// How often members learn of each other's state, in milliseconds (`heartbeatFrequencyMS`).
const HEARTBEAT: i64 = 10_000;

/// A member, and what it says of itself.
struct Member {
    place: Place,
    hello: Hello,
    took: Duration,
    /// When it said that, in milliseconds since 1970.
    at: i64,
}

impl Shared {
    /// Opens the connection for the reads of a session, whose primary is `link`; `None` if it answers them.
    pub(super) fn connect_reader(
        self: &Arc<Self>,
        link: &Link,
        options: &ConnectOptions,
    ) -> Result<Option<Link>> {
        let config = &self.config;
        let Some(preference) = config.preference.as_ref().filter(|_| !config.is_direct) else {
            return Ok(None);
        };
        if link.hello.set.is_none() {
            // A single server, or a `mongos`, which is told the preference with each read.
            return Ok(None);
        }
        let known = self.readers.allowed.lock().clone();
        let allowed = if let Some(allowed) = known {
            allowed
        } else {
            let asked: Arc<[Place]> = ask(self, link, preference, options)?.into();
            Arc::clone(self.readers.allowed.lock().insert(asked))
        };
        let turn = self.readers.next.fetch_add(1, Ordering::Relaxed);
        let Some(place) = allowed.get(turn % allowed.len().max(1)) else {
            let message = format!("no member of the replica set fits readPreference={}", preference.name());
            return Err(Error::new(ErrorKind::Unreachable, message)
                .hint("are there secondaries with these tags, and do they keep up?"));
        };
        let mut reader = self.open_reader(place, options)?;
        if reader.hello.is_writable {
            // The primary itself.
            self.keep_session(&mut reader);
            return Ok(None);
        }
        Ok(Some(reader))
    }
}

/// Asks all members.
fn ask(
    shared: &Arc<Shared>,
    link: &Link,
    preference: &ReadPreference,
    options: &ConnectOptions,
) -> Result<Vec<Place>> {
    let mut members = Vec::new();
    for place in places(&link.hello) {
        // One that cannot be reached answers no reads.
        let Ok(mut member) = shared.open_reader(&place, options) else { continue };
        let (began, at) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH));
        let hello = Hello::of(member.administer(|out| {
            out.int("hello", 1);
        })?);
        let at = at.map_or(0, |since| since.as_millis() as i64);
        members.push(Member { place, hello, took: began.elapsed(), at });
        shared.keep_session(&mut member);
    }
    Ok(allowed(members, preference))
}

fn allowed(mut members: Vec<Member>, preference: &ReadPreference) -> Vec<Place> {
    members.retain(|member| member.hello.is_writable || member.hello.is_secondary);
    let has_primary = members.iter().any(|member| member.hello.is_writable);
    let written = |member: &Member| member.hello.last_write.map(|write| (member.at - write, write));
    let primary = members.iter().find(|member| member.hello.is_writable).and_then(written);
    let newest = members.iter().filter_map(written).map(|(_, write)| write).max();
    let lags = |member: &Member| {
        let (Some(most), Some((behind, write))) = (preference.staleness, written(member)) else {
            return false;
        };
        let lag = match (primary, newest) {
            (Some((primary, _)), _) => behind - primary,
            (None, Some(newest)) => newest - write,
            (None, None) => 0,
        };
        lag + HEARTBEAT > most as i64 * 1_000
    };
    let fits = |member: &Member| preference.tags.iter().all(|tag| member.hello.tags.contains(tag));
    let secondaries = |members: &mut Vec<Member>| {
        members.retain(|member| member.hello.is_secondary && fits(member) && !lags(member));
    };
    match preference.mode {
        Mode::Primary => members.retain(|member| member.hello.is_writable),
        Mode::PrimaryPreferred if has_primary => members.retain(|member| member.hello.is_writable),
        Mode::Secondary | Mode::PrimaryPreferred => secondaries(&mut members),
        Mode::SecondaryPreferred => {
            let any = members.iter().any(|member| member.hello.is_secondary && fits(member) && !lags(member));
            members.retain(|member| {
                if any {
                    member.hello.is_secondary && fits(member) && !lags(member)
                } else {
                    member.hello.is_writable
                }
            });
        }
        Mode::Nearest => members.retain(|member| fits(member) && (member.hello.is_writable || !lags(member))),
    }
    let fastest = members.iter().map(|member| member.took).min().unwrap_or_default();
    members.retain(|member| member.took <= fastest + THRESHOLD);
    members.into_iter().map(|member| member.place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, is_writable: bool, tags: &[(&str, &str)], lag: i64, took: u64) -> Member {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let hello = Hello {
            is_writable,
            is_secondary: !is_writable,
            tags: tags.iter().map(owned).collect(),
            last_write: Some(1_000_000 - lag),
            ..Hello::default()
        };
        let place = Place::Tcp { host: name.to_owned(), port: 1 };
        Member { place, hello, took: Duration::from_millis(took), at: 1_000_000 }
    }

    fn chosen(members: Vec<Member>, mode: Mode, tags: &[(&str, &str)], staleness: Option<u64>) -> String {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let preference = ReadPreference { mode, tags: tags.iter().map(owned).collect(), staleness };
        let places = allowed(members, &preference);
        places.iter().map(|place| place.to_string().replace(":1", "")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn preference_decides_which_members_answer_reads() {
        let set = || {
            vec![
                member("primary", true, &[("dc", "a")], 0, 1),
                member("near", false, &[("dc", "a")], 0, 1),
                member("late", false, &[("dc", "b")], 100_000, 2),
                member("far", false, &[("dc", "b")], 0, 50),
                Member { hello: Hello::default(), ..member("arbiter", false, &[], 0, 0) },
            ]
        };
        for (mode, tags, staleness, expected) in [
            (Mode::PrimaryPreferred, &[][..], None, "primary"),
            (Mode::Secondary, &[], None, "near late"),
            (Mode::Secondary, &[], Some(90), "near"),
            (Mode::Secondary, &[("dc", "b")], Some(90), "far"),
            (Mode::Secondary, &[("dc", "c")], None, ""),
            (Mode::SecondaryPreferred, &[("dc", "c")], None, "primary"),
            (Mode::Nearest, &[], None, "primary near late"),
            (Mode::Nearest, &[("dc", "a")], None, "primary near"),
        ] {
            assert_eq!(chosen(set(), mode, tags, staleness), expected, "{mode:?} {tags:?} {staleness:?}");
        }
        let without_primary: fn() -> Vec<Member> = || vec![member("one", false, &[], 0, 1)];
        assert_eq!(chosen(without_primary(), Mode::PrimaryPreferred, &[], None), "one");
        assert_eq!(chosen(without_primary(), Mode::SecondaryPreferred, &[], Some(90)), "one");
    }
}
