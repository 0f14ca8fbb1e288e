//! Requests of MySQL and MariaDB.

use super::commands::{Sent, value};
use crate::prelude::*;
use kurabe_protocol::mysql::frame::{MAX, Packet};
use kurabe_protocol::mysql::message::{command, kind, push_length};
use kurabe_wire::view::Step;
use std::collections::HashMap;

/// Commands: MySQL internals manual, "Command Phase".
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
        Step::Text | Step::Bound => out.extend(packet(0, &[&[code], rest.as_bytes()].concat())),
        Step::Prepare => {
            if let Some(number) = prepared.remove(&rest) {
                out.extend(packet(0, &[&[command::STMT_CLOSE][..], &number.to_le_bytes()].concat()));
            }
            out.extend(packet(0, &[&[command::STMT_PREPARE], rest.as_bytes()].concat()));
        }
        Step::Execute => {
            let number = prepared.get(&rest).copied().unwrap_or(0);
            let mut body = [&[command::STMT_EXECUTE][..], &number.to_le_bytes(), &[0, 1, 0, 0, 0]].concat();
            let values: Vec<Option<&[u8]>> = request.parameters.iter().map(value).collect::<Result<_>>()?;
            let mut nulls = vec![0; values.len().div_ceil(8)];
            for (n, _) in values.iter().enumerate().filter(|(_, value)| value.is_none()) {
                nulls[n / 8] |= 1 << (n % 8);
            }
            body.extend(nulls);
            if !values.is_empty() {
                body.push(1);
                body.extend(request.parameters.iter().flat_map(|one| (one.kind as u16).to_le_bytes()));
            }
            for (parameter, bytes) in request.parameters.iter().zip(values) {
                let Some(bytes) = bytes else { continue };
                // Dates and times have one byte of length.
                if !parameter.binary
                    || matches!(parameter.kind as u8, kind::TIMESTAMP | kind::DATE..=kind::DATETIME)
                {
                    push_length(&mut body, bytes.len());
                }
                body.extend(bytes);
            }
            out.extend(packet(0, &body));
        }
    }
    Ok(())
}

/// A command of MySQL in packets.
pub(super) fn packet(mut sequence: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 8);
    let mut pieces = body.chunks(MAX);
    loop {
        let piece = pieces.next().unwrap_or_default();
        out.extend(Packet { length: piece.len(), sequence }.bytes());
        out.extend(piece);
        sequence = sequence.wrapping_add(1);
        if piece.len() < MAX {
            return out;
        }
    }
}
