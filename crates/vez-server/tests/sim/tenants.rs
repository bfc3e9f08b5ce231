//! Who relies on a lease alone, and for as long as it was promised; and who writes without a
//! condition, so that whatever is done twice is seen.

use std::collections::BTreeSet;
use std::time::Duration;

use rand::RngExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use vez_api::end_of_prefix;
use vez_api::etcdserverpb::kv_client::KvClient;
use vez_api::etcdserverpb::lease_client::LeaseClient;
use vez_api::etcdserverpb::{
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest,
    PutRequest, RangeRequest,
};
use vez_api::mvccpb::KeyValue;
use vez_server::chance::Chance;

use crate::clients::{Town, Ways};
use crate::judge::Note;

/// Longer than it takes to find another leader, and a little more: a server that tried twice would
/// have the time for it.
const PATIENCE: Duration = Duration::from_secs(4);
/// How soon somebody who waits sees that all is over.
const LOOK: Duration = Duration::from_millis(100);

const HOMES: &str = "home/";
const NOTES: &str = "note/";

/// Takes leases one after the other, and something that is bound to each. Renews it or asks how
/// long it lasts, as late as it may; in the end it gives it up, or lets it run out.
pub(crate) async fn reside(town: Town, number: usize) {
    let mut ways = Ways::new(&town, number);
    while !town.judge.is_over() {
        town.idle().await;
        let ttl = Duration::from_secs(Chance.random_range(1..=3));
        let Some(mut tenant) = Tenant::moves_in(&town, &ways, ttl).await else {
            ways.move_on().await;
            continue;
        };
        for _ in 0..Chance.random_range(0..10) {
            tenant.rest(&town, ttl.mul_f64(Chance.random_range(0.2..0.9))).await;
            if Chance.random_ratio(1, 8) {
                tenant.asks(&town, ways.now()).await;
            } else if !tenant.renews(&town, ways.now()).await {
                ways.move_on().await;
            }
        }
        if Chance.random_ratio(1, 4) {
            tenant.moves_out(&town, ways.now()).await;
        } else {
            let left = tenant.until.saturating_sub(town.judge.now());
            tenant.rest(&town, left).await;
        }
    }
}

struct Tenant {
    lease: i64,
    /// Until when the lease lasts, at least.
    until: Duration,
}

impl Tenant {
    async fn moves_in(town: &Town, ways: &Ways, ttl: Duration) -> Option<Self> {
        let sent = town.judge.now();
        let request = LeaseGrantRequest { ttl: ttl.as_secs().cast_signed(), id: 0 };
        let granted = town.soon(LeaseClient::new(ways.now()).lease_grant(request)).await?;
        // It may be more than was asked for.
        let (lease, until) = (granted.id, sent + seconds(granted.ttl));
        town.judge.promises(lease, until);
        let key = format!("{HOMES}{lease:x}").into();
        let put = PutRequest { key, lease, ..PutRequest::default() };
        town.soon(KvClient::new(ways.now()).put(put)).await?;
        town.judge.moves_in(lease);
        Some(Self { lease, until })
    }

    /// Says whether it was answered.
    async fn renews(&mut self, town: &Town, channel: Channel) -> bool {
        let (sent, id) = (town.judge.now(), self.lease);
        let (ask, requests) = mpsc::channel(1);
        let asked = async {
            ask.send(LeaseKeepAliveRequest { id }).await.ok()?;
            let mut client = LeaseClient::new(channel);
            let answers = client.lease_keep_alive(ReceiverStream::new(requests)).await;
            answers.ok()?.into_inner().message().await.ok()?
        };
        let Ok(Some(answer)) = timeout(town.deadline, asked).await else { return false };
        if answer.ttl <= 0 {
            town.judge.is_gone(id);
        } else {
            self.hears(town, sent + seconds(answer.ttl));
        }
        true
    }

    async fn asks(&mut self, town: &Town, channel: Channel) {
        let (sent, id) = (town.judge.now(), self.lease);
        let request = LeaseTimeToLiveRequest { id, keys: false };
        let asked = town.soon(LeaseClient::new(channel).lease_time_to_live(request)).await;
        let Some(answer) = asked else { return };
        if answer.ttl < 0 {
            town.judge.is_gone(id);
        } else {
            self.hears(town, sent + seconds(answer.ttl));
        }
    }

    fn hears(&mut self, town: &Town, until: Duration) {
        self.until = self.until.max(until);
        town.judge.promises(self.lease, until);
    }

    async fn moves_out(self, town: &Town, channel: Channel) {
        town.judge.moves_out(self.lease);
        let request = LeaseRevokeRequest { id: self.lease };
        town.soon(LeaseClient::new(channel).lease_revoke(request)).await;
    }

    /// Not in the end, when all that is left is to finish.
    async fn rest(&self, town: &Town, time: Duration) {
        let ends = Instant::now() + time;
        while Instant::now() < ends && !town.judge.is_over() {
            sleep(LOOK.min(ends - Instant::now())).await;
        }
    }
}

/// Looks whether everything is there whose lease lasts.
pub(crate) async fn visit(town: Town, number: usize) {
    let who = format!("visitor {number}");
    town.judge.joins(&who);
    let mut ways = Ways::new(&town, number + 1);
    while !town.judge.is_over() {
        town.idle().await;
        let asked = town.judge.homes();
        match all(&town, ways.now(), HOMES).await {
            Some(found) => {
                let lease = |kv: KeyValue| i64::from_str_radix(last(&kv), 16).expect("a lease");
                town.judge.finds(&asked, &found.into_iter().map(lease).collect::<BTreeSet<_>>());
                town.judge.gets_on(&who);
            }
            None => ways.move_on().await,
        }
    }
}

/// Writes without a condition, here and there, each into a key of its own.
pub(crate) async fn write_notes(town: Town, writer: usize) {
    let who = format!("note writer {writer}");
    town.judge.joins(&who);
    let mut ways = Ways::new(&town, writer);
    for number in 0.. {
        if town.judge.is_over() {
            return;
        }
        town.idle().await;
        town.judge.begins_note(writer, number);
        let key = format!("{NOTES}{writer}/{number}").into();
        let mut client = KvClient::new(ways.now());
        let asked = client.put(PutRequest { key, ..PutRequest::default() });
        if let Ok(Ok(answer)) = timeout(PATIENCE, asked).await {
            let revision = answer.into_inner().header.expect("a header").revision;
            town.judge.noted(writer, number, revision);
            town.judge.gets_on(&who);
        }
        ways.move_on().await;
    }
}

/// Reads all notes, at one member, until it answers.
pub(crate) async fn read_notes(town: &Town, url: &str) {
    let (begun, known) = (Instant::now(), town.judge.notes());
    let found = loop {
        if let Some(found) = all(town, town.channel(url), NOTES).await {
            break found;
        }
        assert!(begun.elapsed() < 10 * PATIENCE, "{url} does not answer");
        sleep(Duration::from_millis(10)).await;
    };
    let note = |kv: &KeyValue| -> Note {
        let text = std::str::from_utf8(&kv.key[NOTES.len()..]).expect("a text");
        let (writer, number) = text.split_once('/').expect("two numbers");
        let note = (writer.parse().expect("a number"), number.parse().expect("a number"));
        (note, kv.version, kv.create_revision)
    };
    town.judge.reads_notes(&known, &found.iter().map(note).collect::<Vec<_>>());
}

async fn all(town: &Town, channel: Channel, prefix: &'static str) -> Option<Vec<KeyValue>> {
    let key = prefix.into();
    let range_end = end_of_prefix(prefix.as_bytes());
    let asked = RangeRequest { key, range_end, ..RangeRequest::default() };
    Some(town.soon(KvClient::new(channel).range(asked)).await?.kvs)
}

fn seconds(ttl: i64) -> Duration {
    Duration::from_secs(ttl.max(0).cast_unsigned())
}

fn last(kv: &KeyValue) -> &str {
    let text = std::str::from_utf8(&kv.key).expect("a text");
    text.rsplit_once('/').map_or(text, |(_, last)| last)
}
