//! Requests of PostgreSQL.

use super::commands::{PIECE, Sent, value};
use crate::prelude::*;
use kurabe_protocol::postgres::message::{Bind, Request, Target, Types};
use kurabe_protocol::sql::{Dialect, Statement, first_word};
use kurabe_wire::view::Step;
use std::collections::{HashMap, HashSet};

/// The code of a COPY that the client ended without all of its data.
const CANCELED: &str = "57014";

/// Whether a text of SQL names a prepared statement that `known`, which has those of its connection that SQL prepared, has not:
/// one that the protocol prepared. A replay gives these names of its own.
pub(super) fn is_of_protocol(text: &str, known: &mut HashSet<String>) -> bool {
    let mut words = Statement::read(text, Dialect::POSTGRES).words().into_iter();
    match (words.next().as_deref(), words.next()) {
        (Some("prepare"), Some(name)) => {
            known.insert(name);
            false
        }
        (Some("deallocate"), Some(name)) => {
            let name = if name == "prepare" { words.next().unwrap_or_default() } else { name };
            name != "all" && !known.remove(&name)
        }
        (Some("execute"), Some(name)) => !known.contains(&name),
        _ => false,
    }
}

/// Whether a text of SQL removes all prepared statements.
fn removes_all(text: &str) -> bool {
    if !first_word(text, Dialect::POSTGRES)
        .is_some_and(|first| ["discard", "deallocate"].iter().any(|word| first.eq_ignore_ascii_case(word)))
    {
        return false;
    }
    let words = Statement::read(text, Dialect::POSTGRES).words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    matches!(words[..], ["discard" | "deallocate", "all"] | ["deallocate", "prepare", "all"])
}

pub(super) fn push(
    out: &mut Vec<u8>,
    text: &str,
    sent: &Sent,
    prepared: &mut HashMap<String, u32>,
    portals: &mut HashMap<String, u32>,
) -> Result<()> {
    let too_many = || Error::usage("a request has more than 65,535 parameters");
    let request = &sent.request;
    let types = Types::written(&sent.types).ok_or_else(too_many)?;
    let parse = |out: &mut Vec<u8>, name: &str| {
        let (name, text, types) = (name.as_bytes(), text.as_bytes(), Types::after_count(&types));
        Request::Parse { name, text, types }.write(out);
    };
    let name = match request.step {
        Step::Text => {
            Request::Query(text.as_bytes()).write(out);
            push_data(out, text, sent);
            if removes_all(text) {
                prepared.clear();
            }
            return Ok(());
        }
        Step::Prepare => {
            let next = prepared.len() as u32;
            let known = prepared.get(text).copied();
            let name = format!("r{}", known.unwrap_or(next));
            if known.is_some() {
                Request::Close(Target::Statement(name.as_bytes())).write(out);
            }
            parse(out, &name);
            prepared.insert(text.to_owned(), known.unwrap_or(next));
            return Ok(());
        }
        Step::Execute => prepared.get(text).map_or_else(String::new, |number| format!("r{number}")),
        Step::Bound => {
            parse(out, "");
            String::new()
        }
    };
    // One whose rows are fetched in parts outlives other executions.
    let known = portals.get(text).copied();
    let number = known.unwrap_or(portals.len() as u32);
    let portal = if request.limit > 0 || request.goes_on { format!("c{number}") } else { String::new() };
    let (portal, statement) = (portal.as_bytes(), name.as_bytes());
    let execute = Request::Execute { portal, limit: request.limit };
    if request.goes_on && known.is_some() {
        execute.write(out);
        return Ok(());
    }
    if request.limit > 0 {
        portals.insert(text.to_owned(), number);
        Request::Close(Target::Portal(portal)).write(out);
    }
    let parameters: Vec<_> =
        request.parameters.iter().map(|one| Ok((one.binary, value(one)?))).collect::<Result<_>>()?;
    let rest = Bind::rest_of(&parameters, &request.formats).ok_or_else(too_many)?;
    Request::Bind(Bind { portal, statement, rest: &rest }).write(out);
    execute.write(out);
    push_data(out, text, sent);
    Ok(())
}

/// Data of COPY, and its end. A server that does not want it passes over it.
fn push_data(out: &mut Vec<u8>, text: &str, sent: &Sent) {
    let data = &sent.data;
    let is_copy = first_word(text, Dialect::POSTGRES).is_some_and(|word| word.eq_ignore_ascii_case("copy"));
    if !data.is_empty() || is_copy {
        data.chunks(PIECE).for_each(|piece| Request::CopyData(piece).write(out));
        if sent.request.error.as_deref() == Some(CANCELED) {
            Request::CopyFail(b"the recorded client ended it").write(out);
        } else {
            Request::CopyDone.write(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_sql_prepared_are_sent_again_and_all_statements_can_be_removed() {
        let mut known = HashSet::new();
        for (text, is_of_protocol) in [
            ("DEALLOCATE pdo_stmt_00000001", true),
            ("PREPARE Mine(int) AS SELECT $1", false),
            ("EXECUTE mine(7)", false),
            ("EXECUTE other (7)", true),
            ("deallocate prepare MINE;", false),
            ("DEALLOCATE mine", true),
            ("DEALLOCATE ALL", false),
            ("SELECT 1", false),
        ] {
            assert_eq!(super::is_of_protocol(text, &mut known), is_of_protocol, "{text}");
        }
        for (text, all) in
            [("DISCARD ALL;", true), ("Deallocate prepare all", true), ("DISCARD PLANS", false)]
        {
            assert_eq!(removes_all(text), all, "{text}");
        }
    }
}
