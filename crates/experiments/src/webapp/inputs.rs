//! What a client asks of an application whose inputs its clients choose, as browsers do: name and password, the change
//! of the user, and the searched prefix are parameters of the page.

use super::answer::RequestResult;
use super::codes::{Codes, PREFIX};
use super::draws::{self, Draw, Draws};
use super::user::{CHANGES, User};
use crate::prelude::*;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The parameters with the changed fields of a user, in the order of [`CHANGES`].
const CHANGED: [&str; CHANGES.len()] = ["email", "postal_code", "address", "version", "updated"];

/// What one request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RequestInput {
    user: u64,
    /// The new version, if the request changes the user.
    version: Option<u64>,
    prefix: Option<[u8; PREFIX]>,
    /// The number from which address and time of its line in the log are made.
    origin: u64,
}

/// The inputs of one client.
pub(super) struct Inputs {
    draws: Draws,
    seed: u64,
    codes: Arc<Codes>,
    /// Versions and origins of this trial are higher than this.
    base: u64,
    /// The version before the client's first, which is a part of those that are drawn.
    drawn_from: u64,
    asked: RequestInput,
    user: User,
    /// The versions of the users that this client changed. Only this client changes them.
    known: HashMap<u64, u64>,
}

impl Inputs {
    pub(super) fn new(client: Client, users: u64, seed: u64, codes: &Arc<Codes>, base: u64) -> Self {
        Self {
            draws: Draws::new(client, users, codes.towns.len() as u64),
            seed,
            codes: Arc::clone(codes),
            base,
            drawn_from: client.base_version(),
            asked: RequestInput { user: 1, version: None, prefix: None, origin: 0 },
            user: User::default(),
            known: HashMap::new(),
        }
    }

    /// Draws the next request, and appends its parameters to the page's path.
    pub(super) fn draw(&mut self, page: &mut String) {
        let Draw { line, user, version, town } = self.draws.next();
        let version = version.map(|version| self.base + (version - self.drawn_from));
        let prefix = town.map(|town| {
            let mut prefix = [b'0'; PREFIX];
            prefix.copy_from_slice(&self.codes.towns[town as usize].code[..PREFIX]);
            prefix
        });
        self.asked = RequestInput { user, version, prefix, origin: self.base + line };
        let mut ip = String::new();
        draws::address(self.seed, self.asked.origin, &mut ip);
        self.user.identify(self.seed, user);
        parameter(page, '?', "name", &self.user.name);
        parameter(page, '&', "password", &self.user.password);
        parameter(page, '&', "ip", &ip);
        parameter(page, '&', "at", &draws::time(self.asked.origin).to_string());
        if let Some(version) = version {
            self.user.become_version(self.seed, &self.codes, user, version);
            for (name, position) in CHANGED.into_iter().zip(CHANGES) {
                match self.user.field(position) {
                    Value::Text(text) => parameter(page, '&', name, text),
                    Value::Int(n) | Value::Time(n) => parameter(page, '&', name, &n.to_string()),
                    _ => {}
                }
            }
        }
        if let Some(prefix) = prefix {
            parameter(page, '&', "prefix", &String::from_utf8_lossy(&prefix));
        }
    }

    /// Checks that the application did what was asked, and returns the origin of its line.
    ///
    /// # Errors
    /// [`Mismatch`](ErrorKind::Mismatch) with the difference.
    pub(super) fn check(&mut self, result: &RequestResult) -> Result<u64> {
        let RequestInput { user, version, prefix, origin } = self.asked;
        if result.user != user {
            return Err(Error::mismatch(format!("user {user} was to log in, but user {} did", result.user)));
        }
        if let Some(known) = self.known.get(&user).filter(|known| **known != result.version) {
            return Err(Error::mismatch(format!(
                "user {user} was changed to version {known}, but logged in at version {}",
                result.version
            )));
        }
        if result.changed != version {
            return Err(Error::mismatch(format!(
                "user {user} was to be changed to {}, but was to {}",
                shown(version),
                shown(result.changed)
            )));
        }
        if result.prefix != prefix {
            return Err(Error::mismatch("the postal codes were not searched as it was asked for"));
        }
        if let Some(version) = version {
            self.known.insert(user, version);
        }
        Ok(origin)
    }
}

fn shown(version: Option<u64>) -> String {
    version.map_or_else(|| "no other version".to_owned(), |version| format!("version {version}"))
}

/// Appends a parameter, percent-encoded (RFC 3986, section 2.3 has the characters that stay).
fn parameter(path: &mut String, mark: char, name: &str, value: &str) {
    // Writing to a String cannot fail.
    let _ = write!(path, "{mark}{name}=");
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            let _ = write!(path, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::codes::Source;
    use super::*;

    fn inputs() -> Inputs {
        let codes = Codes::get(&Source::Generated { seed: 3, count: 400 }).unwrap();
        let client = Client { index: 0, count: 2, seed: 5, trial: 4 };
        Inputs::new(client, 300, 3, &codes, 1_000_000)
    }

    /// What an application does that does what it is asked.
    fn result(inputs: &Inputs, version: u64) -> RequestResult {
        let RequestInput { user, version: changed, prefix, .. } = inputs.asked;
        RequestResult { user, version, line: 1, changed, prefix }
    }

    #[test]
    fn parameters_are_ascii_and_name_the_change_and_the_search() {
        let (mut inputs, mut changes, mut searches) = (inputs(), 0, 0);
        for _ in 0..200 {
            let mut page = "/webapp/request".to_owned();
            inputs.draw(&mut page);
            assert!(page.is_ascii() && !page.contains(' '), "{page}");
            assert!(page.starts_with("/webapp/request?name=") && page.contains("&password="), "{page}");
            let RequestInput { version, prefix, .. } = inputs.asked;
            assert_eq!(page.contains("&version="), version.is_some(), "{page}");
            assert_eq!(page.contains("&email="), version.is_some(), "{page}");
            assert_eq!(page.contains("&prefix="), prefix.is_some(), "{page}");
            assert!(version.is_none_or(|version| version > 1_000_000));
            changes += u64::from(version.is_some());
            searches += u64::from(prefix.is_some());
        }
        assert!(changes == 10 && searches > 0, "{changes} {searches}");
    }

    #[test]
    fn application_that_does_something_else_is_a_mismatch() {
        let mut inputs = inputs();
        let mut page = String::new();
        while inputs.asked.version.is_none() {
            inputs.draw(&mut page);
        }
        let right = result(&inputs, 0);
        for wrong in [
            RequestResult { user: right.user + 1, ..right },
            RequestResult { changed: None, ..right },
            RequestResult { changed: right.changed.map(|version| version + 1), ..right },
            RequestResult { prefix: Some(*b"99999"), ..right },
        ] {
            assert_eq!(inputs.check(&wrong).unwrap_err().kind(), ErrorKind::Mismatch, "{wrong:?}");
        }
        assert_eq!(inputs.check(&right).unwrap(), inputs.asked.origin);
        // The user logs in again: the change must be there.
        let again = RequestInput { version: None, prefix: None, ..inputs.asked };
        inputs.asked = again;
        let error = inputs.check(&result(&inputs, 0)).unwrap_err().to_string();
        assert!(error.contains("logged in at version 0"), "{error}");
        inputs.check(&result(&inputs, right.changed.unwrap())).unwrap();
    }

    #[test]
    fn parameter_is_percent_encoded() {
        let mut path = "/x".to_owned();
        parameter(&mut path, '?', "address", "東-1 a&b");
        assert_eq!(path, "/x?address=%E6%9D%B1-1%20a%26b");
    }
}
