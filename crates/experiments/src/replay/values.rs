//! The values of requests and answers that may be followed: where they stand, and the forms that they have.

use kurabe_capture::record::{Parameter, Request};
use kurabe_protocol::bytes::integer;
use kurabe_protocol::call::Language;
use kurabe_wire::view::{Step, moment_like, uuid};
use std::ops::Range;

/// The values of a request with their places: literals without quotes, and whether they have some, and parameters.
pub(super) fn values(request: &Request) -> impl Iterator<Item = (usize, Option<(&[u8], bool)>)> {
    // What was prepared is found by its text.
    let is_text = matches!(request.step, Step::Text | Step::Bound);
    let literal = |text: &String| {
        let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        (inner.map_or(0..text.len(), |inner| 1..inner.len() + 1), inner.is_some())
    };
    let literals = request.literals.iter().enumerate().filter(move |_| is_text);
    let literals = literals.map(move |(n, text)| {
        let (at, quote) = literal(text);
        (n, text.as_bytes().get(at).map(|text| (text, quote)))
    });
    let parameters = request.parameters.iter().enumerate();
    let parameters = parameters.map(|(n, one)| (PARAMETERS + n, one.bytes().map(|value| (value, false))));
    literals.chain(parameters)
}

/// The place of the first parameter, behind those of literals.
pub(super) const PARAMETERS: usize = 1 << 20;

pub(super) fn put(request: &mut Request, place: usize, value: Vec<u8>, quote: bool) {
    if let Some(place) = place.checked_sub(PARAMETERS) {
        if let Some(Parameter { value: given, .. }) = request.parameters.get_mut(place) {
            *given = value.into();
        }
    } else if let Some(literal) = request.literals.get_mut(place) {
        let text = String::from_utf8_lossy(&value);
        *literal = if quote { format!("'{text}'") } else { text.into_owned() };
    }
}

/// The elements of an array of PostgreSQL of one dimension, as a text or in binary form (dimensions, flags, type, length, lower bound,
/// and each element behind its length); all else is one.
pub(super) fn elements(value: &[u8]) -> Vec<Range<usize>> {
    if let Some(inner) = value.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}")) {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b",-".contains(byte);
        if inner.iter().all(is_plain) {
            let mut at = 1;
            let one = |part: &[u8]| {
                let from = at;
                at += part.len() + 1;
                from..from + part.len()
            };
            return inner.split(|byte| *byte == b',').map(one).collect();
        }
    }
    let word = |at: usize| value.get(at..)?.first_chunk().map(|word| u32::from_be_bytes(*word) as usize);
    if let (Some(1), Some(0 | 1), Some(count)) = (word(0), word(4), word(12)) {
        let mut at = 20_usize;
        let mut one = || {
            let from = at + 4;
            at = from.checked_add(word(at)?)?;
            value.get(from..at).map(|_| from..at)
        };
        let found: Option<Vec<_>> = (0..count.min(value.len())).map(|_| one()).collect();
        if let Some(found) = found.filter(|_| at == value.len()) {
            return found;
        }
    }
    std::iter::once(0..value.len()).collect()
}

/// Whether a value that the server made is followed as a text, and is no number and no moment.
pub(super) fn is_text(value: &[u8]) -> bool {
    uuid(value).is_some() || value.contains(&b'-') && moment_like(value, 0).is_none()
}

/// What a text is known by: a UUID by its bytes.
pub(super) fn name(value: &[u8]) -> Vec<u8> {
    uuid(value).map_or_else(|| value.to_vec(), |uuid| uuid.to_vec())
}

/// A text in the form of another one.
pub(super) fn text_like(form: &[u8], text: &[u8]) -> Vec<u8> {
    match uuid(text) {
        Some(uuid) if form.len() == uuid.len() => uuid.to_vec(),
        Some(uuid) => {
            let digits = format!("{:032x}", u128::from_be_bytes(uuid));
            let parts =
                [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part).unwrap_or_default());
            parts.join("-").into_bytes()
        }
        None => text.to_vec(),
    }
}

/// The whole number that a value has: as a text, or in two, four or eight bytes.
pub(super) fn number(value: &[u8], language: Language) -> Option<i128> {
    if value.len() <= 20 && !value.is_empty() && value.iter().all(u8::is_ascii_digit) {
        return std::str::from_utf8(value).ok()?.parse().ok();
    }
    let is_number = language.sql().is_some() && matches!(value.len(), 2 | 4 | 8);
    integer(value, language.is_mysql()).filter(|_| is_number).map(i128::from)
}

/// A number in the form of another one.
pub(super) fn number_like(form: &[u8], number: i128, language: Language) -> Option<Vec<u8>> {
    if form.iter().all(u8::is_ascii_digit) {
        return Some(number.to_string().into_bytes());
    }
    let number = i64::try_from(number).ok()?;
    let length = if matches!(form.len(), 2 | 4) { form.len() } else { 8 };
    let mut bytes = number.to_le_bytes()[..length].to_vec();
    let fits = integer(&bytes, true) == Some(number);
    if !language.is_mysql() {
        bytes.reverse();
    }
    fits.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_of_arrays_are_found_in_both_forms() {
        let of = |value: &[u8]| elements(value).into_iter().map(|at| value[at].to_vec()).collect::<Vec<_>>();
        assert_eq!(of(b"{8,17}"), [b"8".to_vec(), b"17".to_vec()]);
        assert_eq!((of(b"8"), of(b"{\"a\": 8}")), (vec![b"8".to_vec()], vec![b"{\"a\": 8}".to_vec()]));
        let header = [1, 0, 23, 2, 1].map(u32::to_be_bytes).concat();
        let array = [&header[..], &[0, 0, 0, 4, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0, 17]].concat();
        assert_eq!(of(&array), [8_u32.to_be_bytes().to_vec(), 17_u32.to_be_bytes().to_vec()]);
        assert_eq!(of(&array[..30]), [array[..30].to_vec()]);
    }

    #[test]
    fn literal_keeps_its_quotes() {
        let mut request = Request { literals: vec!["'a'".to_owned()], ..Request::default() };
        put(&mut request, 0, b"b".to_vec(), true);
        assert_eq!(request.literals, ["'b'"]);
    }
}
