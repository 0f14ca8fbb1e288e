//! What a client says, read from its bytes: the statements among them.

/// `COM_QUERY` and `COM_STMT_PREPARE`, whose text is the rest of their packet.
const WITH_TEXT: [u8; 2] = [0x03, 0x16];
/// `Protocol::SSLRequest` has no more than this.
const SSL_REQUEST: usize = 32;

/// The texts of all statements in what a client sent from the beginning of a connection on; nothing where it is encrypted.
pub(super) fn statements(mut said: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let mut first = true;
    while let Some((&[a, b, c, number], rest)) = said.split_first_chunk::<4>() {
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        if first && length == SSL_REQUEST {
            return None;
        }
        first = false;
        let Some((packet, after)) = rest.split_at_checked(length) else { break };
        // A command begins a conversation; what answers the server, as a password does, goes on with one.
        if let (0, Some((command, text))) = (number, packet.split_first())
            && WITH_TEXT.contains(command)
        {
            texts.push(String::from_utf8_lossy(text).into_owned());
        }
        said = after;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn commands_are_told_from_answers_and_encrypted_ones_are_not_read() {
        let said = b"\x08\0\0\x01password\x03\0\0\x02\x03no\x05\0\0\0\x03SET \x02\0\0\0\x16X\x01\0\0\0\x0e\x09\0\0\0\x03cut";
        assert_eq!(statements(said).unwrap(), ["SET ", "X"]);
        assert_eq!(statements(&[b"\x20\0\0\x01".as_slice(), &[7; 32], b"\x16\x03\x01"].concat()), None);
        assert_eq!(statements(b"").unwrap(), [""; 0]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(said: Vec<u8>) {
            let _ = statements(&said);
        }
    }
}
