//! A connection, heard and spoken to by hand.

use bytes::Bytes;
use proptest::prelude::*;

use crate::frame::{self, Frame, PREFACE, flag, kind, setting};
use crate::hpack::{Decoder, put_literal};
use crate::{Broken, Connection, Event, Limits, reason};

const LIMITS: Limits = Limits { streams: 4, fields: 1024 };

/// What was sent, frame by frame.
type Sent = Vec<(u8, u8, u32, Vec<u8>)>;

struct Pair {
    server: Connection,
    decoder: Decoder,
}

impl Pair {
    /// The greetings are over.
    fn new() -> Self {
        let mut pair = Self { server: Connection::new(LIMITS), decoder: Decoder::new() };
        let greeting = [PREFACE, &frame(kind::SETTINGS, 0, 0, &[])].concat();
        assert_eq!(pair.says(&greeting), []);
        let kinds: Vec<_> =
            pair.sent().into_iter().map(|(kind, flags, ..)| (kind, flags)).collect();
        let own = [(kind::SETTINGS, 0), (kind::WINDOW_UPDATE, 0), (kind::SETTINGS, flag::ACK)];
        assert_eq!(kinds, own);
        pair
    }

    fn hears(&mut self, bytes: &[u8]) -> Result<Vec<Event>, Broken> {
        let mut events = Vec::new();
        self.server.receive(bytes, &mut events).map(|()| events)
    }

    fn says(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.hears(bytes).expect("it is in order")
    }

    fn is_refused(&mut self, bytes: &[u8], reason: u32) {
        let broken = self.hears(bytes).expect_err("it is not in order");
        assert_eq!(broken.reason, reason, "{}", broken.why);
        let (last, ..) = self.sent().pop().expect("it is told why");
        assert_eq!(last, kind::GOAWAY);
    }

    fn sent(&mut self) -> Sent {
        let out = std::mem::take(self.server.out());
        let (mut rest, mut all) = (&out[..], Vec::new());
        while let Some((frame, more)) = Frame::split(rest).expect("no frame is too long") {
            all.push((frame.kind, frame.flags, frame.id, frame.payload.to_vec()));
            rest = more;
        }
        assert!(rest.is_empty(), "frames are whole");
        all
    }

    fn fields(&mut self, block: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = |name: &[u8], value: &[u8]| fields.push((text(name), text(value)));
        self.decoder.decode(block, told).expect("it can be read");
        fields
    }

    fn begin(&mut self, id: u32) {
        let events = self.says(&frame(kind::HEADERS, flag::END_HEADERS, id, &block(&[])));
        assert!(matches!(events[..], [Event::Begins { id: is, is_all: false, .. }] if is == id));
    }
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, kind, flags, id, payload);
    out
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in [(":path", "/a.B/C")].iter().chain(fields) {
        put_literal(&mut out, name.as_bytes(), value.as_bytes());
    }
    out
}

fn setting(name: u16, value: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    frame::put_setting(&mut payload, name, value);
    frame(kind::SETTINGS, 0, 0, &payload)
}

#[test]
fn a_call_is_heard_and_answered() {
    let mut pair = Pair::new();
    let head = frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&[("x", "y")]));
    let data = frame(kind::DATA, flag::END_STREAM, 1, b"question");
    let events = pair.says(&[head, data].concat());
    let [Event::Begins { id: 1, fields, is_all: false }, said] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(fields.get(b":path"), Some(&b"/a.B/C"[..]));
    assert_eq!(fields.get(b"x"), Some(&b"y"[..]));
    assert_eq!(fields.get(b"z"), None);
    let bytes = Bytes::from_static(b"question");
    assert_eq!(*said, Event::Says { id: 1, bytes, weighs: 8, is_all: true });
    pair.server.begin(1, 200, [(&b"a"[..], &b"b"[..])], false);
    pair.server.say(1, Bytes::from_static(b"answer"));
    pair.server.finish(1, [(&b"end"[..], &b"well"[..])]);
    let sent = pair.sent();
    let [head, data, end] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((head.0, head.1, head.2), (kind::HEADERS, flag::END_HEADERS, 1));
    let pairs = |all: &[(&str, &str)]| {
        all.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect::<Vec<_>>()
    };
    assert_eq!(pair.fields(&head.3), pairs(&[(":status", "200"), ("a", "b")]));
    assert_eq!(*data, (kind::DATA, 0, 1, b"answer".to_vec()));
    assert_eq!((end.0, end.1), (kind::HEADERS, flag::END_HEADERS | flag::END_STREAM));
    assert_eq!(pair.fields(&end.3), pairs(&[("end", "well")]));
    assert_eq!(pair.server.streams.len(), 0);
}

#[test]
fn it_does_not_matter_in_which_pieces_bytes_come() {
    let mut whole = [PREFACE, &frame(kind::SETTINGS, 0, 0, &[])].concat();
    let half = block(&[]).len() / 2;
    let (first, second) = (&block(&[])[..half], &block(&[])[half..]);
    whole.extend(frame(kind::HEADERS, 0, 1, first));
    whole.extend(frame(kind::CONTINUATION, flag::END_HEADERS, 1, second));
    whole.extend(frame(kind::DATA, flag::PADDED, 1, b"\x02question\0\0"));
    whole.extend(frame(kind::PING, 0, 0, b"whoisit?"));
    let mut at_once = Connection::new(LIMITS);
    let mut expected = Vec::new();
    at_once.receive(&whole, &mut expected).unwrap();
    let bytes = Bytes::from_static(b"question");
    assert_eq!(expected[1], Event::Says { id: 1, bytes, weighs: 11, is_all: false });
    for cut in 1..whole.len() {
        let mut pieces = Connection::new(LIMITS);
        let mut events = Vec::new();
        for piece in whole.chunks(cut) {
            pieces.receive(piece, &mut events).unwrap();
        }
        assert_eq!((&events, pieces.out()), (&expected, at_once.out()), "{cut}");
    }
}

#[test]
fn no_more_is_sent_than_the_windows_allow() {
    let mut pair = Pair::new();
    pair.says(&setting(setting::INITIAL_WINDOW, 10));
    pair.begin(1);
    pair.says(&frame(kind::DATA, flag::END_STREAM, 1, &[]));
    pair.sent();
    let length = |sent: &Sent| {
        let data = sent.iter().filter(|(kind, ..)| *kind == kind::DATA);
        data.map(|(.., payload)| payload.len()).sum::<usize>()
    };
    pair.server.begin(1, 200, [], false);
    pair.server.say(1, vec![7; 100_000].into());
    pair.server.finish(1, []);
    assert!(!pair.server.is_clear(1));
    assert_eq!((length(&pair.sent()), pair.server.waits()), (10, 99_990));
    // The stream's window opens wide, the connection's is 65,535 in all.
    pair.says(&frame(kind::WINDOW_UPDATE, 0, 1, &200_000u32.to_be_bytes()));
    let sent = pair.sent();
    assert_eq!(length(&sent), 65_525);
    assert!(sent.iter().all(|(.., payload)| payload.len() <= 16_384));
    pair.says(&frame(kind::WINDOW_UPDATE, 0, 0, &200_000u32.to_be_bytes()));
    let sent = pair.sent();
    assert_eq!(length(&sent), 100_000 - 65_535);
    let (kind, flags, ..) = sent.last().unwrap();
    assert_eq!((*kind, flags & flag::END_STREAM), (kind::HEADERS, flag::END_STREAM));
    assert!(pair.server.is_clear(1));
    assert_eq!(pair.server.waits(), 0);
}

#[test]
fn those_who_wait_for_the_connection_take_turns() {
    let mut pair = Pair::new();
    pair.says(&setting(setting::INITIAL_WINDOW, 1 << 20));
    for id in [1, 3] {
        pair.begin(id);
        pair.server.begin(id, 200, [], false);
        pair.server.say(id, vec![0; 100_000].into());
    }
    pair.sent();
    pair.says(&frame(kind::WINDOW_UPDATE, 0, 0, &65_536u32.to_be_bytes()));
    let ids: Vec<u32> = pair.sent().into_iter().map(|(_, _, id, _)| id).collect();
    assert_eq!(ids, [1, 3, 1, 3]);
}

#[test]
fn a_smaller_window_holds_for_streams_that_are_open() {
    let mut pair = Pair::new();
    pair.begin(1);
    pair.server.begin(1, 200, [], false);
    pair.server.say(1, vec![0; 60_000].into());
    pair.says(&setting(setting::INITIAL_WINDOW, 0));
    pair.sent();
    pair.server.say(1, vec![0; 1].into());
    assert_eq!(pair.sent(), []);
    // It is 60,000 below nothing.
    pair.says(&frame(kind::WINDOW_UPDATE, 0, 1, &60_000u32.to_be_bytes()));
    assert_eq!(pair.sent(), []);
    pair.says(&frame(kind::WINDOW_UPDATE, 0, 1, &1u32.to_be_bytes()));
    assert_eq!(pair.sent().len(), 1);
}

#[test]
fn as_much_may_come_again_as_was_taken() {
    let mut pair = Pair::new();
    pair.begin(1);
    let part = frame(kind::DATA, 0, 1, &[0; 16_000]);
    for _ in 0..4 {
        pair.says(&part);
    }
    assert_eq!(pair.sent(), []);
    for _ in 0..4 {
        pair.server.taken(1, 16_000);
    }
    let sent = pair.sent();
    assert_eq!(sent, [(kind::WINDOW_UPDATE, 0, 1, 48_000u32.to_be_bytes().to_vec())]);
    for _ in 0..3 {
        pair.says(&part);
    }
    pair.is_refused(&part, reason::FLOW_CONTROL_ERROR);
}

#[test]
fn all_streams_together_have_a_window_too() {
    let mut pair = Pair::new();
    let part = frame(kind::DATA, 0, 1, &[0; 16_000]);
    pair.begin(1);
    // Only the stream's own is given back here: 65 parts are more than a mebibyte.
    for _ in 0..65 {
        pair.says(&part);
        pair.server.taken(1, 16_000);
    }
    let updates: Vec<u32> = pair.sent().into_iter().map(|(_, _, id, _)| id).collect();
    assert!(updates.contains(&0), "what was taken is given back for all");
}

#[test]
fn what_is_given_up_is_told_once_and_forgotten() {
    let mut pair = Pair::new();
    pair.begin(1);
    let reset = frame(kind::RESET, 0, 1, &reason::CANCEL.to_be_bytes());
    pair.server.begin(1, 200, [], false);
    pair.server.say(1, vec![0; 100_000].into());
    assert_eq!(pair.server.waits(), 100_000 - 65_535);
    assert_eq!(pair.says(&reset), [Event::Cancels { id: 1 }]);
    assert_eq!(pair.server.waits(), 0, "nobody will ever take it");
    pair.sent();
    assert_eq!(pair.says(&reset), []);
    pair.server.begin(1, 200, [], false);
    pair.server.say(1, Bytes::from_static(b"late"));
    pair.server.finish(1, []);
    assert_eq!(pair.sent(), []);
    // What was under way is nobody's, and does not use up the connection.
    for _ in 0..200 {
        assert_eq!(pair.says(&frame(kind::DATA, 0, 1, &[0; 16_000])), []);
    }
}

#[test]
fn who_only_begins_and_gives_up_is_sent_away() {
    let mut pair = Pair::new();
    for id in (1..9).step_by(2) {
        pair.begin(id);
        pair.says(&frame(kind::RESET, 0, id, &reason::CANCEL.to_be_bytes()));
    }
    pair.begin(9);
    let reset = frame(kind::RESET, 0, 9, &reason::CANCEL.to_be_bytes());
    pair.is_refused(&reset, reason::ENHANCE_YOUR_CALM);
}

#[test]
fn more_streams_than_are_allowed_are_refused_and_nothing_else_is() {
    let mut pair = Pair::new();
    for id in [1, 3, 5, 7] {
        pair.begin(id);
    }
    let more = frame(kind::HEADERS, flag::END_HEADERS, 9, &block(&[]));
    assert_eq!(pair.says(&more), []);
    let refused = (kind::RESET, 0, 9, reason::REFUSED_STREAM.to_be_bytes().to_vec());
    assert_eq!(pair.sent(), [refused]);
    pair.server.begin(1, 200, [], true);
    pair.begin(11);
}

#[test]
fn fields_that_are_too_long_cost_a_stream_or_the_connection() {
    let mut pair = Pair::new();
    let long = "x".repeat(2000);
    let head = frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&[("long", &long)]));
    assert_eq!(pair.says(&head), []);
    assert_eq!(pair.sent()[0].0, kind::RESET);
    pair.begin(3);
    let first = frame(kind::HEADERS, 0, 5, &[0; 16_000]);
    pair.says(&first);
    let more = frame(kind::CONTINUATION, 0, 5, &[0; 16_000]);
    pair.is_refused(&more, reason::ENHANCE_YOUR_CALM);
    let mut pair = Pair::new();
    pair.says(&frame(kind::HEADERS, 0, 1, &[]));
    let nothing = frame(kind::CONTINUATION, 0, 1, &[]);
    pair.is_refused(&nothing, reason::ENHANCE_YOUR_CALM);
}

#[test]
fn after_a_goodbye_those_who_are_there_are_served_and_others_are_not() {
    let mut pair = Pair::new();
    pair.begin(1);
    pair.server.close();
    pair.server.close();
    let sent = pair.sent();
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].0, &sent[0].3[..]), (kind::GOAWAY, &[0, 0, 0, 1, 0, 0, 0, 0][..]));
    let more = frame(kind::HEADERS, flag::END_HEADERS, 3, &block(&[]));
    assert_eq!(pair.says(&more), []);
    let data = frame(kind::DATA, flag::END_STREAM, 1, b"more");
    assert!(matches!(pair.says(&data)[..], [Event::Says { is_all: true, .. }]));
}

#[test]
fn an_answer_before_the_end_of_the_question_ends_the_question() {
    let mut pair = Pair::new();
    pair.begin(1);
    pair.server.begin(1, 200, [], true);
    let kinds: Vec<u8> = pair.sent().into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(kinds, [kind::HEADERS, kind::RESET]);
    assert_eq!(pair.says(&frame(kind::DATA, flag::END_STREAM, 1, b"more")), []);
}

#[test]
fn long_fields_go_out_in_pieces() {
    let mut pair = Pair::new();
    pair.begin(1);
    let long = vec![b'x'; 40_000];
    pair.server.begin(1, 404, [(&b"long"[..], &long[..])], false);
    let sent = pair.sent();
    let heads: Vec<_> = sent.iter().map(|(kind, flags, ..)| (*kind, *flags)).collect();
    let last = (kind::CONTINUATION, flag::END_HEADERS);
    assert_eq!(heads, [(kind::HEADERS, 0), (kind::CONTINUATION, 0), last]);
    let block: Vec<u8> = sent.into_iter().flat_map(|(.., payload)| payload).collect();
    let fields = pair.fields(&block);
    assert_eq!(fields[0], (":status".to_owned(), "404".to_owned()));
    assert_eq!(fields[1].1.len(), 40_000);
}

#[test]
fn pings_are_answered_and_answers_are_not() {
    let mut pair = Pair::new();
    assert_eq!(pair.says(&frame(kind::PING, 0, 0, b"12345678")), []);
    assert_eq!(pair.sent(), [(kind::PING, flag::ACK, 0, b"12345678".to_vec())]);
    pair.server.ping();
    assert_eq!(pair.sent(), [(kind::PING, 0, 0, vec![0; 8])]);
    assert_eq!(pair.says(&frame(kind::PING, flag::ACK, 0, &[0; 8])), []);
    assert_eq!(pair.sent(), []);
}

#[test]
fn what_is_not_known_is_ignored() {
    let mut pair = Pair::new();
    let known =
        [setting(0x99, 7), frame(0x77, 0xff, 3, b"?"), frame(kind::PRIORITY, 0, 3, &[0; 5])];
    assert_eq!(pair.says(&known.concat()), []);
    let sent = pair.sent();
    assert_eq!(sent, [(kind::SETTINGS, flag::ACK, 0, Vec::new())]);
}

#[test]
fn whoever_does_not_speak_http2_is_noticed_at_once() {
    for greeting in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nXX"] {
        let mut connection = Connection::new(LIMITS);
        let broken = connection.receive(greeting, &mut Vec::new()).unwrap_err();
        assert_eq!(broken.reason, reason::PROTOCOL_ERROR);
        assert!(connection.is_silent());
    }
    let mut connection = Connection::new(LIMITS);
    let greeting = [PREFACE, &frame(kind::PING, 0, 0, &[0; 8])].concat();
    assert!(connection.receive(&greeting, &mut Vec::new()).is_err(), "settings come first");
}

#[test]
fn what_must_not_be_is_refused() {
    let too_long = [0, 0x40, 1, kind::PING, 0, 0, 0, 0, 0];
    let wide = setting(setting::INITIAL_WINDOW, 1 << 31);
    let grow = frame(kind::WINDOW_UPDATE, 0, 0, &0x7fff_ffff_u32.to_be_bytes());
    for (bytes, reason) in [
        (frame(kind::DATA, 0, 0, b"x"), reason::PROTOCOL_ERROR),
        (frame(kind::DATA, 0, 3, b"x"), reason::PROTOCOL_ERROR),
        (frame(kind::DATA, 0, 2, b"x"), reason::PROTOCOL_ERROR),
        (frame(kind::DATA, flag::PADDED, 1, &[9, 1, 2]), reason::PROTOCOL_ERROR),
        (frame(kind::DATA, flag::PADDED, 1, &[]), reason::PROTOCOL_ERROR),
        (frame(kind::HEADERS, flag::END_HEADERS, 2, &block(&[])), reason::PROTOCOL_ERROR),
        (frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&[])), reason::PROTOCOL_ERROR),
        (frame(kind::HEADERS, flag::PRIORITY, 3, &[0; 4]), reason::PROTOCOL_ERROR),
        (frame(kind::HEADERS, flag::END_HEADERS, 3, &[0xff]), reason::COMPRESSION_ERROR),
        (frame(kind::CONTINUATION, 0, 1, &[]), reason::PROTOCOL_ERROR),
        (frame(kind::RESET, 0, 1, &[0; 3]), reason::FRAME_SIZE_ERROR),
        (frame(kind::RESET, 0, 9, &[0; 4]), reason::PROTOCOL_ERROR),
        (frame(kind::SETTINGS, 0, 1, &[]), reason::PROTOCOL_ERROR),
        (frame(kind::SETTINGS, 0, 0, &[0; 5]), reason::FRAME_SIZE_ERROR),
        (setting(setting::ENABLE_PUSH, 2), reason::PROTOCOL_ERROR),
        (setting(setting::PAYLOAD_MAX, 1), reason::PROTOCOL_ERROR),
        (wide, reason::FLOW_CONTROL_ERROR),
        (frame(kind::PUSH_PROMISE, 0, 1, &[0; 8]), reason::PROTOCOL_ERROR),
        (frame(kind::PING, 0, 0, &[0; 7]), reason::FRAME_SIZE_ERROR),
        (frame(kind::PING, 0, 1, &[0; 8]), reason::PROTOCOL_ERROR),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0; 4]), reason::FLOW_CONTROL_ERROR),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0; 5]), reason::FRAME_SIZE_ERROR),
        (grow, reason::FLOW_CONTROL_ERROR),
        (frame(kind::PRIORITY, 0, 1, &[0; 4]), reason::FRAME_SIZE_ERROR),
        (too_long.to_vec(), reason::FRAME_SIZE_ERROR),
    ] {
        let mut pair = Pair::new();
        pair.begin(1);
        pair.is_refused(&bytes, reason);
    }
    let mut pair = Pair::new();
    pair.says(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &block(&[])));
    pair.is_refused(&frame(kind::DATA, 0, 1, b"more"), reason::STREAM_CLOSED);
    let mut pair = Pair::new();
    pair.says(&frame(kind::HEADERS, 0, 1, &[]));
    pair.is_refused(&frame(kind::PING, 0, 0, &[0; 8]), reason::PROTOCOL_ERROR);
}

#[test]
fn a_stream_whose_window_cannot_be_ends_alone() {
    let mut pair = Pair::new();
    pair.begin(1);
    pair.begin(3);
    let none = frame(kind::WINDOW_UPDATE, 0, 1, &[0; 4]);
    assert_eq!(pair.says(&none), [Event::Cancels { id: 1 }]);
    assert_eq!(pair.sent()[0].0, kind::RESET);
    assert_eq!(pair.server.streams.len(), 1);
}

/// Frames that nearly make sense, which get further than any bytes do.
fn likely() -> impl Strategy<Value = Vec<u8>> {
    let ids = prop_oneof![Just(0u32), Just(1), Just(3), Just(5), Just(7), Just(9), Just(2)];
    let payload = prop_oneof![
        Just(block(&[])),
        Just(vec![0; 4]),
        Just(vec![0; 8]),
        Just(1000u32.to_be_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let flags = prop_oneof![Just(0u8), Just(1), Just(4), Just(5), any::<u8>()];
    (0u8..11, flags, ids, payload)
        .prop_map(|(kind, flags, id, payload)| frame(kind, flags, id, &payload))
}

proptest! {
    #[test]
    fn nothing_that_comes_is_fatal(frames in proptest::collection::vec(likely(), 0..60)) {
        let mut pair = Pair::new();
        for frame in frames {
            let Ok(events) = pair.hears(&frame) else { return Ok(()) };
            for event in events {
                if let Event::Says { id, weighs, is_all, .. } = event {
                    pair.server.taken(id, weighs);
                    if is_all {
                        pair.server.begin(id, 200, [], false);
                        pair.server.say(id, vec![0; 30_000].into());
                        pair.server.finish(id, []);
                    }
                }
            }
            prop_assert!(pair.server.streams.len() <= LIMITS.streams as usize);
            pair.sent();
        }
    }

    #[test]
    fn no_bytes_are_fatal(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Pair::new().hears(&bytes);
    }
}
