//! Files of packets as other programs write them.

use super::stream::FIN;
use super::*;
use crate::record::Record;

/// A conversation of Redis: whether the client speaks, the flags, the bytes.
const ASKED: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
const TOLD: &[u8] = b"$1\r\n7\r\n";

/// An IPv4 or IPv6 packet with a segment.
fn packet(is_v6: bool, to_server: bool, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let (from, to): (u16, u16) = if to_server { (40_000, 6_379) } else { (6_379, 40_000) };
    let mut tcp = [from.to_be_bytes(), to.to_be_bytes()].concat();
    tcp.extend(sequence.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
    tcp.extend(payload);
    let mut ip = if is_v6 {
        let mut ip = vec![0x60, 0, 0, 0];
        ip.extend((tcp.len() as u16 + 8).to_be_bytes());
        // Options of hops come before TCP.
        ip.extend([0, 64]);
        ip.extend([0; 32]);
        ip.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        ip
    } else {
        let mut ip = vec![0x45, 0];
        ip.extend((tcp.len() as u16 + 20).to_be_bytes());
        ip.extend([0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        ip
    };
    ip.extend(tcp);
    ip
}

/// The packets of a connection with one request, whose segments are in this order.
fn conversation(is_v6: bool) -> Vec<Vec<u8>> {
    let one = |to_server, sequence, flags, payload| packet(is_v6, to_server, sequence, flags, payload);
    vec![
        one(true, 100, SYN, &[]),
        one(false, 900, SYN | ACK, &[]),
        // The second half comes first, and then twice.
        one(true, 111, ACK, &ASKED[10..]),
        one(true, 101, ACK, &ASKED[..10]),
        one(true, 111, ACK, &ASKED[10..]),
        one(false, 901, ACK, TOLD),
        one(true, 101 + ASKED.len() as u32, FIN | ACK, &[]),
        one(false, 901 + TOLD.len() as u32, FIN | ACK, &[]),
    ]
}

/// The header that a link puts before a packet.
fn linked(link: u32, packet: &[u8]) -> Vec<u8> {
    let kind: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    let header = match link {
        0 => vec![2, 0, 0, 0],
        1 => [&[0; 12][..], &[0x81, 0, 0, 5], &kind].concat(),
        113 => [&[0; 14][..], &kind].concat(),
        276 => [&kind[..], &[0; 18]].concat(),
        _ => Vec::new(),
    };
    [header, packet.to_vec()].concat()
}

fn number(big: bool, number: u32) -> [u8; 4] {
    if big { number.to_be_bytes() } else { number.to_le_bytes() }
}

/// A file of libpcap, with a packet each millisecond.
fn pcap(big: bool, link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let words = |all: &[u32]| all.iter().flat_map(|one| number(big, *one)).collect::<Vec<u8>>();
    let mut file = words(&[0xa1b2_c3d4, 0x0002_0004, 0, 0, 262_144, link]);
    for (at, packet) in packets.iter().enumerate() {
        let packet = linked(link, packet);
        file.extend(words(&[1_700_000_000, at as u32 * 1_000, packet.len() as u32, packet.len() as u32]));
        file.extend(packet);
    }
    file
}

/// The same as pcapng, with times in nanoseconds and blocks that are passed over.
fn pcapng(big: bool, packets: &[Vec<u8>]) -> Vec<u8> {
    let words = |all: &[u32]| all.iter().flat_map(|one| number(big, *one)).collect::<Vec<u8>>();
    let block = |kind: u32, body: Vec<u8>| {
        let length = body.len() as u32 + 12;
        [words(&[kind, length]), body, words(&[length])].concat()
    };
    let short = |number: u16| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let option = [&short(9)[..], &short(1), &[9, 0, 0, 0]].concat();
    let mut file = block(0x0a0d_0d0a, words(&[0x1a2b_3c4d, 0x0001_0000, u32::MAX, u32::MAX]));
    file.extend(block(1, [&short(1)[..], &short(0), &words(&[0]), &option].concat()));
    file.extend(block(5, words(&[0, 0])));
    for (at, packet) in packets.iter().enumerate() {
        let packet = linked(1, packet);
        let time = 1_700_000_000_000_000_000_u64 + at as u64 * 1_000_000;
        let mut body =
            words(&[0, (time >> 32) as u32, time as u32, packet.len() as u32, packet.len() as u32]);
        body.extend(&packet);
        body.resize(body.len().next_multiple_of(4), 0);
        file.extend(block(6, body));
    }
    file
}

/// The records that are made of a file.
fn made(bytes: &[u8]) -> Result<(Vec<Record>, Totals, Option<String>, About)> {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    std::fs::write(&from, bytes).unwrap();
    let protocol = kurabe_wire::registry::of_scheme("redis").unwrap();
    let mut about = About { protocol: "redis".to_owned(), ..About::default() };
    let (totals, rest) = record(Input::open(&from)?, (None, 6_379), protocol, &to, &mut about)?;
    let mut records = Vec::new();
    crate::file::read(&to, |_, record| records.push(record)).unwrap();
    Ok((records, totals, rest, about))
}

fn why(records: &[Record]) -> Vec<&str> {
    let each = records.iter().filter_map(|one| match one {
        Record::Close { unreadable: Some(why), .. } => Some(why.as_str()),
        _ => None,
    });
    each.collect()
}

#[test]
fn every_format_order_of_bytes_and_link_gives_the_same_capture() {
    let v4 = conversation(false);
    let mut files = vec![pcapng(false, &v4), pcapng(true, &v4), pcapng(false, &conversation(true))];
    for link in [0, 1, 101, 113, 276] {
        files.extend([pcap(false, link, &v4), pcap(true, link, &v4), pcap(false, link, &conversation(true))]);
    }
    for (n, file) in files.iter().enumerate() {
        let (records, totals, rest, about) = made(file).unwrap();
        assert_eq!(about.began_ms, 1_700_000_000_000);
        assert_eq!((totals.connections, totals.requests, rest), (1, 1, None), "{n}");
        let Some(Record::Request(request)) = records.iter().find(|one| matches!(one, Record::Request(_)))
        else {
            panic!("{n}: {records:?}")
        };
        assert_eq!((request.at, request.time, request.rows), (3_000_000, Some(2_000_000), 1), "{n}");
        assert!(why(&records).is_empty(), "{n}: {records:?}");
    }
}

#[test]
fn connections_that_cannot_be_put_together_are_said_with_the_reason() {
    let all = conversation(false);
    let without = |gone: usize| {
        let kept: Vec<Vec<u8>> =
            all.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, one)| one.clone()).collect();
        let (records, ..) = made(&pcap(false, 1, &kept)).unwrap();
        why(&records).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(without(0), [BEFORE]);
    assert_eq!(without(1), [MISSING]);
    assert_eq!(without(3), ["the server answered without a request"]);
    // It came twice.
    assert!(without(2).is_empty());
    // A client that closes first acknowledges what comes then, and resets the connection.
    let mut early = all[..2].to_vec();
    early.push(packet(false, true, 101, FIN | ACK, &[]));
    early.push(packet(false, false, 901, ACK, b"+"));
    early.push(packet(false, true, 102, ACK, &[]));
    early.push(packet(false, true, 102, RST, &[]));
    let (records, ..) = made(&pcap(false, 1, &early)).unwrap();
    assert!(why(&records).is_empty(), "{records:?}");
    // A request without an answer is recorded, and the gap is said.
    assert_eq!(without(5), [MISSING]);
    let mut cut = all.clone();
    cut[3].truncate(45);
    let (records, ..) = made(&pcap(false, 1, &cut)).unwrap();
    assert_eq!(why(&records), [CUT]);
}

#[test]
fn file_that_is_cut_anywhere_gives_what_was_before_and_damage_is_an_error() {
    for file in [pcap(false, 1, &conversation(false)), pcapng(false, &conversation(false))] {
        let whole = made(&file).unwrap().1;
        for end in (file.len() / 3..file.len()).step_by(5) {
            match made(&file[..end]) {
                Ok((_, totals, ..)) => assert!(totals.requests <= whole.requests),
                Err(error) => assert!(error.to_string().contains("port 6379"), "{end}: {error}"),
            }
        }
        let rest = made(&file[..file.len() - 5]).unwrap().2;
        assert!(rest.is_some_and(|why| why.contains("ends within a packet")));
        let mut state = 7_u64;
        for _ in 0..300 {
            let mut damaged = file.clone();
            for _ in 0..3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                let at = 44 + (state >> 33) as usize % (damaged.len() - 44);
                damaged[at] = (state >> 24) as u8;
            }
            // Whatever it gives, it ends.
            let _ = made(&damaged);
        }
    }
}
