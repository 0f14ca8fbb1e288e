//! What the queue has on its broker: a stream of waiting runs, their states, locks, and an object store.

use super::locks::EXPIRES;
use super::{Entry, KEPT, is_token};
use async_nats::HeaderMap;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::object_store::{self, ObjectStore};
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, kv};
use futures_util::{StreamExt, TryStreamExt};
use kurabe_core::name::Name;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

/// The stream of waiting runs, and the beginning of its subjects.
const STREAM: &str = "KURABE_QUEUE";
const SUBJECT: &str = "kurabe.queue";
/// The bucket with the state of each run.
const ENTRIES: &str = "kurabe-runs";
/// The bucket with the locks of hosts.
const LOCKS: &str = "kurabe-locks";
/// The object store with the files of ended runs.
const RESULTS: &str = "kurabe-results";

/// After this time without a sign of life of its worker, a run is given to another one.
pub(super) const ACK_WAIT: Duration = Duration::from_secs(15);
/// How long the broker has to answer where its client sets no limit.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the end of a worker waits for the broker.
const LAST: Duration = Duration::from_millis(500);
/// A consumer that nobody asks for this long is removed.
const UNUSED: Duration = Duration::from_secs(3_600);

pub(super) struct Broker {
    client: async_nats::Client,
    context: jetstream::Context,
    stream: Stream,
    pub(super) entries: kv::Store,
    pub(super) locks: kv::Store,
    pub(super) results: ObjectStore,
}

impl Broker {
    /// Opens what exists, and makes what does not. An administrator may have made it with other settings.
    pub(super) async fn open(client: async_nats::Client) -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let context = jetstream::new(client.clone());
        let waiting = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![format!("{SUBJECT}.*")],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            max_age: KEPT,
            ..stream::Config::default()
        };
        let stream = context.get_or_create_stream(waiting).await.map_err(|error| text(&error))?;
        let entries = Self::bucket(&context, ENTRIES, KEPT).await?;
        let locks = Self::bucket(&context, LOCKS, EXPIRES).await?;
        let results = if let Ok(results) = context.get_object_store(RESULTS).await {
            results
        } else {
            let config = object_store::Config {
                bucket: RESULTS.to_owned(),
                max_age: KEPT,
                storage: StorageType::File,
                ..object_store::Config::default()
            };
            context.create_object_store(config).await.map_err(|error| text(&error))?
        };
        Ok(Self { client, context, stream, entries, locks, results })
    }

    /// Opens a bucket. The client asks for the account's limits before it makes one, whose form differs between versions of
    /// the server, so that its stream is made here.
    async fn bucket(
        context: &jetstream::Context,
        name: &str,
        max_age: Duration,
    ) -> Result<kv::Store, String> {
        if let Ok(store) = context.get_key_value(name).await {
            return Ok(store);
        }
        let config = stream::Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            storage: StorageType::File,
            max_age,
            duplicate_window: max_age.min(Duration::from_secs(120)),
            num_replicas: 1,
            ..stream::Config::default()
        };
        context.get_or_create_stream(config).await.map_err(|error| error.to_string())?;
        context.get_key_value(name).await.map_err(|error| error.to_string())
    }

    /// Stores a run's message. The broker ignores a second one with the same name.
    pub(super) async fn publish(&self, entry: &Entry, payload: Vec<u8>) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", entry.id.as_str());
        let subject = format!("{SUBJECT}.{}", entry.lane);
        let sent = self.context.publish_with_headers(subject, headers, payload.into()).await;
        sent.map_err(|error| error.to_string())?.await.map(drop).map_err(|error| error.to_string())
    }

    /// Sends what was acknowledged last, before the connection is closed.
    pub(super) async fn flush(&self) {
        // A broker that does not answer must not hold up the end of the program.
        let _ = tokio::time::timeout(LAST, self.client.flush()).await;
    }

    /// The lanes that have messages. Subjects that this program does not make are left out.
    pub(super) async fn lanes(&self) -> Result<BTreeSet<String>, String> {
        let lanes = names(&self.stream, &format!("{SUBJECT}.")).await?;
        Ok(lanes.into_iter().filter(|lane| is_token(lane)).collect())
    }

    /// The names of all runs. The client's own list of keys waits for ever for an entry that is replaced meanwhile.
    pub(super) async fn ids(&self) -> Result<BTreeSet<Name>, String> {
        let keys = names(&self.entries.stream, &self.entries.prefix).await?;
        Ok(keys.iter().filter_map(|key| Name::parse(key).ok()).collect())
    }

    /// The next message of a lane; `None` if it has none, or a worker has one.
    pub(super) async fn take(&self, lane: &str) -> Result<Option<jetstream::Message>, String> {
        let config = pull::Config {
            durable_name: Some(lane.to_owned()),
            filter_subject: format!("{SUBJECT}.{lane}"),
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: 1,
            inactive_threshold: UNUSED,
            ..pull::Config::default()
        };
        let consumer: PullConsumer =
            self.stream.get_or_create_consumer(lane, config).await.map_err(|error| error.to_string())?;
        let fetched = consumer.fetch().max_messages(1).messages().await;
        let mut messages = fetched.map_err(|error| error.to_string())?;
        answer(async { messages.next().await.transpose() }).await
    }
}

/// Waits for the broker's answer, as long as [`ANSWER`].
pub(super) async fn answer<T, E: Display>(future: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match tokio::time::timeout(ANSWER, future).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!("the broker did not answer within {} s", ANSWER.as_secs())),
    }
}

/// The subjects of a stream that begin with a prefix, without it.
async fn names(stream: &Stream, prefix: &str) -> Result<BTreeSet<String>, String> {
    let mut subjects = answer(stream.info_with_subjects(format!("{prefix}>"))).await?;
    let mut names = BTreeSet::new();
    while let Some((subject, _)) = answer(subjects.try_next()).await? {
        names.extend(subject.strip_prefix(prefix).map(str::to_owned));
    }
    Ok(names)
}
