//! A user: each field is a pure function of seed, number and version.

use super::codes::Codes;
use super::names::NAMES;
use crate::ident::hex16;
use crate::prelude::*;
use crate::readback::{Found, returned};
use std::fmt::Write as _;

/// Domains of the hash for fields that do not change with the version.
const PERSON: u64 = 0x7573_6572;
const PASSWORD: u64 = 0x7061_7373;
const HOME: u64 = 0x686f_6d65;

/// The fields of a user, in the order of the table.
pub(super) const FIELDS: usize = 9;
/// The positions of the fields that an update changes.
pub(super) const CHANGES: [usize; 5] = [4, 5, 6, 7, 8];
/// The position of the version.
pub(super) const VERSION: usize = 7;

/// A user in reused memory.
#[derive(Clone, Debug, Default)]
pub(super) struct User {
    pub(super) number: u64,
    pub(super) version: u64,
    pub(super) name: String,
    pub(super) password: String,
    full_name: String,
    email: String,
    code: String,
    address: String,
    updated: i64,
}

impl User {
    /// Sets the name and the password of this user, which are enough to log in.
    pub(super) fn identify(&mut self, seed: u64, number: u64) {
        self.number = number;
        self.name.clear();
        self.password.clear();
        let (_, latin) = family(seed, number);
        // Writing to a String cannot fail.
        let _ = write!(self.name, "{latin}{number}");
        let mut digits = [0; 16];
        hex16(mix(mix(seed, PASSWORD), number), &mut digits, 0);
        self.password.extend(digits.map(char::from));
    }

    /// Sets all fields of this user at this version.
    pub(super) fn become_version(&mut self, seed: u64, codes: &Codes, number: u64, version: u64) {
        self.identify(seed, number);
        self.version = version;
        for text in [&mut self.full_name, &mut self.email, &mut self.code, &mut self.address] {
            text.clear();
        }
        self.full_name.push_str(family(seed, number).0);
        self.full_name.push(' ');
        self.full_name.push_str(NAMES.given[(person(seed, number) >> 32) as usize % NAMES.given.len()].0);
        let _ = write!(self.email, "{}.{version}@mail.example.jp", self.name);
        let home = mix(mix(mix(seed, HOME), number), version);
        let town = &codes.towns[home as usize % codes.towns.len()];
        self.code.extend(town.code.map(char::from));
        let (block, house) = ((home >> 32) % 40 + 1, (home >> 48) % 30 + 1);
        let _ = write!(self.address, "{}{}{}{block}-{house}", town.prefecture, town.city, town.name);
        self.updated = updated(number, version);
    }

    /// The value of a field, by its position in the table.
    pub(super) fn field(&self, position: usize) -> Value<'_> {
        match position {
            0 => Value::Int(self.number as i64),
            1 => Value::Text(&self.name),
            2 => Value::Text(&self.password),
            3 => Value::Text(&self.full_name),
            4 => Value::Text(&self.email),
            5 => Value::Text(&self.code),
            6 => Value::Text(&self.address),
            VERSION => Value::Int(self.version as i64),
            8 => Value::Time(self.updated),
            _ => Value::Null,
        }
    }

    /// Checks an answer: this user alone, with all fields in order.
    pub(super) fn check(&self, reply: &Reply) -> Result<()> {
        if reply.rows() != 1 || reply.width() != FIELDS {
            return Err(self.wrong(&format!(
                "was returned as {} rows of {} fields",
                reply.rows(),
                reply.width()
            )));
        }
        self.check_record(&Found { reply, row: 0, column: 0 })
    }

    /// Checks all fields of a user, in order.
    pub(super) fn check_record(&self, found: &Found<'_>) -> Result<()> {
        for position in 0..FIELDS {
            let expected = Some(returned(self.field(position)));
            if found.reply.field(found.row, found.column + position) != expected {
                return Err(self.wrong(&format!(
                    "was returned with a wrong field {} for version {}",
                    position + 1,
                    self.version
                )));
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, what: &str) -> Error {
        Error::mismatch(format!("user {} {what}", self.number))
    }
}

/// The version of the returned user.
pub(super) fn version_of(number: u64, reply: &Reply) -> Result<u64> {
    let version = reply.field_int(0, VERSION).and_then(|version| u64::try_from(version).ok());
    version.ok_or_else(|| match reply.rows() {
        0 => Error::mismatch(format!("user {number} was not found by name and password")),
        _ => Error::mismatch(format!("user {number} was returned without a version")),
    })
}

fn person(seed: u64, number: u64) -> u64 {
    mix(mix(seed, PERSON), number)
}

fn family(seed: u64, number: u64) -> (&'static str, &'static str) {
    NAMES.families[person(seed, number) as u32 as usize % NAMES.families.len()]
}

/// The time of a user's last change, in microseconds since 1970 UTC: a time in 2012 for each user and version.
fn updated(number: u64, version: u64) -> i64 {
    const BASE: u64 = 1_325_376_000_000_000;
    const YEAR: u64 = 365 * 86_400 * 1_000_000;
    (BASE + mix(number, version) % YEAR) as i64
}

#[cfg(test)]
mod tests {
    use super::super::codes::Source;
    use super::*;

    fn user(number: u64, version: u64) -> User {
        let codes = Codes::get(&Source::Generated { seed: 1, count: 1_000 }).unwrap();
        let mut user = User::default();
        user.become_version(1, &codes, number, version);
        user
    }

    fn reply(user: &User) -> Reply {
        let mut reply = Reply::new();
        for position in 0..FIELDS {
            match user.field(position) {
                Value::Int(n) => reply.push_int(n),
                Value::Time(micros) => reply.push_time(micros),
                Value::Text(text) => reply.push_bytes(text.as_bytes()),
                _ => reply.push_null(),
            }
        }
        reply.end_row();
        reply
    }

    #[test]
    fn the_first_users_of_a_seed_never_change() {
        let shown: Vec<String> = [(1, 0), (2, 0), (2, 9)].map(|(n, v)| format!("{:?}", user(n, v))).into();
        assert_eq!(shown.join("\n"), include_str!("../../golden/webapp_users_seed1.txt").trim_end());
    }

    #[test]
    fn every_field_of_an_answer_is_checked() {
        let right = user(17, 3);
        right.check(&reply(&right)).unwrap();
        for other in [user(17, 4), user(18, 3)] {
            assert!(right.check(&reply(&other)).is_err());
        }
        for position in 0..FIELDS {
            let mut wrong = right.clone();
            match position {
                0 => wrong.number += 1,
                1 => wrong.name.push(' '),
                2 => wrong.password.push('0'),
                3 => wrong.full_name.clear(),
                4 => wrong.email.make_ascii_uppercase(),
                5 => wrong.code.push('0'),
                6 => wrong.address.push('0'),
                7 => wrong.version += 1,
                _ => wrong.updated += 1,
            }
            let error = right.check(&reply(&wrong)).unwrap_err().to_string();
            assert!(error.contains(&format!("field {}", position + 1)), "{error}");
        }
        assert!(right.check(&Reply::new()).unwrap_err().to_string().contains("0 rows"));
    }

    #[test]
    fn user_names_are_unique() {
        let names: std::collections::HashSet<String> = (1..=2_000).map(|n| user(n, 0).name).collect();
        assert_eq!(names.len(), 2_000);
    }
}
