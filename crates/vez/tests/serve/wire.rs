//! Frames written by hand, as no client would: the server answers what can be answered, and keeps
//! little for who does not listen.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use vez_api::etcdserverpb::kv_client::KvClient;
use vez_api::etcdserverpb::lease_client::LeaseClient;
use vez_api::etcdserverpb::{LeaseGrantRequest, PutRequest};

use crate::promises::{connect as channel, until_count};
use crate::server::Server;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Nobody waits longer for what must come.
const PATIENCE: Duration = Duration::from_mins(1);

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short").to_be_bytes();
    [&length[1..], &[kind, flags], &id.to_be_bytes(), payload].concat()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(&server.address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
    stream
}

/// With windows that are wide open.
fn greet(server: &Server) -> TcpStream {
    let mut stream = connect(server);
    let window = [0, 4, 0x7f, 0xff, 0xff, 0xff];
    let wide = (0x7fff_ffff_u32 - 65_535).to_be_bytes();
    let greeting =
        [PREFACE, &frame(SETTINGS, 0, 0, &window), &frame(WINDOW_UPDATE, 0, 0, &wide)].concat();
    stream.write_all(&greeting).expect("it is there");
    stream
}

fn head(method: &str, path: &str, kind: &str) -> Vec<u8> {
    block(&[(":method", method), (":path", path), ("content-type", kind)])
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for &(name, value) in fields {
        for word in [name, value] {
            if word == name {
                block.push(0);
            }
            block.push(u8::try_from(word.len()).expect("it is short"));
            block.extend(word.as_bytes());
        }
    }
    block
}

fn call(id: u32, path: &str, message: &[u8]) -> Vec<u8> {
    call_with(id, &head("POST", path, "application/grpc"), message)
}

fn call_with(id: u32, head: &[u8], message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
    let body = [&[0], &length[..], message].concat();
    [frame(HEADERS, END_HEADERS, id, head), frame(DATA, END_STREAM, id, &body)].concat()
}

/// The next frame: kind, flags, stream, payload.
fn next(stream: &mut TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let mut head = [0; 9];
    stream.read_exact(&mut head).expect("more comes");
    let [high, middle, low, kind, flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
    stream.read_exact(&mut payload).expect("it comes whole");
    (kind, flags, u32::from_be_bytes(id), payload)
}

/// What ends a stream, or the connection.
fn end(stream: &mut TcpStream) -> (u8, u32, Vec<u8>) {
    loop {
        let (kind, flags, id, payload) = next(stream);
        if kind == GOAWAY || kind == HEADERS && flags & END_STREAM != 0 {
            return (kind, id, payload);
        }
    }
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// `RangeRequest { key: "k" }`.
const RANGE: &[u8] = b"\x0a\x01k";

#[test]
fn a_browser_is_told_where_the_pages_are() {
    let server = Server::vez();
    let mut stream = connect(&server);
    stream.write_all(b"GET / HTTP/1.1\r\nhost: here\r\n\r\n").expect("it is there");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is text, and it ends");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.contains("--listen-metrics-urls"), "{answer}");
}

#[test]
fn what_is_no_call_is_refused_and_the_next_one_answered() {
    let server = Server::vez();
    let mut stream = greet(&server);
    let path = "/etcdserverpb.KV/Range";
    for (id, method, path, kind, said) in [
        (1, "GET", path, "application/grpc", "405"),
        (3, "POST", path, "text/html", "415"),
        (5, "POST", "/no.Such/Method", "application/grpc", "vez does not offer"),
        (7, "POST", path, "application/grpc", "expected one request"),
    ] {
        let head = head(method, path, kind);
        let flags = END_HEADERS | END_STREAM;
        stream.write_all(&frame(HEADERS, flags, id, &head)).expect("it is there");
        let (_, of, payload) = end(&mut stream);
        let payload = String::from_utf8_lossy(&payload).replace("%20", " ");
        assert!(of == id && payload.contains(said), "{id}: {payload}");
    }
    stream.write_all(&call(9, path, RANGE)).expect("it is there");
    let (_, of, payload) = end(&mut stream);
    assert!(of == 9 && has(&payload, "grpc-status\x010"), "{payload:?}");
}

/// Waiting for a lock, whose place it gives up: `LockRequest { name: "l", lease }`.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_time_is_over_is_ended_with_that_reason_and_leaves_no_key_behind() {
    const LOCK: &str = "/v3lockpb.Lock/Lock";
    let server = Server::vez();
    let channel = channel(&server).await;
    for id in [1, 2] {
        let request = LeaseGrantRequest { ttl: 600, id };
        LeaseClient::new(channel.clone()).lease_grant(request).await.expect("a lease");
    }
    let mut stream = greet(&server);
    stream.write_all(&call(1, LOCK, b"\x0a\x01l\x10\x01")).expect("it is there");
    let (_, of, payload) = end(&mut stream);
    assert!(of == 1 && has(&payload, "grpc-status\x010"), "it is free: {payload:?}");
    let hurried = block(&[
        (":method", "POST"),
        (":path", LOCK),
        ("content-type", "application/grpc"),
        ("grpc-timeout", "300m"),
    ]);
    stream.write_all(&call_with(3, &hurried, b"\x0a\x01l\x10\x02")).expect("it is there");
    until_count(&channel, "l/", 2).await;
    let (_, of, payload) = end(&mut stream);
    assert!(of == 3 && has(&payload, "grpc-status\x014"), "{payload:?}");
    until_count(&channel, "l/", 1).await;
}

#[test]
fn nonsense_ends_a_connection_with_a_reason_and_no_other() {
    let server = Server::vez();
    let mut other = greet(&server);
    for (nonsense, why) in [
        (frame(DATA, 0, 0, b"?"), "no such stream has begun"),
        (frame(HEADERS, END_HEADERS, 1, &[0xff; 9]), "cannot be read"),
        (vec![0xff; 100], "too long"),
    ] {
        let mut stream = greet(&server);
        stream.write_all(&nonsense).expect("it is there");
        let (kind, _, payload) = end(&mut stream);
        assert!(kind == GOAWAY && has(&payload, why), "{why}: {payload:?}");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("it ends");
    }
    other.write_all(&call(1, "/etcdserverpb.KV/Range", RANGE)).expect("it is there");
    assert_eq!(end(&mut other).1, 1);
}

/// Whoever has the stream takes it that the watch is there: `WatchCreateRequest { key: "k" }`.
#[test]
fn watching_is_answered_once_something_is_watched() {
    const CREATE: &[u8] = b"\x00\x00\x00\x00\x05\x0a\x03\x0a\x01k";
    let server = Server::vez();
    let mut stream = greet(&server);
    let head = head("POST", "/etcdserverpb.Watch/Watch", "application/grpc");
    let range = call(3, "/etcdserverpb.KV/Range", RANGE);
    stream.write_all(&[frame(HEADERS, END_HEADERS, 1, &head), range].concat()).expect("it listens");
    loop {
        let (_, flags, id, _) = next(&mut stream);
        assert_ne!(id, 1, "it was answered before it had asked for anything");
        if id == 3 && flags & END_STREAM != 0 {
            break;
        }
    }
    stream.write_all(&frame(DATA, 0, 1, CREATE)).expect("it listens");
    assert!(matches!(next(&mut stream), (HEADERS, END_HEADERS, 1, _)));
    assert!(matches!(next(&mut stream), (DATA, 0, 1, _)));
}

#[test]
fn who_watches_nothing_and_has_said_all_is_not_kept() {
    let server = Server::vez();
    let mut stream = greet(&server);
    let head = head("POST", "/etcdserverpb.Watch/Watch", "application/grpc");
    let flags = END_HEADERS | END_STREAM;
    stream.write_all(&frame(HEADERS, flags, 1, &head)).expect("it listens");
    let (_, of, payload) = end(&mut stream);
    assert!(of == 1 && has(&payload, "grpc-status\x010"), "{payload:?}");
}

#[test]
fn who_does_not_say_that_it_lives_is_taken_for_gone() {
    let server = Server::vez();
    let (mut silent, mut lives) = (greet(&server), greet(&server));
    let gone = std::thread::spawn(move || {
        let is_asked = std::iter::repeat_with(|| next(&mut silent)).any(|frame| frame.0 == PING);
        let mut rest = Vec::new();
        silent.read_to_end(&mut rest).expect("it ends");
        (is_asked, rest)
    });
    while !gone.is_finished() {
        lives.set_read_timeout(Some(Duration::from_millis(100))).expect("it is not zero");
        // What comes is looked at only once there is something.
        if lives.peek(&mut [0]).is_ok() {
            lives.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
            if let (PING, 0, 0, payload) = next(&mut lives) {
                lives.write_all(&frame(PING, ACK, 0, &payload)).expect("it is there");
            }
        }
    }
    assert_eq!(gone.join().expect("it is asked, and then left"), (true, Vec::new()));
    lives.write_all(&call(1, "/etcdserverpb.KV/Range", RANGE)).expect("it is there");
    assert_eq!(end(&mut lives).1, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_much_and_does_not_read_is_not_answered_ahead() {
    const ASKED: u32 = 300;
    let server = Server::vez();
    let mut keys = KvClient::new(channel(&server).await);
    let value = vec![b'v'; 1 << 20].into();
    let put = PutRequest { key: "k".into(), value, ..PutRequest::default() };
    keys.put(put).await.expect("it is in order");
    let [before, ..] = server.memory();
    let mut stream = greet(&server);
    let asked = (0..ASKED).map(|number| call(2 * number + 1, "/etcdserverpb.KV/Range", RANGE));
    stream.write_all(&asked.collect::<Vec<_>>().concat()).expect("it is there");
    // Another is answered meanwhile, so that what was asked before has been heard.
    let mut other = greet(&server);
    for id in (1..200).step_by(2) {
        other.write_all(&call(id, "/etcdserverpb.KV/Range", RANGE)).expect("it is there");
        assert_eq!(end(&mut other).1, id);
    }
    let more = server.memory()[0].saturating_sub(before) >> 20;
    assert!(more < 100, "{more} MB are kept for somebody who does not read");
    let mut answered: Vec<u32> = (0..ASKED).map(|_| end(&mut stream).1).collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq((0..ASKED).map(|number| 2 * number + 1)));
}
