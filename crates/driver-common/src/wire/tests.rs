use super::script::{Parts, Script};
use super::*;
use proptest::prelude::*;
use std::io::{Read, Write};

#[test]
fn parts_are_sent_completely_after_short_writes() {
    for piece in [1, 2, 5, 100] {
        let mut wire = Wire::new(Script::in_pieces(Vec::new(), piece));
        wire.push_parts([b"head", b"", b"tail"]).unwrap();
        wire.push_parts([b"", b"long value", b""]).unwrap();
        assert_eq!(wire.stream().sent, b"headtaillong value");
    }
}

#[test]
fn data_before_the_tls_handshake_is_refused() {
    let mut wire = Wire::new(Script::new(b"Sinjected".to_vec()));
    wire.peek(1).unwrap();
    wire.consume(1);
    assert_eq!(wire.into_stream().err().map(|e| e.kind()), Some(ErrorKind::Protocol));
}

#[test]
fn parts_of_an_input_end_with_it() {
    let mut parts = Parts::new(&[0xbf, 4, 58, 2, b'a', b'b', 9, 0x81, b'!']);
    assert_eq!(parts.head(), (64, true));
    assert_eq!(parts.number(), 1082);
    assert_eq!(parts.bytes(), b"ab");
    assert_eq!(parts.byte(), 9);
    assert_eq!(parts.words(&["x", "yz"]), b"yz!");
    assert!(parts.is_empty());
    assert_eq!((parts.byte(), parts.number(), parts.bytes()), (0, 0, &b""[..]));
    assert_eq!(parts.head(), (1, false));
}

#[test]
fn buffer_of_a_task_grows_with_an_answer_of_many_rows() {
    const ROW: usize = 120;
    const ROWS: usize = 400;
    /// Counts receives.
    struct Counting(Script, u32);
    impl Read for Counting {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            self.0.read(buffer)
        }
    }
    impl Write for Counting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    impl Peer for Counting {}
    let task = || {
        let mut wire = Wire::new(Counting(Script::new(vec![7; ROW * ROWS]), 0));
        for _ in 0..ROWS {
            assert_eq!(wire.peek(ROW).unwrap(), [7; ROW]);
            wire.consume(ROW);
        }
        wire.stream().1
    };
    let receives = kurabe_reactor::Reactor::new(vec![task], 64 * 1024).unwrap().run().remove(0).unwrap();
    // Five to grow, and three of its full size.
    assert!(receives <= 10, "{receives}");
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order(
        lengths in prop::collection::vec((0usize..60_000, 0u8..3), 1..8), piece in 1usize..40_000
    ) {
        let total: usize = lengths.iter().map(|(n, _)| n).sum();
        let sent: Vec<u8> = (0..total).map(|i| (i * 31 % 251) as u8).collect();
        let mut wire = Wire::new(Script::in_pieces(sent.clone(), piece));
        let mut at = 0;
        let mut out = Vec::new();
        for (n, how) in lengths {
            match how {
                0 => {
                    prop_assert_eq!(wire.peek(n).unwrap(), &sent[at..at + n]);
                    wire.consume(n);
                }
                1 => wire.skip(n).unwrap(),
                _ => {
                    out.clear();
                    wire.take_into(n, &mut out).unwrap();
                    prop_assert_eq!(&out, &sent[at..at + n]);
                }
            }
            at += n;
        }
        prop_assert_eq!(wire.peek(1).unwrap_err().kind(), ErrorKind::ConnectionLost);
        prop_assert_eq!(wire.take_into(50_000, &mut out).unwrap_err().kind(), ErrorKind::ConnectionLost);
    }
}
