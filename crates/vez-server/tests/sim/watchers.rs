//! Watchers: whichever member tells them, and however often they have to go to another, they hear
//! of every change once and in order.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Streaming};
use vez_api::etcdserverpb::watch_client::WatchClient;
use vez_api::etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse, watch_request};
use vez_api::mvccpb::Event;

use crate::clients::{Town, Ways};

/// What somebody has heard of what writers write.
#[derive(Default)]
struct Heard {
    revision: i64,
    /// Of each key, the version that came last.
    versions: BTreeMap<String, i64>,
}

impl Heard {
    fn hear(&mut self, event: Event) {
        let kv = event.kv.expect("a key");
        let key = String::from_utf8_lossy(&kv.key).into_owned();
        let (before, revision) = (self.revision, kv.mod_revision);
        assert!(before < revision, "in order: {before}, then {revision}");
        self.revision = revision;
        let last = self.versions.insert(key.clone(), kv.version).unwrap_or(0);
        assert_eq!(last + 1, kv.version, "every version of {key} is heard of, once");
    }
}

/// Watches what writers write, from the beginning.
pub(crate) async fn watch(town: Town, number: usize) {
    let who = format!("watcher {number}");
    town.judge.joins(&who);
    let mut ways = Ways::new(&town, number);
    let mut heard = Heard::default();
    while !town.judge.is_over() {
        let opened = timeout(town.deadline, open(ways.now(), heard.revision + 1)).await;
        if let Ok(Some((_keep, mut answers))) = opened {
            // Who is told nothing for long asks somebody else.
            while let Ok(Ok(Some(answer))) = timeout(2 * town.deadline, answers.message()).await {
                assert_eq!(answer.compact_revision, 0, "nothing is forgotten so soon");
                if answer.canceled || town.judge.is_over() {
                    break;
                }
                if !answer.events.is_empty() {
                    town.judge.gets_on(&who);
                }
                answer.events.into_iter().for_each(|event| heard.hear(event));
            }
        }
        ways.move_on().await;
    }
}

/// As a client does that wants to know when its member has no leader.
async fn open(
    channel: Channel,
    from: i64,
) -> Option<(mpsc::Sender<WatchRequest>, Streaming<WatchResponse>)> {
    let create = WatchCreateRequest {
        key: "writer/".into(),
        range_end: "writer0".into(),
        start_revision: from,
        ..WatchCreateRequest::default()
    };
    let request_union = Some(watch_request::RequestUnion::CreateRequest(create));
    let (keep, requests) = mpsc::channel(1);
    keep.send(WatchRequest { request_union }).await.ok()?;
    let mut request = Request::new(ReceiverStream::new(requests));
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    let answers = WatchClient::new(channel).watch(request).await.ok()?;
    Some((keep, answers.into_inner()))
}
