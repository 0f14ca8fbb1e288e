//! The tables for users, log and postal codes.

use super::codes::{self, Codes, PREFIX, Source};
use super::draws;
use super::user::{self, CHANGES, FIELDS, User};
use crate::fill::{self, check_count, fill, rows_of_a_request};
use crate::prelude::*;
use crate::readback;

const USERS: u64 = 100_000;
/// Approximate bytes of a row in a request.
pub(super) const ROW_BYTES: u64 = 250;
/// Approximate bytes of the towns of one prefix.
const PREFIX_BYTES: u64 = 12 * ROW_BYTES;

/// The three tables of a target.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) users: Arc<Collection>,
    pub(super) log: Arc<Collection>,
    pub(super) towns: Arc<Collection>,
    pub(super) codes: Arc<Codes>,
    pub(super) seed: u64,
    /// The number of users; their numbers are 1 to this.
    pub(super) count: u64,
    source: Source,
}

impl Store {
    /// Users `(id, name, password, …)` with an index on name and password, a log `(id, user, ip, at)`, and towns by
    /// postal code.
    pub(super) fn new(cell: &Cell, dataset: &Dataset) -> Result<Self> {
        let count = dataset.records.unwrap_or(USERS).max(1);
        let source = Source::of(cell, dataset.seed, count);
        let slot = dataset.slot;
        let table = |name: &str, fields: &[(&'static str, FieldType)], key: &[usize]| {
            let fields = fields.iter().map(|(name, kind)| Field { name, kind: *kind }).collect();
            Collection::new(format!("kurabe_{slot}_webapp_{name}"), fields, key.to_vec())
        };
        let characters = |max| FieldType::Text { max };
        let name = characters(codes::NAME as u32);
        let mut users = table(
            "users",
            &[
                ("id", FieldType::Int),
                ("name", characters(40)),
                ("password", characters(16)),
                ("full_name", characters(40)),
                ("email", characters(80)),
                ("postal_code", characters(codes::DIGITS as u32)),
                ("address", characters(3 * codes::NAME as u32 + 10)),
                ("version", FieldType::Int),
                ("updated", FieldType::Timestamp),
            ],
            &[0],
        );
        users.indexes = vec![vec![1, 2]];
        let log = table(
            "log",
            &[
                ("id", FieldType::Int),
                ("user_id", FieldType::Int),
                ("ip", characters(45)),
                ("at", FieldType::Timestamp),
            ],
            &[0],
        );
        let towns = table(
            "codes",
            &[
                ("code", characters(codes::DIGITS as u32)),
                ("number", FieldType::Int),
                ("prefecture", name),
                ("city", name),
                ("town", name),
                ("kana", name),
            ],
            &[0, 1],
        );
        Ok(Self {
            users: Arc::new(users),
            log: Arc::new(log),
            towns: Arc::new(towns),
            codes: Codes::get(&source)?,
            seed: dataset.seed,
            count,
            source,
        })
    }

    /// The name of the data: cells with the same name share them.
    pub(super) fn data(&self) -> String {
        format!("{} {:?}", self.users.name, self.source)
    }

    pub(super) fn log_in(&self) -> Operation {
        Operation::FindEqual {
            collection: Arc::clone(&self.users),
            by: vec![1, 2],
            fields: (0..FIELDS).collect(),
        }
    }

    pub(super) fn write_log(&self) -> Operation {
        Operation::Insert { collection: Arc::clone(&self.log) }
    }

    pub(super) fn update(&self) -> Operation {
        Operation::Update { collection: Arc::clone(&self.users), fields: CHANGES.to_vec() }
    }

    pub(super) fn search(&self) -> Operation {
        Operation::FindRange { collection: Arc::clone(&self.towns), by: 0, fields: (0..6).collect() }
    }

    pub(super) fn get_user(&self) -> Operation {
        Operation::Get { collection: Arc::clone(&self.users), fields: (0..FIELDS).collect() }
    }

    pub(super) fn get_line(&self) -> Operation {
        Operation::Get { collection: Arc::clone(&self.log), fields: vec![0, 1, 2, 3] }
    }

    /// Loads users and postal codes, checks their numbers on the server, and reads all of them back.
    pub(super) fn fill(&self, session: &mut dyn Session) -> Result<()> {
        let mut user = User::default();
        fill(
            session,
            &self.users,
            self.count,
            rows_of_a_request(self.users.fields.len(), ROW_BYTES),
            &mut |row, field, out| {
                if field == 0 {
                    user.become_version(self.seed, &self.codes, row + 1, 0);
                }
                made(user.field(field), out)
            },
        )?;
        let towns = &self.codes.towns;
        fill(
            session,
            &self.towns,
            towns.len() as u64,
            rows_of_a_request(self.towns.fields.len(), ROW_BYTES),
            &mut |row, field, out| made(town_field(&towns[row as usize], field), out),
        )?;
        for (collection, rows) in [(&self.users, self.count), (&self.towns, towns.len() as u64)] {
            check_count(session, collection, rows, &format!("rows of {}", collection.name))?;
        }
        self.check_load(session).map_err(|error| error.context("after loading"))
    }

    /// Reads all users and all towns back and checks each.
    fn check_load(&self, session: &mut dyn Session) -> Result<()> {
        let mut user = User::default();
        let fields: Vec<usize> = (0..FIELDS).collect();
        let keys = 1..self.count as i64 + 1;
        readback::numbered(session, &self.users, &fields, ROW_BYTES, keys, &mut |key, found| {
            user.become_version(self.seed, &self.codes, key as u64, 0);
            user.check_record(&found)
        })?;
        let towns = self.codes.towns.iter();
        let mut ranges: Vec<([u8; PREFIX], [u8; PREFIX])> = towns.map(|town| range(&town.code)).collect();
        // They are in the order of their codes.
        ranges.dedup();
        readback::each(
            session,
            &self.search(),
            PREFIX_BYTES,
            ranges,
            |(from, to)| [digits(from), digits(to)],
            |(prefix, _), reply| self.check_towns(*prefix, reply),
        )
        .map(drop)
    }

    /// Checks the answer to [`Store::search`]: all towns of the prefix, in order.
    pub(super) fn check_towns(&self, prefix: [u8; PREFIX], reply: &Reply) -> Result<()> {
        let expected = self.codes.of_prefix(&prefix);
        let wrong = |what: &str| {
            let prefix = String::from_utf8_lossy(&prefix);
            Error::mismatch(format!("the search for postal codes that begin with {prefix} {what}"))
        };
        if reply.rows() != expected.len() {
            return Err(wrong(&format!("found {} towns, expected {}", reply.rows(), expected.len())));
        }
        for (row, town) in expected.iter().enumerate() {
            for field in 0..6 {
                if reply.field(row, field) != Some(readback::returned(town_field(town, field))) {
                    return Err(wrong(&format!(
                        "returned a wrong field {} of its town {}",
                        field + 1,
                        row + 1
                    )));
                }
            }
        }
        Ok(())
    }

    /// Checks the answer to [`Store::get_line`]: what a request of this user wrote.
    pub(super) fn check_line(&self, line: u64, user: u64, reply: &Reply) -> Result<()> {
        let mut address = String::new();
        draws::address(self.seed, line, &mut address);
        let expected = [
            Value::Int(line as i64),
            Value::Int(user as i64),
            Value::Bytes(address.as_bytes()),
            Value::Time(draws::time(line)),
        ];
        let right = reply.rows() == 1
            && expected.iter().enumerate().all(|(field, value)| reply.field(0, field) == Some(*value));
        if right {
            return Ok(());
        }
        Err(Error::mismatch(match reply.rows() {
            0 => format!("line {line} of the log is missing"),
            _ => format!("line {line} of the log differs from what was written"),
        }))
    }

    /// Reads users back and checks each against its version. Returns how many it read.
    pub(super) fn read_users_back(
        &self,
        session: &mut dyn Session,
        users: impl Iterator<Item = (u64, u64)>,
    ) -> Result<u64> {
        let mut user = User::default();
        readback::each(
            session,
            &self.get_user(),
            ROW_BYTES,
            users,
            |(number, _)| [Value::Int(*number as i64)],
            |(number, version), reply| {
                user.become_version(self.seed, &self.codes, *number, *version);
                user.check(reply)
            },
        )
        .map_err(|error| error.context("read back"))
    }

    /// Reads lines of the log back and checks the user in each. Returns how many it read.
    pub(super) fn read_lines_back(
        &self,
        session: &mut dyn Session,
        lines: impl Iterator<Item = (u64, u64)>,
    ) -> Result<u64> {
        readback::each(
            session,
            &self.get_line(),
            ROW_BYTES,
            lines,
            |(line, _)| [Value::Int(*line as i64)],
            |(line, user), reply| self.check_line(*line, *user, reply),
        )
        .map_err(|error| error.context("read back"))
    }

    /// Checks the answer to [`Store::log_in`]: the expected user with the given version. If another client may change
    /// the user, the answer's own version counts.
    pub(super) fn check_user(
        &self,
        number: u64,
        version: Option<u64>,
        reply: &Reply,
        user: &mut User,
    ) -> Result<()> {
        let found = user::version_of(number, reply)?;
        user.become_version(self.seed, &self.codes, number, version.unwrap_or(found));
        user.check(reply)
    }
}

/// A code's digits as a parameter.
fn digits(code: &[u8]) -> Value<'_> {
    // Digits are UTF-8 and never empty.
    Value::Text(std::str::from_utf8(code).unwrap_or_default())
}

fn town_field(town: &codes::Town, position: usize) -> Value<'_> {
    match position {
        0 => digits(&town.code),
        1 => Value::Int(town.number as i64),
        2 => Value::Text(&town.prefecture),
        3 => Value::Text(&town.city),
        4 => Value::Text(&town.name),
        _ => Value::Text(&town.kana),
    }
}

/// A value for the load, whose text is in the buffer.
fn made<'b>(value: Value<'_>, out: &'b mut Vec<u8>) -> Result<Value<'b>> {
    Ok(match value {
        Value::Int(n) => Value::Int(n),
        Value::Time(micros) => Value::Time(micros),
        Value::Text(text) => {
            text.as_bytes().clone_into(out);
            return fill::text(out);
        }
        _ => Value::Null,
    })
}

/// The searched prefix, and the end of its range. Both have digits only, so that the character after the last digit
/// is one byte too.
pub(super) fn range(code: &[u8]) -> ([u8; PREFIX], [u8; PREFIX]) {
    let mut from = [b'0'; PREFIX];
    from.copy_from_slice(&code[..PREFIX]);
    let mut to = from;
    to[PREFIX - 1] += 1;
    (from, to)
}
