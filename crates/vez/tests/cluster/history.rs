//! What clients do while things go wrong, and whether they were told the truth.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use vez_tls::net::System;

use crate::clients::{self, Town};
use crate::judge::Judge;
use crate::trio::Trio;

const TTL: Duration = Duration::from_secs(3);
/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// Clients at work.
pub(crate) struct History {
    town: Town,
    clients: JoinSet<()>,
}

impl History {
    pub(crate) fn begin(trio: &Trio) -> Self {
        let begun = Instant::now();
        let town = Town {
            endpoints: trio.endpoints_from(0),
            net: Arc::new(System),
            judge: Arc::new(Judge::new(&["room"], move || begun.elapsed())),
            ttl: TTL,
            idle: || Duration::from_millis(1),
        };
        let mut clients = JoinSet::new();
        for client in 0..3 {
            clients.spawn(clients::write(town.clone(), client));
            clients.spawn(clients::read(town.clone(), client));
            clients.spawn(clients::lock(town.clone(), client));
        }
        Self { town, clients }
    }

    /// Waits until every writer, and the room, and readers, have got on by this much.
    pub(crate) async fn goes_on(&self, by: u64) {
        let judge = &self.town.judge;
        let before = judge.progress();
        let gets_on = async {
            while judge.progress().iter().zip(&before).any(|(now, before)| *now < before + by) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_so = timeout(PATIENCE, gets_on).await.is_ok();
        assert!(is_so, "nothing goes on: {before:?} before, {:?} now", judge.progress());
    }

    /// The longest time in which nobody was told that a write was made; counted anew from here.
    pub(crate) fn longest_gap(&self) -> Duration {
        self.town.judge.longest_gap()
    }

    /// Lets everybody finish, and looks for what was acknowledged, at every member.
    pub(crate) async fn end(self, trio: &Trio) {
        self.end_at(trio, [0, 1, 2]).await;
    }

    /// The same at these members.
    pub(crate) async fn end_at(mut self, trio: &Trio, members: [usize; 3]) {
        self.town.judge.end();
        let all = async {
            while let Some(ended) = self.clients.join_next().await {
                ended.expect("no client saw anything wrong");
            }
        };
        timeout(PATIENCE, all).await.expect("all clients come to an end");
        for member in members {
            clients::look(&self.town, &trio.client_url(member)).await;
        }
    }
}
