//! The statements of sessions and namespaces over a connection.

use crate::connection::{Connection, lock};
use crate::dialect::DIALECT;
use crate::statement::{Statement, text};
use kurabe_driver_common::prelude::*;
use kurabe_driver_common::sql::shape;
use kurabe_driver_common::wire::link::{Link, Query};
use rsfbclient_core::TrOp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A connection, which sessions and namespaces use.
pub struct FirebirdLink(pub Arc<Mutex<Connection>>);

impl Query for FirebirdLink {
    fn query(&mut self, sql: &str, out: &mut Reply) -> Result<()> {
        lock(&self.0).exchange(|connection| match sql {
            _ if sql == DIALECT.begin => connection.begin_transaction(),
            _ if sql == DIALECT.commit => connection.end_transaction(TrOp::Commit),
            _ if sql == DIALECT.rollback => connection.end_transaction(TrOp::Rollback),
            _ => connection.execute(&text(sql), &[], out),
        })
    }

    fn quit(&mut self) -> Result<()> {
        lock(&self.0).exchange(Connection::quit)
    }

    fn transport(&self) -> String {
        "TCP".to_owned()
    }
}

impl Link for FirebirdLink {
    type Statement = Statement;

    fn in_transaction(&self) -> Option<bool> {
        Some(lock(&self.0).has_transaction())
    }

    fn ping(&mut self) -> Result<()> {
        let ping = Statement { number: u64::MAX, ..text(DIALECT.ping) };
        lock(&self.0).exchange(|connection| connection.execute(&ping, &[], &mut Reply::new()))
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let statement = Statement { number: NUMBERS.fetch_add(1, Ordering::Relaxed), ..text(sql) };
        lock(&self.0).exchange(|connection| connection.prepare(&statement)).map(|()| statement)
    }

    fn prepare_operation(&mut self, operation: &Operation, sql: &str) -> Result<Statement> {
        let (shape, raw) = (shape(operation)?, matches!(operation, Operation::Raw { .. }));
        Ok(Statement { shape, raw, ..self.prepare(sql)? })
    }

    fn run(&mut self, statement: &mut Statement, parameters: &[Value<'_>], out: &mut Reply) -> Result<()> {
        check_parameters("the statement", statement.shape.takes.len(), parameters.len())?;
        lock(&self.0).exchange(|connection| connection.execute(statement, parameters, out))
    }

    fn run_in_pages(
        &mut self,
        statement: &mut Statement,
        parameters: &[Value<'_>],
        pages: &mut Pages<'_>,
    ) -> Result<()> {
        check_parameters("the statement", statement.shape.takes.len(), parameters.len())?;
        let page = &mut Reply::new();
        lock(&self.0)
            .exchange(|connection| connection.execute_in_pages(statement, parameters, page, Some(pages)))
    }

    fn forget(&mut self, statement: Statement) -> Result<()> {
        lock(&self.0).exchange(|connection| connection.forget(statement.number))
    }
}
