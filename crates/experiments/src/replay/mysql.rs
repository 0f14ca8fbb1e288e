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
