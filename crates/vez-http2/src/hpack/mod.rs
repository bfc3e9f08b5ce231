//! Header compression (RFC 7541): reads every block that a client may send, and writes fields in
//! the plainest of the ways there are.
//!
//! **Invariant:** after every block that is not malformed, the table is as the client believes it
//! to be; and no input makes more memory than in proportion to its own length.

mod huffman;
mod table;

use table::Table;

/// `SETTINGS_HEADER_TABLE_SIZE`, as long as nobody says otherwise; and here nobody does.
const TABLE: usize = 4096;

/// A block that cannot be understood: after it, nothing on the connection can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads the header blocks of one connection, every one and in their order.
#[derive(Debug)]
pub(crate) struct Decoder {
    table: Table,
    /// Where a name or a value is put together that is not in the block as it is.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self::with_table(TABLE)
    }

    /// With a table of at most so many bytes, as the RFC counts them.
    fn with_table(most: usize) -> Self {
        Self { table: Table::new(most), name: Vec::new(), value: Vec::new() }
    }

    /// Tells every field of a header block, in order. The table stays in step also if the caller
    /// ignores them. One byte of a block can tell a field as large as the table.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        mut told: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Malformed> {
        let mut reader = Reader { rest: block };
        let mut at_beginning = true;
        while let Some(first) = reader.byte() {
            match first.leading_zeros() {
                0 => {
                    let index = reader.integer(first, 7)?;
                    let (name, value) = self.table.get(index).ok_or(Malformed)?;
                    told(name, value);
                }
                2 if at_beginning => {
                    let most = reader.integer(first, 5)?;
                    self.table.resize(most).ok_or(Malformed)?;
                    continue;
                }
                2 => return Err(Malformed),
                // Whether it is never to be indexed matters only to those who pass it on.
                _ => self.literal(first, &mut reader, &mut told)?,
            }
            at_beginning = false;
        }
        Ok(())
    }

    /// Tells a field whose value the block says, and maybe its name; keeps it if that is asked.
    fn literal(
        &mut self,
        first: u8,
        reader: &mut Reader<'_>,
        told: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Malformed> {
        let is_kept = first & 0x40 != 0;
        let index = reader.integer(first, if is_kept { 6 } else { 4 })?;
        let name = if index == 0 {
            reader.string(&mut self.name)?
        } else {
            // Keeping the field may evict the entry that has its name.
            let (name, _) = self.table.get(index).ok_or(Malformed)?;
            self.name.clear();
            self.name.extend_from_slice(name);
            &self.name
        };
        let value = reader.string(&mut self.value)?;
        told(name, value);
        if is_kept {
            self.table.insert(name, value);
        }
        Ok(())
    }
}

/// What is left to read of a block.
struct Reader<'block> {
    rest: &'block [u8],
}

impl<'block> Reader<'block> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// The number that begins in the last `bits` bits of `first`.
    fn integer(&mut self, first: u8, bits: u32) -> Result<usize, Malformed> {
        let all_ones = u8::MAX >> (8 - bits);
        let mut number = u64::from(first & all_ones);
        if number < u64::from(all_ones) {
            return Ok(number as usize);
        }
        // Five times seven bits are enough for every number of 32 bits.
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte().ok_or(Malformed)?;
            number += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number).map(|number| number as usize).or(Err(Malformed));
            }
        }
        Err(Malformed)
    }

    /// A string: of the block if it says it plainly, else put together in `buffer`.
    fn string<'text>(&mut self, buffer: &'text mut Vec<u8>) -> Result<&'text [u8], Malformed>
    where
        'block: 'text,
    {
        let first = self.byte().ok_or(Malformed)?;
        let length = self.integer(first, 7)?;
        let (text, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        if first & 0x80 == 0 {
            return Ok(text);
        }
        huffman::decode(text, buffer)?;
        Ok(buffer)
    }
}

/// One field, said in full and not to be kept; `name` and `value` of any length.
pub(crate) fn put_literal(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.push(0);
    put_string(out, name);
    put_string(out, value);
}

fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    match text.len().checked_sub(0x7f) {
        None => out.push(text.len() as u8),
        Some(mut rest) => {
            out.push(0x7f);
            while rest >= 0x80 {
                out.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Decoder, Malformed, put_literal};

    type Field = (Vec<u8>, Vec<u8>);

    /// What hexadecimal digits mean, whatever is between them.
    pub(super) fn bytes(digits: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            digits.chars().filter_map(|digit| Some(digit.to_digit(16)? as u8)).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, Malformed> {
        let mut fields = Vec::new();
        decoder
            .decode(block, |name, value| fields.push((name.to_vec(), value.to_vec())))
            .map(|()| fields)
    }

    fn read(block: &str) -> Result<Vec<Field>, Malformed> {
        fields(&mut Decoder::new(), &bytes(block))
    }

    /// Fields of lines as `name: value`.
    fn lines(text: &str) -> Vec<Field> {
        let line = |line: &str| {
            let (name, value) = line.trim().split_once(": ").unwrap();
            (name.as_bytes().to_vec(), value.as_bytes().to_vec())
        };
        text.trim().lines().map(line).collect()
    }

    /// A block in hexadecimal digits, its fields, the table after it from the newest entry to the
    /// oldest, and the size of that.
    type Example = (&'static str, &'static str, &'static str, usize);

    /// Reads the blocks one after the other.
    fn examples(most: usize, examples: &[Example]) {
        let mut decoder = Decoder::with_table(most);
        for (block, expected, table, size) in examples {
            assert_eq!(fields(&mut decoder, &bytes(block)), Ok(lines(expected)), "{block}");
            let kept = (62..).map_while(|index| decoder.table.get(index));
            let kept: Vec<Field> = kept.map(|(name, value)| (name.into(), value.into())).collect();
            let table = if table.is_empty() { Vec::new() } else { lines(table) };
            assert_eq!((kept, decoder.table.size()), (table, *size), "{block}");
        }
    }

    const REQUESTS: [(&str, &str, usize); 3] = [
        (
            ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
            ":authority: www.example.com",
            57,
        ),
        (
            ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com
             cache-control: no-cache",
            "cache-control: no-cache\n:authority: www.example.com",
            110,
        ),
        (
            ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com
             custom-key: custom-value",
            "custom-key: custom-value\ncache-control: no-cache\n:authority: www.example.com",
            164,
        ),
    ];

    const COOKIE: &str = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

    /// Of C.5 and C.6: the blocks are said in two ways, and mean the same.
    fn responses(blocks: [&'static str; 3]) {
        let first = ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT
                     location: https://www.example.com";
        let first_table = "location: https://www.example.com
                           date: Mon, 21 Oct 2013 20:13:21 GMT
                           cache-control: private\n:status: 302";
        let second = ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT
                      location: https://www.example.com";
        let second_table = ":status: 307\nlocation: https://www.example.com
                            date: Mon, 21 Oct 2013 20:13:21 GMT\ncache-control: private";
        let third = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT
                     location: https://www.example.com\ncontent-encoding: gzip\n";
        let third_table = "\ncontent-encoding: gzip\ndate: Mon, 21 Oct 2013 20:13:22 GMT";
        let third: &str = [third, COOKIE].concat().leak();
        let third_table: &str = [COOKIE, third_table].concat().leak();
        examples(
            256,
            &[
                (blocks[0], first, first_table, 222),
                (blocks[1], second, second_table, 222),
                (blocks[2], third, third_table, 215),
            ],
        );
    }

    fn requests(blocks: [&'static str; 3]) {
        let with_block = |at: usize| (blocks[at], REQUESTS[at].0, REQUESTS[at].1, REQUESTS[at].2);
        examples(4096, &[with_block(0), with_block(1), with_block(2)]);
    }

    #[test]
    fn the_single_fields_of_c_2_read_as_they_should() {
        let custom = "custom-key: custom-header";
        let block = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
        examples(4096, &[(block, custom, custom, 55)]);
        let block = "040c 2f73 616d 706c 652f 7061 7468";
        examples(4096, &[(block, ":path: /sample/path", "", 0)]);
        let block = "1008 7061 7373 776f 7264 0673 6563 7265 74";
        examples(4096, &[(block, "password: secret", "", 0)]);
        examples(4096, &[("82", ":method: GET", "", 0)]);
    }

    #[test]
    fn the_plain_requests_of_c_3_read_as_they_should() {
        requests([
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ]);
    }

    #[test]
    fn the_huffman_requests_of_c_4_read_as_they_should() {
        requests([
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ]);
    }

    #[test]
    fn the_plain_responses_of_c_5_read_and_evict_as_they_should() {
        responses([
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
             2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
             6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
             54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
             5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
             3d31",
        ]);
    }

    #[test]
    fn the_huffman_responses_of_c_6_read_and_evict_as_they_should() {
        responses([
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
             77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
             9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ]);
    }

    #[test]
    fn an_empty_block_has_no_fields() {
        assert_eq!(read(""), Ok(vec![]));
    }

    #[test]
    fn a_name_of_the_table_outlives_the_entry_it_evicts() {
        let mut decoder = Decoder::with_table(40);
        // `name: 1` is kept, and then evicted by `name: 2`, which has its name from it.
        let block = bytes("40 04 6e616d65 01 31 7e 01 32 be");
        let expected = lines("name: 1\nname: 2\nname: 2");
        assert_eq!(fields(&mut decoder, &block), Ok(expected));
        assert_eq!(decoder.table.size(), 37);
    }

    #[test]
    fn a_field_larger_than_the_table_is_told_and_empties_it() {
        let mut decoder = Decoder::with_table(40);
        let block = bytes("40 01 61 01 31 40 04 6e616d65 05 3132333435");
        assert_eq!(fields(&mut decoder, &block), Ok(lines("a: 1\nname: 12345")));
        assert_eq!(decoder.table.size(), 0);
        assert_eq!(fields(&mut decoder, &[0xbe]), Err(Malformed));
    }

    #[test]
    fn the_table_stays_in_step_with_a_caller_that_does_not_listen() {
        let mut decoder = Decoder::new();
        decoder.decode(&bytes("40 01 61 01 31"), |_, _| {}).unwrap();
        assert_eq!(fields(&mut decoder, &[0xbe]), Ok(lines("a: 1")));
    }

    #[test]
    fn an_index_of_zero_or_past_the_tables_is_malformed() {
        assert_eq!(read("80"), Err(Malformed));
        assert!(read("bd").is_ok());
        // Number 62, indexed and as the name of each kind of literal.
        for block in ["be", "7e 01 31", "0f 2f 01 31", "1f 2f 01 31", "ff 80 80 80 80 0f"] {
            assert_eq!(read(block), Err(Malformed), "{block}");
        }
    }

    #[test]
    fn the_table_is_resized_only_at_the_beginning_of_a_block() {
        assert_eq!(read("20 3f e1 1f 82"), Ok(lines(":method: GET")));
        assert_eq!(read("20"), Ok(vec![]));
        assert_eq!(read("82 20"), Err(Malformed));
        assert_eq!(read("00 01 61 01 31 3f e1 1f"), Err(Malformed));
    }

    #[test]
    fn the_table_is_resized_to_no_more_than_it_may_have() {
        assert_eq!(read("3f e1 1f"), Ok(vec![]));
        assert_eq!(read("3f e2 1f"), Err(Malformed));
        assert_eq!(fields(&mut Decoder::with_table(256), &bytes("3f e2 01")), Err(Malformed));
    }

    #[test]
    fn a_resized_table_evicts_and_stays_that_size() {
        let mut decoder = Decoder::new();
        fields(&mut decoder, &bytes("40 01 61 01 31 40 01 62 01 32")).unwrap();
        assert_eq!(decoder.table.size(), 68);
        // To 34, which is one entry.
        assert_eq!(fields(&mut decoder, &bytes("3f 03 be")), Ok(lines("b: 2")));
        assert_eq!(fields(&mut decoder, &bytes("40 01 63 01 33 be")), Ok(lines("c: 3\nc: 3")));
        assert_eq!(decoder.table.size(), 34);
        assert_eq!(fields(&mut decoder, &[0xbf]), Err(Malformed));
    }

    #[test]
    fn a_number_that_is_too_large_or_too_long_is_malformed() {
        // All of these are the table's size: 31 said in up to five bytes more is no overflow.
        for block in ["3f 00", "3f 80 00", "3f 80 80 80 80 00"] {
            assert_eq!(read(block), Ok(vec![]), "{block}");
        }
        assert_eq!(read("3f 80 80 80 80 80 00"), Err(Malformed));
        // These would be small numbers if only their last 32 bits counted.
        for block in ["3f e1 ff ff ff 0f", "3f e1 ff ff ff 7f", "3f 81 80 80 80 10"] {
            assert_eq!(read(block), Err(Malformed), "{block}");
        }
        assert_eq!(read("ff ff ff ff ff ff ff ff ff ff ff 01"), Err(Malformed));
    }

    #[test]
    fn a_block_cut_short_is_malformed_wherever_a_field_is() {
        let whole = bytes("40 88 25a8 49e9 5ba9 7d7f 89 25a8 49e9 5bb8 e8b4 bf");
        assert!(fields(&mut Decoder::new(), &whole).is_ok());
        for kept in 1..whole.len() {
            assert_eq!(fields(&mut Decoder::new(), &whole[..kept]), Err(Malformed), "{kept}");
        }
        for block in ["ff", "ff 80", "7f", "0f", "1f", "3f", "00 01 61 7f", "00 01 61 7f 80"] {
            assert_eq!(read(block), Err(Malformed), "{block}");
        }
    }

    #[test]
    fn a_string_longer_than_the_block_is_malformed_and_makes_no_memory() {
        for block in ["00 7f 80 ff ff ff 0f 61", "00 ff 80 ff ff ff 0f 61"] {
            let mut decoder = Decoder::new();
            assert_eq!(fields(&mut decoder, &bytes(block)), Err(Malformed));
            assert_eq!((decoder.name.capacity(), decoder.value.capacity()), (0, 0));
        }
    }

    #[test]
    fn malformed_huffman_in_a_name_or_a_value_is_malformed() {
        for text in ["84 ffffffff", "82 1fff", "81 00"] {
            assert_eq!(read(&format!("00 {text} 01 61")), Err(Malformed), "{text}");
            assert_eq!(read(&format!("40 01 61 {text}")), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn a_literal_is_written_in_full_and_not_kept() {
        let mut out = b"before".to_vec();
        put_literal(&mut out, b"name", &[b'x'; 127]);
        assert_eq!(out[..14], *b"before\x00\x04name\x7f\x00");
        put_literal(&mut out, b"", b"");
        assert_eq!(out[14 + 127..], [0, 0, 0]);
        let mut decoder = Decoder::new();
        assert_eq!(fields(&mut decoder, &out[6..]).map(|fields| fields.len()), Ok(2));
        assert_eq!(decoder.table.size(), 0);
    }

    #[test]
    fn literals_of_every_length_of_length_read_back() {
        for length in [0, 1, 126, 127, 128, 254, 255, 16_383, 16_384, 16_510, 16_511, 3_000_000] {
            let (long, short) = (vec![b'x'; length], b"y".to_vec());
            let mut block = Vec::new();
            put_literal(&mut block, &long, &short);
            put_literal(&mut block, &short, &long);
            let expected = vec![(long.clone(), short.clone()), (short, long)];
            assert!(fields(&mut Decoder::new(), &block) == Ok(expected), "{length}");
        }
    }

    /// Bytes that are likelier than others to begin something.
    fn likely_bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            any::<u8>(),
            0x3e..0x48_u8,
            0xbc..0xc8_u8,
            0..8_u8,
            prop::sample::select(vec![0x10, 0x20, 0x3f, 0x7f, 0x80, 0xff]),
        ];
        vec(byte, 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn literals_read_back(
            written in vec((vec(any::<u8>(), 0..300), vec(any::<u8>(), 0..20_000)), 0..4),
        ) {
            let mut block = Vec::new();
            for (name, value) in &written {
                put_literal(&mut block, name, value);
            }
            prop_assert_eq!(fields(&mut Decoder::new(), &block), Ok(written));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(4_000)
        })]

        #[test]
        fn no_bytes_make_it_panic_or_hold_more_than_it_may(blocks in vec(likely_bytes(), 1..4)) {
            let mut decoder = Decoder::with_table(200);
            for block in &blocks {
                let _ = decoder.decode(block, |_, _| {});
                prop_assert!(decoder.table.size() <= 200);
                prop_assert!(decoder.name.capacity().max(decoder.value.capacity()) <= 800);
            }
        }
    }
}
