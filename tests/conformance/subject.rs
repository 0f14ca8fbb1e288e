//! A driver under test, and helpers for the checks.

use kurabe_core::collection::{Collection, Field, FieldType};
use kurabe_core::driver::{ConnectOptions, Driver, Namespace, Session, Support};
use kurabe_core::operation::Operation;
use kurabe_core::target::TargetUrl;
use kurabe_core::value::{Reply, Value};
use kurabe_core::{ErrorKind, Result};
use std::sync::Arc;

pub(super) struct Subject {
    pub(super) url: String,
    pub(super) driver: Box<dyn Driver>,
}

impl Subject {
    pub(super) fn open(url: &str) -> Self {
        let driver = kurabe_drivers::registry::open(&TargetUrl::parse(url).unwrap()).unwrap();
        Self { url: url.to_owned(), driver }
    }

    pub(super) fn session(&self) -> Box<dyn Session> {
        self.driver.connect(&ConnectOptions::default()).unwrap()
    }

    pub(super) fn namespace(&self) -> Box<dyn Namespace> {
        self.driver.namespace().unwrap()
    }

    /// Whether the driver supports an operation. If not, preparing it must fail with that reason.
    pub(super) fn has(&self, operation: &Operation) -> bool {
        match self.driver.supports(operation) {
            Support::Native => true,
            Support::No(reason) => {
                assert!(reason.len() > 10 && !reason.ends_with('.'), "'{reason}' is not a clause");
                let error = self.session().prepare(operation).expect_err(operation.name());
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                assert!(error.to_string().contains(&reason), "{error}");
                false
            }
        }
    }

    /// A collection for one check only.
    pub(super) fn make(
        &self,
        name: &str,
        fields: &[(&'static str, FieldType)],
        key: &[usize],
    ) -> Arc<Collection> {
        let fields = fields.iter().map(|(name, kind)| Field { name, kind: *kind }).collect();
        let collection = Collection::new(format!("kurabe_test_{name}"), fields, key.to_vec());
        self.namespace().create(&collection).unwrap();
        Arc::new(collection)
    }

    /// `(id, data)` by id, which most checks use.
    pub(super) fn make_plain(&self, name: &str) -> Arc<Collection> {
        self.make(name, &[("id", FieldType::Text { max: 40 }), ("data", FieldType::LongBytes)], &[0])
    }

    pub(super) fn leave_nothing_behind(&self) {
        let mut namespace = self.namespace();
        for name in namespace.list().unwrap() {
            namespace.remove(&name).unwrap();
        }
        assert_eq!(namespace.list().unwrap(), [""; 0]);
        namespace.finish().unwrap();
        namespace.finish().unwrap();
    }
}

impl Drop for Subject {
    /// Names the target of a check that failed.
    #[expect(clippy::print_stderr, reason = "the test harness shows it with the failure")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the target was {}", self.url);
        }
    }
}

/// Prepares, executes and releases.
pub(super) fn run(
    session: &mut dyn Session,
    operation: &Operation,
    parameters: &[Value<'_>],
) -> Result<Reply> {
    let mut out = Reply::new();
    // The content of an earlier reply must not remain.
    out.push_int(7);
    out.end_row();
    out.set_affected(7);
    let prepared = session.prepare(operation)?;
    let result = session.execute(&prepared, parameters, &mut out);
    session.release(prepared)?;
    result.map(|()| out)
}

/// Like [`run`], and returns the number of affected rows.
pub(super) fn affected(session: &mut dyn Session, operation: &Operation, parameters: &[Value<'_>]) -> u64 {
    run(session, operation, parameters).unwrap_or_else(|e| panic!("{}: {e}", operation.name())).affected()
}

pub(super) fn get(collection: &Arc<Collection>, fields: &[usize]) -> Operation {
    Operation::Get { collection: collection.clone(), fields: fields.to_vec() }
}

pub(super) fn insert(collection: &Arc<Collection>) -> Operation {
    Operation::Insert { collection: collection.clone() }
}

pub(super) fn put(collection: &Arc<Collection>) -> Operation {
    Operation::Put { collection: collection.clone() }
}

pub(super) fn count(collection: &Arc<Collection>) -> Operation {
    Operation::Count { collection: collection.clone() }
}

/// The data of a row of a plain collection.
pub(super) fn data(session: &mut dyn Session, collection: &Arc<Collection>, id: &str) -> Option<Vec<u8>> {
    let reply = run(session, &get(collection, &[1]), &[Value::Text(id)]).unwrap();
    assert!(reply.rows() <= 1 && (reply.rows() == 0 || reply.width() == 1));
    reply.field_bytes(0, 0).map(<[u8]>::to_vec)
}
