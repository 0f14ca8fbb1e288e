//! The content of blocks: pseudo-random bytes that both ends know, and in front of them the number of the block.

/// Length from which a block begins with its number. Shorter blocks have none.
const NUMBERED: usize = 16;
/// The length of a number, in bytes.
const NUMBER: usize = 8;

/// A block of this length, with number 0. Its bytes do not compress and do not repeat at short distances.
pub fn block(length: usize) -> Vec<u8> {
    let mut state = 0x6b75_7261_6265_u64;
    let mut bytes = Vec::with_capacity(length.next_multiple_of(8));
    while bytes.len() < length {
        bytes.extend_from_slice(&next(&mut state).to_le_bytes());
    }
    bytes.truncate(length);
    set_number(&mut bytes, 0);
    bytes
}

/// `SplitMix64` (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Writes the number of a block into it, if it is long enough to have one.
#[inline]
pub fn set_number(block: &mut [u8], number: u64) {
    if block.len() >= NUMBERED {
        block[..NUMBER].copy_from_slice(&number.to_le_bytes());
    }
}

/// The position of the first byte of `received` that differs from the block with this number, of which `block` is one;
/// `None` if all are equal. `received` may be the beginning of a block.
#[inline]
pub fn first_difference(received: &[u8], block: &[u8], number: u64) -> Option<usize> {
    let number = number.to_le_bytes();
    let head = if block.len() >= NUMBERED { &number[..] } else { &block[..block.len().min(NUMBER)] };
    let (first, rest) = received.split_at(received.len().min(head.len()));
    if first == &head[..first.len()] && rest == &block[head.len()..head.len() + rest.len()] {
        return None;
    }
    let expected = head.iter().chain(&block[head.len()..]);
    received.iter().zip(expected).position(|(a, b)| a != b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_changed_byte_and_each_other_number_is_found() {
        for length in [1, 7, 8, 15, 16, 17, 100, 8_192] {
            let expected = block(length);
            let mut received = expected.clone();
            set_number(&mut received, 7);
            let number = if length >= NUMBERED { 7 } else { 0 };
            assert_eq!(first_difference(&received, &expected, number), None, "{length}");
            assert_eq!(first_difference(&received[..length / 2], &expected, number), None, "{length}");
            for at in [0, length / 2, length - 1] {
                received[at] ^= 1;
                assert_eq!(first_difference(&received, &expected, number), Some(at), "{length}");
                received[at] ^= 1;
            }
            if length >= NUMBERED {
                assert_eq!(first_difference(&received, &expected, 8), Some(0), "{length}");
            }
        }
    }

    #[test]
    fn blocks_begin_alike_and_have_no_short_period() {
        let long = block(64 * 1024);
        assert_eq!(long[..100], block(100)[..]);
        for period in [8, 64, 512, 4_096] {
            assert_ne!(long[NUMBERED..][..period], long[NUMBERED + period..][..period]);
        }
    }
}
