use super::*;
use crate::wire::script::Script;
use proptest::prelude::*;

fn framed(compression: Compression, answers: Vec<u8>, piece: usize) -> Framed<Script> {
    let mut framed = Framed::plain(Script::in_pieces(answers, piece));
    framed.compress(compression).unwrap();
    framed
}

/// The frames of these writes, as the other end would send them.
fn frames(compression: Compression, writes: &[Vec<u8>]) -> Vec<u8> {
    let mut framed = framed(compression, Vec::new(), usize::MAX);
    for bytes in writes {
        framed.write_all(bytes).unwrap();
    }
    framed.inner.sent
}

fn read_all(compression: Compression, answers: Vec<u8>, piece: usize, room: usize) -> io::Result<Vec<u8>> {
    let mut framed = framed(compression, answers, piece);
    let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
    loop {
        match framed.read(&mut buffer)? {
            0 => return Ok(all),
            got => all.extend_from_slice(&buffer[..got]),
        }
    }
}

const BOTH: [Compression; 2] = [Compression::Zlib, Compression::Zstd];

proptest! {
    #[test]
    fn what_was_written_is_read_whatever_the_pieces(
        writes in prop::collection::vec((0usize..3_000, any::<u8>(), any::<bool>()), 1..6),
        piece in 1usize..5_000,
        room in 1usize..5_000,
    ) {
        let content = |(length, seed, random): &(usize, u8, bool)| -> Vec<u8> {
            let byte = |at: usize| (at * at + usize::from(*seed)) as u8;
            (0..*length).map(|at| if *random { byte(at) } else { *seed }).collect()
        };
        let writes: Vec<Vec<u8>> = writes.iter().map(content).collect();
        for compression in BOTH {
            let read = read_all(compression, frames(compression, &writes), piece, room).unwrap();
            prop_assert_eq!(&read, &writes.concat());
        }
    }
}

#[test]
fn equal_bytes_are_compressed_and_short_or_random_ones_are_sent_as_they_are() {
    let mut rng = random_bytes();
    for compression in BOTH {
        let equal = frames(compression, &[vec![b'X'; 10_000]]);
        assert!(equal.len() < 200, "{compression}: {}", equal.len());
        assert_eq!(equal[4..7], [0x10, 0x27, 0], "the length before compression");
        let short = frames(compression, &[vec![b'X'; MIN - 1]]);
        assert_eq!((short.len(), &short[..7]), (Compressed::LENGTH + MIN - 1, &[49, 0, 0, 0, 0, 0, 0][..]));
        let random: Vec<u8> = (0..10_000).map(|_| rng()).collect();
        let sent = frames(compression, std::slice::from_ref(&random));
        assert_eq!((sent.len(), &sent[4..7]), (Compressed::LENGTH + random.len(), &[0, 0, 0][..]));
    }
}

/// Bytes that do not compress (xorshift, Marsaglia 2003).
fn random_bytes() -> impl FnMut() -> u8 {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    }
}

#[test]
fn frames_are_numbered_from_each_command_and_checked() {
    let content = [vec![1; 100], vec![2; 100]];
    let both = frames(Compression::Zlib, &content);
    let second = both.len() / 2;
    assert_eq!((both[3], both[second + 3]), (0, 1));
    let mut skipped = both.clone();
    skipped[second + 3] = 2;
    let error = read_all(Compression::Zlib, skipped, usize::MAX, 64).unwrap_err().to_string();
    assert!(error.contains("number 2, expected 1"), "{error}");
    // A command starts anew.
    let mut framed = framed(Compression::Zlib, Vec::new(), usize::MAX);
    framed.write_all(&content[0]).unwrap();
    framed.begin_command();
    framed.write_all(&content[1]).unwrap();
    assert_eq!(framed.inner.sent[second + 3], 0);
}

#[test]
fn frame_with_a_false_length_or_cut_content_is_an_error() {
    for compression in BOTH {
        let right = frames(compression, &[vec![7; 1_000]]);
        for (at, change) in [(4, 1_u8), (4, 0xff), (5, 4)] {
            let mut wrong = right.clone();
            wrong[at] = wrong[at].wrapping_add(change);
            assert!(read_all(compression, wrong, usize::MAX, 100).is_err(), "{compression} {at} {change}");
        }
        for cut in 1..right.len() {
            let error = read_all(compression, right[..cut].to_vec(), usize::MAX, 100).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{compression} {cut}");
        }
    }
}

#[test]
fn parts_of_a_vectored_write_share_a_frame() {
    let mut framed = framed(Compression::Zstd, Vec::new(), usize::MAX);
    let (header, body) = ([1, 2, 3, 4], vec![9; 5_000]);
    let parts = [IoSlice::new(&header), IoSlice::new(&body)];
    assert_eq!(framed.write_vectored(&parts).unwrap(), 5_004);
    let sent = std::mem::take(&mut framed.inner.sent);
    assert!(sent.len() < 100, "{}", sent.len());
    assert_eq!(read_all(Compression::Zstd, sent, 3, 10).unwrap(), [&header[..], &body].concat());
}

mod fuzz {
    use super::*;

    #[test]
    fn any_frames_are_read_or_refused() {
        bolero::check!(name = "mysql-compressed-frames").for_each(|input: &[u8]| {
            for compression in BOTH {
                let _ = read_all(compression, input.to_vec(), 7, 1_000);
            }
        });
    }
}
