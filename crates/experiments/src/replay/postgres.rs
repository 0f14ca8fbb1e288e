//! Requests of PostgreSQL.

use super::commands::{PIECE, Sent, value};
use crate::prelude::*;
use kurabe_protocol::postgres::frame::frontend;
use kurabe_protocol::sql::{Dialect, Statement, first_word};
use kurabe_wire::view::Step;
use std::collections::{HashMap, HashSet};

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

/// Message formats: PostgreSQL manual, "Frontend/Backend Protocol: Message Formats".
pub(super) fn push(
    out: &mut Vec<u8>,
    text: &str,
    sent: &Sent,
    prepared: &mut HashMap<String, u32>,
    portals: &mut HashMap<String, u32>,
) -> Result<()> {
    let request = &sent.request;
    let parse = |out: &mut Vec<u8>, name: &str, types: &[u32]| {
        let mut body = [name.as_bytes(), b"\0", text.as_bytes(), b"\0"].concat();
        push_count(&mut body, types.len())?;
        body.extend(types.iter().flat_map(|kind| kind.to_be_bytes()));
        message(out, frontend::PARSE, &body);
        Ok(())
    };
    let name = match request.step {
        Step::Text => {
            push_text(out, text);
            push_data(out, text, &sent.data);
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
                message(out, frontend::CLOSE, &[b"S", name.as_bytes(), b"\0"].concat());
            }
            parse(out, &name, &sent.types)?;
            prepared.insert(text.to_owned(), known.unwrap_or(next));
            return Ok(());
        }
        Step::Execute => prepared.get(text).map_or_else(String::new, |number| format!("r{number}")),
        Step::Bound => {
            parse(out, "", &sent.types)?;
            String::new()
        }
    };
    // One whose rows are fetched in parts outlives other executions.
    let known = portals.get(text).copied();
    let number = known.unwrap_or(portals.len() as u32);
    let portal = if request.limit > 0 || request.goes_on { format!("c{number}\0") } else { "\0".to_owned() };
    let execute = [portal.as_bytes(), &request.limit.to_be_bytes()].concat();
    if request.goes_on && known.is_some() {
        message(out, frontend::EXECUTE, &execute);
        return Ok(());
    }
    if request.limit > 0 {
        portals.insert(text.to_owned(), number);
        message(out, frontend::CLOSE, &[b"P", portal.as_bytes()].concat());
    }
    let mut bind = [portal.as_bytes(), name.as_bytes(), b"\0"].concat();
    push_count(&mut bind, request.parameters.len())?;
    for parameter in &request.parameters {
        bind.extend([0, u8::from(parameter.binary)]);
    }
    push_count(&mut bind, request.parameters.len())?;
    for parameter in &request.parameters {
        match value(parameter)? {
            None => bind.extend((-1_i32).to_be_bytes()),
            Some(bytes) => {
                bind.extend((bytes.len() as u32).to_be_bytes());
                bind.extend(bytes);
            }
        }
    }
    push_count(&mut bind, request.formats.len())?;
    bind.extend(request.formats.iter().flat_map(|binary| [0, u8::from(*binary)]));
    message(out, frontend::BIND, &bind);
    message(out, frontend::EXECUTE, &execute);
    push_data(out, text, &sent.data);
    Ok(())
}

/// A statement as a text.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    message(out, frontend::QUERY, &[text.as_bytes(), b"\0"].concat());
}

/// A message of PostgreSQL.
pub(super) fn message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}

/// Data of COPY, and its end. A server that does not want it passes over it.
fn push_data(out: &mut Vec<u8>, text: &str, data: &[u8]) {
    let is_copy = first_word(text, Dialect::POSTGRES).is_some_and(|word| word.eq_ignore_ascii_case("copy"));
    if !data.is_empty() || is_copy {
        data.chunks(PIECE).for_each(|piece| message(out, frontend::COPY_DATA, piece));
        message(out, frontend::COPY_DONE, b"");
    }
}

fn push_count(out: &mut Vec<u8>, count: usize) -> Result<()> {
    let count =
        u16::try_from(count).map_err(|_| Error::usage("a request has more than 65,535 parameters"))?;
    out.extend(count.to_be_bytes());
    Ok(())
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
