//! The optimizer's row estimates follow the capability.

use super::subject::{Subject, count, get, insert, run};
use kurabe_core::ErrorKind;
use kurabe_core::collection::FieldType;
use kurabe_core::driver::Support;
use kurabe_core::operation::Operation;
use kurabe_core::value::Value;
use std::sync::Arc;

const ROWS: i64 = 300;

pub(super) fn estimate_is_near_the_rows_or_refused(subject: &Subject) {
    let collection = subject.make("estimates", &[("id", FieldType::Int), ("data", FieldType::Int)], &[0]);
    let mut session = subject.session();
    if let Support::No(reason) = subject.driver.capabilities().estimates {
        assert!(reason.len() > 10 && !reason.ends_with('.'), "'{reason}' is not a clause");
        let error = session.estimate(&get(&collection, &[1]), &[Value::Int(1)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        subject.namespace().remove(&collection.name).unwrap();
        return;
    }
    subject.namespace().hold_statistics(&collection).unwrap();
    for id in 0..ROWS {
        run(&mut *session, &insert(&collection), &[Value::Int(id), Value::Int(id)]).unwrap();
    }
    subject.namespace().analyse(&collection).unwrap();
    let mut rows = |operation: &Operation, parameters: &[Value<'_>]| {
        let estimate = session.estimate(operation, parameters).unwrap();
        assert!(estimate.rows >= 0.0 && estimate.rows.is_finite(), "{estimate:?}");
        estimate.rows
    };
    let one = rows(&get(&collection, &[1]), &[Value::Int(5)]);
    assert!(one <= 3.0, "{one} rows of one key");
    let range = Operation::FindRange { collection: Arc::clone(&collection), by: 0, fields: vec![0, 1] };
    let half = rows(&range, &[Value::Int(0), Value::Int(ROWS / 2)]);
    assert!((40.0..600.0).contains(&half), "{half} rows of {}", ROWS / 2);
    // Nothing was executed, and the session goes on after an error.
    session.estimate(&get(&collection, &[1]), &[Value::Int(1), Value::Int(2)]).unwrap_err();
    let counted = run(&mut *session, &count(&collection), &[]).unwrap();
    assert_eq!(counted.field_int(0, 0), Some(ROWS));
    subject.namespace().remove(&collection.name).unwrap();
}
