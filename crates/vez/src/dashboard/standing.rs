//! How the service stands, as the page reads it: one answer a second, of bounded size.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use vez_server::seen::{
    Happening, Lapse, LeaseSeen, Line, MemberSeen, Order, OwnSeen, Sample, Search, Standing, View,
    What,
};

use crate::hold::Holder;

/// Locks, and elections, in an answer.
const LINES: usize = 100;
const LEASES: usize = 40;
const HAPPENINGS: usize = 100;
/// Of names and values people see so much.
const SIGNS: usize = 300;
/// A longer key is shown but cannot be taken away here.
const KEY_BYTES: usize = 1024;

/// What part of it the page shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Question {
    search: String,
    /// `waiting` or `name`.
    order: String,
    /// How many locks, and elections, to pass over.
    locks: usize,
    elections: usize,
    /// The last that happened of what is known already.
    after: u64,
}

pub(super) async fn all(view: &View, question: &Question, may_release: bool) -> Value {
    let lines = async |is_lock: bool, offset: usize| {
        let order = if question.order == "name" { Order::Name } else { Order::Waiting };
        let text = question.search.trim().to_lowercase();
        let search = Search { text, is_lock, order };
        let page = view.queues(search, offset, LINES, is_of_a_lock).await;
        let lines: Vec<Value> = page.lines.iter().map(line).collect();
        json!({ "total": page.total, "offset": offset, "lines": lines })
    };
    let (locks, elections) =
        (lines(true, question.locks).await, lines(false, question.elections).await);
    let (leases, ending) = view.ending_leases(LEASES);
    let (held, waiting) = view.standing();
    let now = view.uptime();
    let history = view.history(question.after, HAPPENINGS);
    json!({
        "uptime_ms": milliseconds(now),
        "trouble": view.trouble(),
        "may_release": may_release,
        "held": held,
        "waiting": waiting,
        "watchers": view.watchers(),
        "page": LINES,
        "locks": locks,
        "elections": elections,
        "leases": {
            "total": leases,
            "counted_here": view.counts_leases(),
            "ending": ending.iter().map(lease).collect::<Vec<_>>(),
        },
        "members": view.members().iter().map(member).collect::<Vec<_>>(),
        "samples": samples(&view.samples()),
        "history": history.iter().map(|one| happening(one, now)).collect::<Vec<_>>(),
    })
}

/// As `vez status` tells them apart: a leader says something else.
fn is_of_a_lock(value: &[u8]) -> bool {
    value.is_empty() || Holder::parse(value).is_some()
}

fn line(line: &Line) -> Value {
    json!({
        "name": text(&line.name),
        "first": standing(&line.first),
        "waiting": line.waiting.iter().map(standing).collect::<Vec<_>>(),
        "waiting_total": line.waiting_total,
    })
}

fn standing(standing: &Standing) -> Value {
    let id = (standing.key.len() <= KEY_BYTES).then(|| hex(&standing.key));
    json!({
        "id": id,
        "who": who(&standing.value),
        "lease": format!("{:x}", standing.lease),
        "left_ms": standing.left.map(|(left, _)| milliseconds(left)),
        "ttl_ms": standing.left.map(|(_, ttl)| milliseconds(ttl)),
        "fence": standing.fence,
        "since": lapse(standing.since),
    })
}

/// What a holder or leader says of itself; nothing, if it says nothing.
fn who(value: &[u8]) -> String {
    Holder::parse(value).map_or_else(|| text(value), |holder| holder.who)
}

fn lapse(lapse: Lapse) -> Value {
    json!({ "ms": milliseconds(lapse.time), "least": lapse.is_least })
}

fn lease(lease: &LeaseSeen) -> Value {
    json!({
        "id": format!("{:x}", lease.id),
        "ttl_ms": milliseconds(lease.ttl),
        "left_ms": milliseconds(lease.left),
        "key": lease.key.as_ref().map(|key| text(key)),
        "keys": lease.keys,
    })
}

fn member(member: &MemberSeen) -> Value {
    json!({
        "id": format!("{:x}", member.id),
        "name": member.name,
        "client_urls": member.client_urls,
        "leads": member.leads,
        "learns": member.is_learner,
        "own": member.own.as_ref().map(own),
    })
}

fn own(own: &OwnSeen) -> Value {
    json!({
        "term": own.term,
        "revision": own.revision,
        "keys": own.keys,
        "disk_bytes": own.disk_bytes,
        "version": own.version,
    })
}

fn samples(samples: &[Sample]) -> Value {
    // A hundredth is more than a plot shows, and a sixth of the digits.
    let round = |number: f64| (number * 100.0).round() / 100.0;
    let plain = |of: fn(&Sample) -> f64| samples.iter().map(|one| round(of(one))).collect();
    let some = |of: fn(&Sample) -> Option<f64>| {
        samples.iter().map(|one| of(one).map(|ms| (ms * 1e4).round() / 1e4)).collect()
    };
    let (requests, grants): (Vec<f64>, Vec<f64>) =
        (plain(|one| one.requests), plain(|one| one.grants));
    let (request_ms, wait_ms, sync_ms): (Vec<Option<f64>>, Vec<_>, Vec<_>) =
        (some(|one| one.request_ms), some(|one| one.wait_ms), some(|one| one.sync_ms));
    let waiting: Vec<u64> = samples.iter().map(|one| one.waiting).collect();
    json!({
        "requests": requests,
        "request_ms": request_ms,
        "grants": grants,
        "wait_ms": wait_ms,
        "sync_ms": sync_ms,
        "waiting": waiting,
    })
}

fn happening(happening: &Happening, now: Duration) -> Value {
    let (what, why) = match happening.what {
        What::Granted => ("granted", None),
        What::HandedOver => ("handed-over", None),
        What::Ended(why) => ("ended", Some(why)),
        What::Left(why) => ("left", Some(why)),
    };
    json!({
        "number": happening.number,
        "ago_ms": milliseconds(now.saturating_sub(happening.at)),
        "what": what,
        "why": why.map(|why| why.name().replace(' ', "-")),
        "name": text(&happening.name),
        "who": who(&happening.who),
        "lease": format!("{:x}", happening.lease),
        "fence": happening.fence,
        "took": lapse(happening.took),
    })
}

/// Keys and values are bytes; people read as much of them as is text.
fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SIGNS)]).into_owned();
    match text.char_indices().nth(SIGNS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|sign| sign.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let is_even = digits.len().is_multiple_of(2) && !digits.is_empty();
    is_even.then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
