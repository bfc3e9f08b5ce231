use std::collections::BTreeMap;
use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use vez_api::mvccpb::{Event, KeyValue};

use crate::client::Client;
use crate::error::{Error, Lost};
use crate::place::{self, OnWait, Place, Waiting};
use crate::session::Session;
use crate::watch::{Deaf, Watch, is_deletion};
use crate::wire;

/// Being the leader. Resigned from in the background when dropped; better with
/// [`resign`](Self::resign).
#[derive(Debug)]
#[must_use = "who drops a leadership resigns"]
pub struct Leadership(Place);

impl Leadership {
    /// Grows with every leader of this name: to be shown to whoever is led.
    pub fn fence(&self) -> i64 {
        self.0.fence()
    }

    pub fn key(&self) -> &Bytes {
        self.0.key()
    }

    pub fn lease(&self) -> i64 {
        self.0.session().lease()
    }

    pub fn session(&self) -> &Session {
        self.0.session()
    }

    /// Resolves when somebody else leads, or may soon.
    pub async fn lost(&self) -> Lost {
        self.0.lost().await
    }

    /// Says something else to those who observe.
    pub async fn proclaim(&self, value: impl Into<Bytes>) -> Result<(), Error> {
        self.0.write(value.into()).await
    }

    /// Makes room for the next; never for somebody who leads already.
    pub async fn resign(self) -> Result<(), Error> {
        self.0.leave().await
    }
}

/// Stands for election when awaited; see [`Session::campaign`].
#[must_use = "nothing happens until it is awaited"]
pub struct CampaignRequest {
    session: Session,
    name: String,
    value: Bytes,
    within: Option<Duration>,
    on_wait: Option<OnWait>,
}

impl Session {
    /// Waits until it leads. Whoever drops the future does not stand any more.
    pub fn campaign(&self, name: impl Into<String>, value: impl Into<Bytes>) -> CampaignRequest {
        CampaignRequest {
            session: self.clone(),
            name: name.into(),
            value: value.into(),
            within: None,
            on_wait: None,
        }
    }
}

impl CampaignRequest {
    /// Gives up after this time, with [`Error::TooLong`].
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }

    /// Called with who is ahead, when one has to wait and whenever it changes.
    pub fn on_wait(self, on_wait: impl FnMut(&Waiting) + Send + 'static) -> Self {
        Self { on_wait: Some(Box::new(on_wait)), ..self }
    }
}

impl IntoFuture for CampaignRequest {
    type Output = Result<Leadership, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Self { session, name, value, within, on_wait } = self;
            place::wait_for(&session, &name, value, within, on_wait).await.map(Leadership)
        })
    }
}

/// Who leads, as seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leader {
    pub value: Bytes,
    pub fence: i64,
    pub key: Bytes,
    pub lease: i64,
}

impl Leader {
    pub(crate) fn new(kv: &KeyValue) -> Self {
        Self {
            value: kv.value.clone(),
            fence: kv.create_revision,
            key: kv.key.clone(),
            lease: kv.lease,
        }
    }
}

/// What an observer knows already.
#[derive(PartialEq, Eq)]
enum Told {
    Nothing,
    Nobody,
    Leader(Leader),
}

/// Tells of leaders; made by [`Client::observe`].
pub struct Observer {
    client: Client,
    prefix: Bytes,
    /// By the order of their standing.
    candidates: BTreeMap<i64, KeyValue>,
    watch: Option<Watch>,
    told: Told,
}

impl Observer {
    pub(crate) fn new(client: Client, prefix: Bytes) -> Self {
        Self { client, prefix, candidates: BTreeMap::new(), watch: None, told: Told::Nothing }
    }

    /// The leader now, at the first call; then whenever it, or what it proclaims, is another, or
    /// nobody leads. Changes that come at once are told as one. May be dropped and called again;
    /// waits while nobody can be reached.
    pub async fn next(&mut self) -> Result<Option<Leader>, Error> {
        loop {
            match &mut self.watch {
                None => self.look().await?,
                Some(watch) => match watch.next().await {
                    Ok(events) => events.into_iter().for_each(|event| self.hear(event)),
                    Err(Deaf::Compacted) => self.watch = None,
                    Err(Deaf::Failed(error)) => return Err(error),
                },
            }
            let leader = self.candidates.values().next().map(Leader::new);
            let now = leader.clone().map_or(Told::Nobody, Told::Leader);
            if self.watch.is_some() && self.told != now {
                self.told = now;
                return Ok(leader);
            }
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let range = self.client.persist_range(wire::queue(&self.prefix)).await?;
        let revision = range.header.map_or(0, |header| header.revision);
        self.candidates = range.kvs.into_iter().map(|kv| (kv.create_revision, kv)).collect();
        let end = vez_api::end_of_prefix(&self.prefix);
        let watch = Watch::new(self.client.clone(), self.prefix.clone(), end, revision + 1);
        self.watch = Some(watch);
        Ok(())
    }

    fn hear(&mut self, event: Event) {
        let gone = is_deletion(&event);
        let Some(kv) = event.kv else { return };
        if gone {
            self.candidates.retain(|_, candidate| candidate.key != kv.key);
        } else {
            self.candidates.insert(kv.create_revision, kv);
        }
    }
}
