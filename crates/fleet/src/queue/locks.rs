//! Locks of hosts and agents: keys of a bucket whose values expire, so that those of a worker that ended do not stay.

use super::broker::Broker;
use async_nats::jetstream::kv::{CreateErrorKind, Store};
use std::time::Duration;

/// A lock that is not renewed for this long is free.
pub(super) const EXPIRES: Duration = Duration::from_secs(15);

/// The locks of one run.
pub(super) struct Locks<'a> {
    store: &'a Store,
    owner: Vec<u8>,
    /// Each key with the revision of its value.
    held: Vec<(String, u64)>,
}

impl<'a> Locks<'a> {
    /// Takes all of these keys, or none of them: `Ok(Err(key))` if another run holds one.
    ///
    /// # Errors
    /// If the broker does not answer.
    pub(super) async fn take(
        broker: &'a Broker,
        keys: Vec<String>,
        owner: &str,
    ) -> Result<Result<Self, String>, String> {
        let mut locks = Self { store: &broker.locks, owner: owner.as_bytes().to_vec(), held: Vec::new() };
        for key in keys {
            match locks.store.create(&key, locks.owner.clone().into()).await {
                Ok(revision) => locks.held.push((key, revision)),
                Err(error) => {
                    locks.release().await;
                    return if error.kind() == CreateErrorKind::AlreadyExists {
                        Ok(Err(key))
                    } else {
                        Err(error.to_string())
                    };
                }
            }
        }
        Ok(Ok(locks))
    }

    /// Keeps the locks. `Ok(false)`: one has expired, and another run holds it.
    ///
    /// # Errors
    /// If the broker does not answer.
    pub(super) async fn renew(&mut self) -> Result<bool, String> {
        for (key, revision) in &mut self.held {
            let value = || self.owner.clone().into();
            *revision = match self.store.update(&*key, value(), *revision).await {
                Ok(revision) => revision,
                // After a time without the broker it has expired, or an update was made whose answer was lost.
                Err(_) => match self.store.entry(&*key).await.map_err(|error| error.to_string())? {
                    Some(entry) if entry.value == self.owner => entry.revision,
                    Some(entry) if !entry.value.is_empty() => return Ok(false),
                    _ => match self.store.create(&*key, value()).await {
                        Ok(revision) => revision,
                        Err(error) if error.kind() == CreateErrorKind::AlreadyExists => return Ok(false),
                        Err(error) => return Err(error.to_string()),
                    },
                },
            };
        }
        Ok(true)
    }

    /// Gives the locks back. What cannot be given back expires.
    pub(super) async fn release(&mut self) {
        for (key, revision) in self.held.drain(..) {
            let _ = self.store.delete_expect_revision(&key, Some(revision)).await;
        }
    }
}
