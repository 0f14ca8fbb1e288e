//! SQL detection: the statements in a client's byte stream.

/// `COM_QUERY` and `COM_STMT_PREPARE`; the rest of their packet is the statement.
const WITH_TEXT: [u8; 2] = [0x03, 0x16];
/// Length of `Protocol::SSLRequest`, in bytes.
const SSL_REQUEST: usize = 32;

/// The statements in what a client sent from the start of a connection; `None` if the connection is encrypted.
pub(super) fn statements(mut sent: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let mut first = true;
    while let Some((&[a, b, c, number], rest)) = sent.split_first_chunk::<4>() {
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        if first && length == SSL_REQUEST {
            return None;
        }
        first = false;
        let Some((packet, after)) = rest.split_at_checked(length) else { break };
        // A command has sequence number 0. A reply to the server, such as a password, has a higher one.
        if let (0, Some((command, text))) = (number, packet.split_first())
            && WITH_TEXT.contains(command)
        {
            texts.push(String::from_utf8_lossy(text).into_owned());
        }
        sent = after;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unencrypted_commands_are_read() {
        let sent = b"\x08\0\0\x01password\x03\0\0\x02\x03no\x05\0\0\0\x03SET \x02\0\0\0\x16X\x01\0\0\0\x0e\x09\0\0\0\x03cut";
        assert_eq!(statements(sent).unwrap(), ["SET ", "X"]);
        assert_eq!(statements(&[b"\x20\0\0\x01".as_slice(), &[7; 32], b"\x16\x03\x01"].concat()), None);
        assert_eq!(statements(b"").unwrap(), [""; 0]);
    }

    mod fuzz {
        #[test]
        fn any_sent_bytes_are_read() {
            bolero::check!(name = "mysql-requests").for_each(|input: &[u8]| {
                let _ = super::statements(input);
            });
        }
    }
}
