//! Requests of MySQL and MariaDB.

use super::commands::value;
use super::traffic::Sent;
use crate::prelude::*;
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
        Some("PING") => (0x0e, String::new()),
        Some(name) => (0x02, name.trim_start_matches("INIT_DB ").to_owned()),
        None => (0x03, text),
    };
    match request.step {
        Step::Text | Step::Bound => out.extend(packet(0, &[&[code], rest.as_bytes()].concat())),
        Step::Prepare => {
            if let Some(number) = prepared.remove(&rest) {
                out.extend(packet(0, &[&[0x19][..], &number.to_le_bytes()].concat()));
            }
            out.extend(packet(0, &[&[0x16], rest.as_bytes()].concat()));
        }
        Step::Execute => {
            let number = prepared.get(&rest).copied().unwrap_or(0);
            let mut body = [&[0x17][..], &number.to_le_bytes(), &[0, 1, 0, 0, 0]].concat();
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
                if !parameter.binary || matches!(parameter.kind & 0xff, 7 | 10..=12) {
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
    const LONGEST: usize = 0xff_ffff;
    let mut out = Vec::with_capacity(body.len() + 8);
    let mut pieces = body.chunks(LONGEST);
    loop {
        let piece = pieces.next().unwrap_or_default();
        let [a, b, c, _] = (piece.len() as u32).to_le_bytes();
        out.extend([a, b, c, sequence]);
        out.extend(piece);
        sequence = sequence.wrapping_add(1);
        if piece.len() < LONGEST {
            return out;
        }
    }
}

/// A length of MySQL's protocol (`int<lenenc>`).
fn push_length(out: &mut Vec<u8>, length: usize) {
    let [a, b, c, ..] = (length as u64).to_le_bytes();
    match length {
        0..=250 => out.push(a),
        251..=0xffff => out.extend([0xfc, a, b]),
        0x1_0000..=0xff_ffff => out.extend([0xfd, a, b, c]),
        _ => {
            out.push(0xfe);
            out.extend((length as u64).to_le_bytes());
        }
    }
}
