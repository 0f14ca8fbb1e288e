//! How clients are divided among threads.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The maximum of [`ClientThreads::Count`].
const MAX: u64 = 1_024;

/// The threads of a trial's clients, as the user requested them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientThreads {
    /// Each client has its own thread.
    PerClient,
    /// This many threads share the clients.
    Count(u64),
}

impl ClientThreads {
    /// Parses a number, or `per-client`.
    ///
    /// # Errors
    /// [`Usage`](crate::ErrorKind::Usage) for anything else.
    pub fn parse(text: &str) -> Result<Self> {
        match text.parse() {
            _ if text == "per-client" => Ok(Self::PerClient),
            Ok(count @ 1..=MAX) => Ok(Self::Count(count)),
            _ => Err(Error::usage(format!("'{text}' is no number of threads"))
                .hint(format!("use a number from 1 to {MAX}, or per-client"))),
        }
    }

    /// The number of threads that share the clients of a trial; `None`: each client has its own. By default (`wanted`
    /// is `None`) one thread for each of the clients' processors, if there are more clients and their sessions
    /// [can share threads](crate::driver::Capabilities::shared_threads): with one client per processor, sharing gains
    /// nothing.
    pub fn shared(wanted: Option<Self>, clients: usize, cpus: usize, can_share: bool) -> Option<usize> {
        match wanted {
            Some(Self::PerClient) => None,
            Some(Self::Count(count)) => Some((count as usize).clamp(1, clients.max(1))),
            None => (can_share && clients > cpus.max(1)).then_some(cpus.max(1)),
        }
    }
}

impl fmt::Display for ClientThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerClient => f.write_str("per-client"),
            Self::Count(count) => count.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_share_threads_by_default_if_they_are_more_than_processors() {
        let shared = |wanted, clients| ClientThreads::shared(wanted, clients, 2, true);
        assert_eq!([1, 2, 3, 1_000].map(|clients| shared(None, clients)), [None, None, Some(2), Some(2)]);
        assert_eq!(ClientThreads::shared(None, 1_000, 2, false), None);
        assert_eq!(shared(Some(ClientThreads::PerClient), 1_000), None);
        assert_eq!(shared(Some(ClientThreads::Count(4)), 3), Some(3));
        assert_eq!(shared(Some(ClientThreads::Count(4)), 1_000), Some(4));
    }

    #[test]
    fn only_numbers_and_per_client_are_threads() {
        for text in ["1", "64", "per-client"] {
            assert_eq!(ClientThreads::parse(text).unwrap().to_string(), text);
        }
        for text in ["0", "-1", "1025", "", "all", "2.5"] {
            assert!(ClientThreads::parse(text).is_err(), "{text}");
        }
        let written = serde_json::to_string(&[ClientThreads::PerClient, ClientThreads::Count(2)]).unwrap();
        assert_eq!(written, r#"["per-client",{"count":2}]"#);
    }
}
