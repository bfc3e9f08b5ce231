//! Strings of bits: the one Huffman code of header compression (RFC 7541, appendix B), read.

use super::Malformed;

/// How many bits each byte's code has. The code is canonical, shorter codes before longer and equal
/// lengths in the order of their bytes, so that the lengths tell the codes.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

/// The longest code. The last of this length is none of a byte: it is EOS.
const LONGEST: usize = 30;

/// What is left to give away after every byte has its code.
const EOS: u32 = (1 << LONGEST) - 1;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Level {
    /// The first code, and how many codes are shorter.
    first: u32,
    shorter: u32,
    /// The first code that is longer, as the beginning of 32 bits.
    end: u32,
}

struct Code {
    /// A byte and the length of its code, for every eight bits that begin with one; a length of
    /// zero if the code is longer than that.
    short: [(u8, u8); 256],
    /// Bytes in the order of their codes.
    order: [u8; 256],
    levels: [Level; LONGEST + 1],
}

static CODE: Code = code();

const fn code() -> Code {
    let none = Level { first: 0, shorter: 0, end: 0 };
    let mut made = Code { short: [(0, 0); 256], order: [0; 256], levels: [none; LONGEST + 1] };
    let (mut next, mut given, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        next <<= 1;
        made.levels[length] = Level { first: next, shorter: given as u32, end: 0 };
        let mut byte = 0;
        while byte < LENGTHS.len() {
            if LENGTHS[byte] as usize == length {
                let mut beginning = if length <= 8 { (next as usize) << (8 - length) } else { 256 };
                while beginning < 256 && beginning >> (8 - length) == next as usize {
                    made.short[beginning] = (byte as u8, length as u8);
                    beginning += 1;
                }
                made.order[given] = byte as u8;
                given += 1;
                next += 1;
            }
            byte += 1;
        }
        made.levels[length].end = next << (32 - length);
        length += 1;
    }
    assert!(given == 256 && next == EOS, "the lengths are not those of the code");
    made
}

/// Reads all of `input` into `out`, which holds nothing else after.
pub(super) fn decode(mut input: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    out.clear();
    // No code is shorter than five bits: this is enough for any input.
    out.reserve(input.len() / 5 * 8 + 8);
    // The bits to read next begin at the top, and are followed by zeros.
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        if count <= 32 {
            if let Some((four, rest)) = input.split_first_chunk() {
                bits |= u64::from(u32::from_be_bytes(*four)) << (32 - count);
                count += 32;
                input = rest;
            } else {
                for byte in std::mem::take(&mut input) {
                    bits |= u64::from(*byte) << (56 - count);
                    count += 8;
                }
            }
        }
        let (byte, length) = match CODE.short[(bits >> 56) as usize] {
            (_, 0) => long((bits >> 32) as u32).ok_or(Malformed)?,
            short => short,
        };
        let length = u32::from(length);
        if length > count {
            // This is the end. No code of seven bits or fewer is all ones, so that padding is
            // always found here, and never taken for a byte.
            let only_ones = bits == !(u64::MAX >> count);
            return if count < 8 && only_ones { Ok(()) } else { Err(Malformed) };
        }
        bits <<= length;
        count -= length;
        out.push(byte);
    }
}

/// The byte whose code, of more than eight bits, begins here, and its length; nothing at EOS.
fn long(bits: u32) -> Option<(u8, u8)> {
    let length = (9..=LONGEST).find(|&length| bits < CODE.levels[length].end)?;
    let Level { first, shorter, .. } = CODE.levels[length];
    let place = (bits >> (32 - length)) - first + shorter;
    Some((CODE.order[place as usize], length as u8))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::tests::bytes;
    use super::{LENGTHS, Malformed};

    /// Every byte's code from 0 to 255, one after the other, as appendix B lists them.
    const ALL: &str = "
        ffc7fffd8fffffe2fffffe3fffffe4fffffe5fffffe6fffffe7fffffe8ffffeafffffff3fffffa7fffffabff
        ffffdfffffebfffffecfffffedfffffeefffffefffffff0ffffff1ffffff2fffffffbfffffcffffffd3fffff
        d7fffffdbfffffdffffffe3fffffe7fffffebfffffed4fe3f9ffaffcabf1febfafefe7fdfd2cbb00089969b7
        1d79fb9f7fff20ffbff3ff50ddbd7f061c58f265cd9f469d5af66dddbf871e5f9cff7ff7fffc3ff9ffe45fff
        4719242cb34e6e9d68a6a3d7dac426defe3cfaf7fffbfe7ffbffdffffffcfffe6ffff4bfff9ffffa3fffd3ff
        ff53fffd5ffffb3fffeb7fffdaffffb7ffff73fffeeffffdeffffebffffbfffffd9ffffdbfffebffffe0ffff
        eeffffc3ffff8bffff1ffffe4fffee7fffb1ffff97fffd9ffffcdffff9fffffbffffdafffeeffff4ffffb7ff
        fee7fffe8ffffd3fffdeffffd5fffeeffffbdffffe1fffdfffff7fffff5ffffecffff07fff87fffe0ffff17f
        ffedffff87ffff77fffeffffeaffff8bfffe3ffff93ffff87fffcbffff37ffff1fffff83ffffe1fffebfffe3
        ffff3fffff2ffffa3ffffd9fffff17ffffc7fffff27ffffdefffffbffffff2fffff8fffffb7fff97fff8ffff
        fe6fffffc1fffff87ffffe7fffffc5ffffe5fffe4ffff2fffffd1fffff4ffffffefffffe3fffffc9fffff97f
        ffb3ffffcffffb7fffcdffff4ffff9ffffd1ffffcffffeaffffafffffddffffeffffff4fffff5fffffabffff
        a7ffffd7fffff9bffffecfffffb7fffff3fffffe8fffffd3fffffabfffff5fffffff7ffffecfffffdbfffffb
        bfffff7ffffff0fffffbbf
    ";

    /// Bits, as ones and zeros.
    fn bits_of(text: &[u8]) -> String {
        let mut order: Vec<usize> = (0..256).collect();
        order.sort_by_key(|&byte| LENGTHS[byte]);
        let mut codes = vec![String::new(); 256];
        let (mut next, mut before) = (0_u32, 0);
        for byte in order {
            let length = LENGTHS[byte];
            next <<= length - before;
            codes[byte] = format!("{next:0width$b}", width = usize::from(length));
            next += 1;
            before = length;
        }
        text.iter().map(|&byte| codes[usize::from(byte)].as_str()).collect()
    }

    /// Bytes of bits; what is missing of the last is ones.
    fn packed(bits: &str) -> Vec<u8> {
        let eight = |chunk: &[u8]| {
            (0..8).fold(0, |byte, at| byte << 1 | u8::from(chunk.get(at) != Some(&b'0')))
        };
        bits.as_bytes().chunks(8).map(eight).collect()
    }

    fn decoded(input: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut out = b"left over".to_vec();
        super::decode(input, &mut out).map(|()| out)
    }

    #[test]
    fn every_byte_has_the_code_of_appendix_b() {
        let every: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&bytes(ALL)), Ok(every.clone()));
        assert_eq!(packed(&bits_of(&every)), bytes(ALL));
    }

    #[test]
    fn every_byte_alone_reads_back() {
        for byte in 0..=255 {
            assert_eq!(decoded(&packed(&bits_of(&[byte]))), Ok(vec![byte]));
        }
    }

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(decoded(&[]), Ok(vec![]));
    }

    #[test]
    fn eos_is_malformed_at_any_place() {
        let eos = "1".repeat(30);
        for before in ["", "0", "00000000", "&&&", "a long text before it"] {
            for after in ["", "0", "a", "some text after it"] {
                let (before, after) = (bits_of(before.as_bytes()), bits_of(after.as_bytes()));
                assert_eq!(decoded(&packed(&format!("{before}{eos}{after}"))), Err(Malformed));
            }
        }
    }

    #[test]
    fn padding_of_eight_bits_or_more_is_malformed() {
        for text in ["", "0", "00", "000", "0000", "00000", "a text"] {
            let mut padded = packed(&bits_of(text.as_bytes()));
            assert_eq!(decoded(&padded), Ok(text.as_bytes().to_vec()));
            for _ in 0..9 {
                padded.push(255);
                assert_eq!(decoded(&padded), Err(Malformed), "{text:?}");
            }
        }
    }

    #[test]
    fn padding_with_a_zero_in_it_is_malformed() {
        // Codes of five bits leave every number of bits up to seven. A zero in six or seven of them
        // can make a code of its own, which is no padding.
        for count in 1..8 {
            let text = bits_of(&b"00000000"[..count]);
            let left = text.len().next_multiple_of(8) - text.len();
            for zero in 0..left {
                let mut padding = vec!["1"; left];
                padding[zero] = "0";
                match decoded(&packed(&format!("{text}{}", padding.concat()))) {
                    Err(Malformed) => {}
                    Ok(read) => assert!(left >= 6 && read.len() == count + 1, "{left} {zero}"),
                }
            }
        }
    }

    #[test]
    fn a_code_cut_short_is_malformed() {
        for byte in 0..=255 {
            let bits = bits_of(&[byte]);
            for kept in (8..bits.len()).step_by(8) {
                assert_eq!(decoded(&packed(&bits[..kept])), Err(Malformed), "{byte} {kept}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn what_is_encoded_reads_back(text in vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(decoded(&packed(&bits_of(&text))), Ok(text));
        }

        #[test]
        fn text_reads_back(text in "[ -~]{0,300}") {
            prop_assert_eq!(decoded(&packed(&bits_of(text.as_bytes()))), Ok(text.into_bytes()));
        }

        #[test]
        fn whatever_is_read_has_only_that_encoding(input in vec(any::<u8>(), 0..12)) {
            if let Ok(text) = decoded(&input) {
                prop_assert_eq!(packed(&bits_of(&text)), input);
            }
        }
    }
}
