//! Text that is not UTF-8 is an error and does not cause a panic in a crate.

use super::server::*;
use kurabe_core::ErrorKind;
use std::io::{Read, Write};

#[test]
fn postgres_text_that_is_not_utf8_is_protocol_error() {
    let _alone = alone();
    let column = [b"\0\x01a\0".as_slice(), &[0; 6], &25u32.to_be_bytes(), &[0xff; 6], &[0; 2]].concat();
    let row = b"\0\x01\0\0\0\x01\xff";
    let rows =
        [message(b'T', &column), message(b'D', row), message(b'C', b"SELECT 1\0"), message(b'Z', b"I")];
    let rows = rows.concat();
    let port = serve(move |mut stream| {
        let mut answer = postgres_login();
        while stream.read(&mut [0; 4_096]).is_ok_and(|got| got > 0) {
            if stream.write_all(&answer).is_err() {
                return;
            }
            answer.clone_from(&rows);
        }
    });
    let error = describe(&format!("{POSTGRES}?client=driver"), port);
    assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
}
