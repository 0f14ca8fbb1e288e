//! Requests of MySQL and MariaDB.

use super::commands::{Sent, value};
use crate::prelude::*;
use kurabe_protocol::mysql::frame;
use kurabe_protocol::mysql::message::{self, command};
use kurabe_wire::view::Step;
use std::collections::HashMap;

/// Appends the commands of a request.
pub(super) fn push(
    out: &mut Vec<u8>,
    text: String,
    sent: &Sent,
    prepared: &mut HashMap<String, u32>,
) -> Result<()> {
    let request = &sent.request;
    let (code, rest) = match text.strip_prefix("COM_") {
        Some("PING") => (command::PING, String::new()),
        Some("SET_OPTION 0") => (command::SET_OPTION, "\0\0".to_owned()),
        Some("SET_OPTION 1") => (command::SET_OPTION, "\x01\0".to_owned()),
        Some(name) => (command::INIT_DB, name.trim_start_matches("INIT_DB ").to_owned()),
        None => (command::QUERY, text),
    };
    match request.step {
        Step::Text | Step::Bound => frame::push(out, 0, &[&[code], rest.as_bytes()].concat()),
        Step::Prepare => {
            if let Some(number) = prepared.remove(&rest) {
                frame::push(out, 0, &[&[command::STMT_CLOSE][..], &number.to_le_bytes()].concat());
            }
            frame::push(out, 0, &[&[command::STMT_PREPARE], rest.as_bytes()].concat());
        }
        Step::Execute => {
            let number = prepared.get(&rest).copied().unwrap_or(0);
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

#[cfg(test)]
mod tests {
    use super::super::family::Family;
    use super::*;
    use kurabe_capture::record::Request;

    #[test]
    fn option_of_several_statements_is_sent_again_with_its_value() {
        let sent = Sent {
            request: Request::default(),
            template: 0,
            types: Vec::new(),
            made: Vec::new(),
            names: Vec::new(),
            data: Vec::new(),
            goes_on: false,
            since: None,
            varies: false,
        };
        let mut out = Vec::new();
        push(&mut out, "COM_SET_OPTION 1".to_owned(), &sent, &mut HashMap::new()).unwrap();
        assert_eq!(out, [3, 0, 0, 0, command::SET_OPTION, 1, 0]);
        let template = "COM_SET_OPTION \0";
        assert!(
            !Family::Mysql.is_left_out(template) && Family::Mysql.effects(template, template).0.is_none()
        );
        assert!(Family::Mysql.is_left_out("COM_STATISTICS"));
    }
}
