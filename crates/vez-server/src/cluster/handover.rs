//! A leader that goes leaves somebody in its place.

use std::time::Duration;

use openraft::async_runtime::watch::WatchReceiver as _;
use tokio::time::timeout;

use crate::raft::{ProposeError, Replica};

/// How much longer a member does what others ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Stays,
    /// It follows to the end, but must not be given the lead.
    Leaves,
    /// It answers nobody.
    Left,
}

/// How long words under way to a member that leaves may take.
const FAREWELL: Duration = Duration::from_millis(200);

impl Replica {
    /// Answers other members no longer: what they said before is answered when it returns.
    pub(crate) async fn leave(&self) {
        self.stage().send_replace(Stage::Left);
        // Whoever is heard looks at the stage for as long as that takes.
        timeout(FAREWELL, self.stage().closed()).await.ok();
    }

    /// Has another lead, if this member does and another can: `to`, or whoever is furthest. Says
    /// whether another leads now.
    pub(crate) async fn hand_over(&self, to: Option<u64>) -> Result<bool, ProposeError> {
        if !self.is_leader() {
            return Ok(true);
        }
        let own = self.member_id();
        let Some(to) = to.or_else(|| self.furthest()) else { return Ok(false) };
        tracing::info!("handing over to member {to:x}");
        let handed = self.raft().trigger().transfer_leader(to).await;
        handed.map_err(|_| ProposeError::Stopping)?;
        let mut leadership = self.leadership();
        let taken = leadership.wait_for(|now| now.leader.is_some_and(|leader| leader != own));
        let taken = timeout(self.timing().election, taken).await;
        Ok(matches!(taken, Ok(Ok(()))))
    }

    /// A leader whose disk hangs is of no use to anybody; never ends.
    pub(crate) async fn hand_over_when_hanging(&self) {
        loop {
            tokio::time::sleep(self.timing().election).await;
            if self.is_leader()
                && self.hangs().is_some()
                && matches!(self.hand_over(None).await, Ok(true))
            {
                tracing::warn!("the disk hangs: another leads now");
            }
        }
    }

    /// The member that has most of the log, among those that were heard of late.
    fn furthest(&self) -> Option<u64> {
        let others: Vec<_> = {
            let metrics = self.raft().metrics();
            let now = metrics.borrow_watched();
            let matched = now.replication.as_ref()?;
            let others = now.membership_config.voter_ids().filter(|id| *id != self.member_id());
            others.map(|id| (matched.get(&id).copied().flatten(), id)).collect()
        };
        let of_late = others.into_iter().filter(|(_, id)| self.is_heard(*id));
        of_late.max_by_key(|(matched, _)| *matched).map(|(_, id)| id)
    }
}
