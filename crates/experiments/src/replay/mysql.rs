//! Requests of MySQL and MariaDB.

use super::commands::{Sent, value};
use crate::prelude::*;
use kurabe_protocol::mysql::frame;
use kurabe_protocol::mysql::message::{self, command};
use kurabe_wire::view::Step;
use std::borrow::Cow;
use std::collections::HashMap;

pub(super) fn push(
    out: &mut Vec<u8>,
    text: &str,
    sent: &Sent,
    prepared: &mut HashMap<String, u32>,
) -> Result<()> {
    let request = &sent.request;
    match request.step {
        Step::Text | Step::Bound => {
            let (code, rest) = command(text);
            frame::push(out, 0, &[&[code], &rest[..]].concat());
        }
        Step::Prepare => {
            if let Some(number) = prepared.remove(text) {
                frame::push(out, 0, &[&[command::STMT_CLOSE][..], &number.to_le_bytes()].concat());
            }
            frame::push(out, 0, &[&[command::STMT_PREPARE], text.as_bytes()].concat());
        }
        Step::Execute => {
            let number = prepared.get(text).copied().unwrap_or(0);
            let parameters: Vec<_> = request
                .parameters
                .iter()
                .map(|one| Ok((one.kind as u16, one.binary, value(one)?)))
                .collect::<Result<_>>()?;
            frame::push(out, 0, &message::execution(number, &parameters));
        }
    }
    Ok(())
}

/// The statement that gives a session a setting.
pub(super) fn set(name: &str, value: &str) -> Result<String> {
    if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b",_".contains(&byte)) {
        return Err(Error::usage(format!("the capture has {name} = {value}, which is no value of it")));
    }
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    // MySQL does not know this mode any more, and it is only about GRANT.
    let known = |mode: &&str| *mode != "NO_AUTO_CREATE_USER";
    let value = value.split(',').filter(known).collect::<Vec<_>>().join(",");
    Ok(if is_number { format!("SET {name} = {value}") } else { format!("SET {name} = '{value}'") })
}

/// The command with this text, and what follows its code.
fn command(text: &str) -> (u8, Cow<'_, [u8]>) {
    match text.strip_prefix("COM_") {
        Some("PING") => (command::PING, Cow::Borrowed(&[])),
        Some(name) => match name.strip_prefix("SET_OPTION ").map(str::parse::<u16>) {
            Some(Ok(option)) => (command::SET_OPTION, Cow::Owned(option.to_le_bytes().to_vec())),
            _ => (command::INIT_DB, Cow::Borrowed(name.strip_prefix("INIT_DB ").unwrap_or(name).as_bytes())),
        },
        None => (command::QUERY, Cow::Borrowed(text.as_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::commands::Judged;
    use super::*;
    use kurabe_protocol::call::{Call, Language};
    use kurabe_protocol::sql::Dialect;

    #[test]
    fn option_of_several_statements_is_sent_again_with_its_value() {
        let mut out = Vec::new();
        push(&mut out, "COM_SET_OPTION 1", &Sent::default(), &mut HashMap::new()).unwrap();
        assert_eq!(out, [3, 0, 0, 0, command::SET_OPTION, 1, 0]);
        // The server refuses it, and is asked so again.
        assert_eq!(super::command("COM_SET_OPTION 258"), (command::SET_OPTION, vec![2, 1].into()));
        let judged =
            |text: &str| Judged::read(&Call::Sql(text, Dialect::MYSQL), Language::Sql(Dialect::MYSQL));
        let option = judged("COM_SET_OPTION \0");
        assert!(!option.is_left_out && option.writes.is_some());
        assert!(judged("COM_STATISTICS").is_left_out);
    }
}
