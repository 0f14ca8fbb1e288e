//! SQL detection: the statements in a client's byte stream (manual, "Message Formats").

const SSL_REQUEST: u32 = 80_877_103;

/// The statements in what a client sent from the start of a connection; `None` if the connection is encrypted.
pub(super) fn statements(sent: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let Some((start, mut sent)) = message(sent) else { return Some(texts) };
    if start.first_chunk::<4>().is_some_and(|number| u32::from_be_bytes(*number) == SSL_REQUEST) {
        return None;
    }
    while let Some((&kind, rest)) = sent.split_first()
        && let Some((body, after)) = message(rest)
    {
        let mut parts = body.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let text = match kind {
            b'Q' => parts.next(),
            // After the statement's name.
            b'P' => parts.nth(1),
            _ => None,
        };
        texts.extend(text.map(std::borrow::Cow::into_owned));
        sent = after;
    }
    Some(texts)
}

/// Splits off a message's body and returns the remaining bytes. The length field counts itself.
fn message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked((u32::from_be_bytes(*length) as usize).checked_sub(4)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_and_parsed_statements_are_found_but_passwords_are_not() {
        let sent =
            b"\0\0\0\x09\0\x03\0\0\0p\0\0\0\x0bsecret\0Q\0\0\0\x09SET \0P\0\0\0\x0as1\0X\0\0Q\0\0\0\x09cut";
        assert_eq!(statements(sent).unwrap(), ["SET ", "X"]);
        assert_eq!(statements(b"\0\0\0\x08\x04\xd2\x16\x2f\x16\x03\x01"), None);
        assert_eq!(statements(b"").unwrap(), [""; 0]);
    }

    mod fuzz {
        #[test]
        fn any_sent_bytes_are_read() {
            bolero::check!(name = "postgres-requests").for_each(|input: &[u8]| {
                let _ = super::statements(input);
            });
        }
    }
}
