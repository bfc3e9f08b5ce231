//! Any member serves any client: what only the leader can do, it is asked to.
//!
//! **Invariant:** a write is tried again only while it is certain that nobody has taken it. What is
//! promised about a lease, and what is called up to date, was confirmed by a majority after it was
//! asked for.

use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Status};
use vez_api::etcdserverpb::{LeaseTimeToLiveRequest, LeaseTimeToLiveResponse};
use vez_api::log::Command;
use vez_api::peer::change_request::Change;
use vez_api::peer::proposed::Answer;
use vez_api::peer::{
    ChangeRequest, ChangeResponse, Proposed, ReadIndexRequest, ReadIndexResponse, Refusal,
    RenewRequest, RenewResponse, TimeToLiveResponse,
};

use super::gate::Gate;
use super::link::Link;
use super::members::Changed;
use super::passing::{Told, was_not_heard};
use crate::api::{Service, status};
use crate::raft::{Haste, ProposeError, Replica};
use crate::state::Response;
use crate::store::Proposal;

/// How long a request may take beyond the time in which a leader is found, as in etcd.
const REQUEST: Duration = Duration::from_secs(5);
/// Between two looks at who leads.
const LOOK: Duration = Duration::from_millis(10);

/// Who leads.
enum Lead {
    Here,
    There(u64, Link),
    Nowhere,
}

fn not_leader() -> ProposeError {
    ProposeError::NotLeader { leader: None, address: None }
}

impl Replica {
    fn lead(&self) -> Lead {
        // Who cannot write neither leads nor follows.
        if self.counters().failure().is_some() {
            return Lead::Nowhere;
        }
        let leader = self.leadership().borrow().leader;
        match leader {
            None => Lead::Nowhere,
            Some(leader) if leader == self.member_id() => Lead::Here,
            // Who has not been heard for this long is no leader of ours any more.
            Some(_) if self.timing().election < self.heard().ago() => Lead::Nowhere,
            Some(leader) => match self.link(leader) {
                Some(link) => Lead::There(leader, link),
                None => Lead::Nowhere,
            },
        }
    }

    /// Returns when this member has been without a leader for long; never, if it is alone.
    pub(crate) async fn leaderless(&self) {
        let mut is_leaderless = self.is_leaderless().subscribe();
        // Whoever tells lives as long as we do.
        is_leaderless.wait_for(|is_so| *is_so).await.ok();
    }

    /// Sees whether there is a leader; never ends.
    pub(crate) async fn watch_for_leaders(&self) {
        let mut looks = 0;
        loop {
            let has_leader = match self.lead() {
                Lead::Nowhere => false,
                Lead::Here => self.has_majority(),
                Lead::There(..) => true,
            };
            looks = if has_leader { 0 } else { looks + 1 };
            self.is_leaderless()
                .send_if_modified(|is_so| std::mem::replace(is_so, 2 < looks) != (2 < looks));
            tokio::time::sleep(self.timing().election / 2).await;
        }
    }

    /// Until when a leader is looked for.
    fn patience(&self) -> Instant {
        Instant::now() + 2 * self.timing().election
    }

    fn limit(&self) -> Instant {
        self.patience() + REQUEST
    }

    /// Waits for somebody to lead; not for ever.
    async fn pause(&self, patience: Instant) -> Result<(), ProposeError> {
        if let Some(why) = self.counters().failure() {
            return Err(ProposeError::DiskOfOne(why.to_owned()));
        }
        if patience <= Instant::now() {
            return Err(ProposeError::NoMajority);
        }
        let mut leadership = self.leadership();
        leadership.mark_unchanged();
        tokio::select! {
            biased;
            changed = leadership.changed() => changed.map_err(|_| ProposeError::Stopping),
            () = tokio::time::sleep(LOOK) => Ok(()),
        }
    }

    /// Asks the leader; gives up when another leads, and nothing came for a while after that.
    async fn told<T>(
        &self,
        leader: u64,
        (limit, grace): (Instant, Duration),
        asked: impl Future<Output = Told<T>>,
    ) -> Told<T> {
        let mut leadership = self.leadership();
        let deposed = async {
            if leadership.wait_for(|now| now.leader != Some(leader)).await.is_ok() {
                tokio::time::sleep(grace).await;
            }
        };
        tokio::select! {
            biased;
            told = timeout_at(limit, asked) => told.unwrap_or(Told::Unknown),
            () = deposed => Told::Unknown,
        }
    }

    /// Returns the answer once the command is durable at a majority and applied here.
    pub(crate) async fn propose_anywhere(
        &self,
        command: Command,
        haste: Haste,
    ) -> Result<Response, ProposeError> {
        if !self.has_peers() {
            let written = self.propose_here(Proposal::new(command), haste).await;
            return written.map(|(response, _)| response);
        }
        let (patience, limit) = (self.patience(), self.limit());
        let proposal = Proposal::new(command);
        loop {
            let outcome = match self.lead() {
                Lead::Nowhere => Err(not_leader()),
                Lead::Here => tokio::select! {
                    biased;
                    outcome = self.propose_here(proposal.clone(), haste) => outcome,
                    () = self.abandoned(limit) => Err(ProposeError::Late),
                },
                Lead::There(leader, link) => {
                    let asked = link.pass(proposal.encoded().clone(), haste);
                    // Who has handed over says what became of what it was asked before.
                    match self.told(leader, (limit, link.grace()), asked).await {
                        Told::Answer(outcome) => outcome,
                        Told::NotTaken => Err(not_leader()),
                        Told::Unknown => Err(ProposeError::Unknown),
                    }
                }
            };
            match outcome {
                Ok((response, index)) => {
                    self.applied(index, limit).await?;
                    return Ok(response);
                }
                Err(ProposeError::NotLeader { .. }) => self.pause(patience).await?,
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns when nobody but this leader has been heard for long, or when it takes too long.
    async fn abandoned(&self, limit: Instant) {
        let election = self.timing().election;
        let mut looks = 0;
        while looks < 2 && Instant::now() < limit {
            tokio::time::sleep(election / 2).await;
            looks = if self.has_majority() { 0 } else { looks + 1 };
        }
    }

    /// Changes who belongs to the cluster; that can be seen here when it returns.
    pub(crate) async fn change_anywhere(&self, change: Change) -> Result<Changed, ProposeError> {
        let (patience, limit) = (self.patience(), self.limit());
        loop {
            let outcome = match self.lead() {
                Lead::Nowhere => Err(not_leader()),
                Lead::Here => timeout_at(limit, self.change_here(change.clone()))
                    .await
                    .unwrap_or(Err(ProposeError::Late)),
                Lead::There(leader, link) => {
                    let word = ChangeRequest { change: Some(change.clone()) };
                    let asked =
                        async { link.client()?.change(link.address(word)).await }.map(heard);
                    match self.told(leader, (limit, link.grace()), asked).await {
                        Told::Answer(ChangeResponse { refusal: Some(refusal), .. }) => {
                            Err(refused(refusal))
                        }
                        Told::Answer(ChangeResponse { index, member, .. }) => {
                            Ok(Changed { index, member })
                        }
                        Told::NotTaken => Err(not_leader()),
                        Told::Unknown => Err(ProposeError::Unknown),
                    }
                }
            };
            match outcome {
                Ok(changed) => {
                    // Who has been removed is told nothing more.
                    if !matches!(change, Change::Remove(gone) if gone == self.member_id()) {
                        self.applied(changed.index, limit).await?;
                    }
                    return Ok(changed);
                }
                Err(ProposeError::NotLeader { .. } | ProposeError::NoMajority) => {
                    self.pause(patience).await?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns once all that was acknowledged anywhere before the call can be read here.
    pub(crate) async fn up_to_date(&self) -> Result<(), ProposeError> {
        if !self.has_peers() {
            return self.linearizable().await;
        }
        let limit = self.limit();
        let replica = self.clone();
        let index = self.questions().join(move || {
            let replica = replica.clone();
            async move { replica.read_index().await }
        });
        let index = index.await.unwrap_or(Err(ProposeError::Stopping))?;
        self.applied(index, limit).await
    }

    /// What must be applied for that.
    async fn read_index(&self) -> Result<u64, ProposeError> {
        let there = |link: Link| async move {
            link.client()?.read_index(link.address(ReadIndexRequest {})).await
        };
        let index = |told: ReadIndexResponse| told.refusal.is_none().then_some(told.index);
        self.by_leader(|| self.confirm(), there, index).await
    }

    /// Has the leader do what harms nobody if it is done twice, here or there; again, while nobody
    /// is sure to lead. `take` finds the answer in what was told, if there is one.
    async fn by_leader<T, W, H, R>(
        &self,
        here: impl Fn() -> H,
        there: impl Fn(Link) -> R,
        take: impl Fn(W) -> Option<T>,
    ) -> Result<T, ProposeError>
    where
        H: Future<Output = Result<T, ProposeError>>,
        R: Future<Output = Result<tonic::Response<W>, Status>>,
    {
        let (patience, limit) = (self.patience(), self.limit());
        loop {
            match self.lead() {
                Lead::Nowhere => {}
                Lead::Here => match here().await {
                    Err(ProposeError::NotLeader { .. } | ProposeError::NoMajority) => {}
                    answer => return answer,
                },
                Lead::There(leader, link) => {
                    let told =
                        self.told(leader, (limit, Duration::ZERO), there(link).map(heard)).await;
                    if let Told::Answer(word) = told
                        && let Some(answer) = take(word)
                    {
                        return Ok(answer);
                    }
                }
            }
            self.pause(patience).await?;
        }
    }

    /// That this member leads, confirmed by a majority after the call; and what must be applied
    /// for all that was acknowledged before.
    async fn confirm(&self) -> Result<u64, ProposeError> {
        let replica = self.clone();
        let index = self.confirmations().join(move || {
            let replica = replica.clone();
            async move { replica.confirm_here().await }
        });
        index.await.unwrap_or(Err(ProposeError::Stopping))
    }

    async fn applied(&self, index: u64, limit: Instant) -> Result<(), ProposeError> {
        timeout_at(limit, self.progress().wait(index)).await.map_err(|_| ProposeError::Late)
    }
}

impl Service {
    /// Gives a lease its full time again: seconds, or 0 if it was over.
    pub(crate) async fn renew(&self, lease: i64) -> Result<i64, ProposeError> {
        if !self.replica.has_peers() {
            return Ok(self.lessor.renew(lease).unwrap_or(0));
        }
        let here = || async move { Ok(self.renew_here(&[lease]).await?[0]) };
        let there = |link: Link| async move {
            let word = RenewRequest { leases: vec![lease] };
            link.client()?.renew(link.address(word)).await
        };
        let seconds = |told: RenewResponse| match told.refusal {
            None => Some(told.seconds.first().copied().unwrap_or(0)),
            Some(_) => None,
        };
        self.replica.by_leader(here, there, seconds).await
    }

    /// The clock first, the majority afterwards: whoever leads next begins later than this, and
    /// gives the lease its full time then.
    async fn renew_here(&self, leases: &[i64]) -> Result<Vec<i64>, ProposeError> {
        let seconds = self.lessor.renew_all(leases).ok_or_else(not_leader)?;
        self.replica.confirm().await?;
        Ok(seconds)
    }

    /// What is left to a lease, and its keys.
    pub(crate) async fn time_to_live(
        &self,
        request: LeaseTimeToLiveRequest,
    ) -> Result<LeaseTimeToLiveResponse, ProposeError> {
        if !self.replica.has_peers() {
            self.replica.linearizable().await?;
            return Ok(self.look_at_lease(&request));
        }
        let there =
            |link: Link| async move { link.client()?.time_to_live(link.address(request)).await };
        let here = || self.time_to_live_here(&request);
        self.replica.by_leader(here, there, |told: TimeToLiveResponse| told.answer).await
    }

    async fn time_to_live_here(
        &self,
        request: &LeaseTimeToLiveRequest,
    ) -> Result<LeaseTimeToLiveResponse, ProposeError> {
        let index = self.replica.confirm().await?;
        self.replica.applied(index, self.replica.limit()).await?;
        if !self.lessor.leads() {
            return Err(not_leader());
        }
        Ok(self.look_at_lease(request))
    }
}

impl Gate {
    pub(super) async fn change_here(&self, request: ChangeRequest) -> ChangeResponse {
        let Some(change) = request.change else {
            let text = "vez: this member does not know such a change".to_owned();
            let refusal = Refusal { is_not_leader: false, code: Code::Unimplemented.into(), text };
            return ChangeResponse { refusal: Some(refusal), ..ChangeResponse::default() };
        };
        match self.service.replica.change_here(change).await {
            Ok(Changed { index, member }) => ChangeResponse { index, member, refusal: None },
            Err(error) => {
                ChangeResponse { refusal: Some(refusal(error)), ..ChangeResponse::default() }
            }
        }
    }

    pub(super) async fn read_index_here(&self) -> ReadIndexResponse {
        match self.service.replica.confirm().await {
            Ok(index) => ReadIndexResponse { index, refusal: None },
            Err(error) => ReadIndexResponse { index: 0, refusal: Some(refusal(error)) },
        }
    }

    pub(super) async fn renew_here(&self, leases: &[i64]) -> RenewResponse {
        match self.service.renew_here(leases).await {
            Ok(seconds) => RenewResponse { seconds, refusal: None },
            Err(error) => RenewResponse { seconds: Vec::new(), refusal: Some(refusal(error)) },
        }
    }

    pub(super) async fn time_to_live_here(
        &self,
        request: &LeaseTimeToLiveRequest,
    ) -> TimeToLiveResponse {
        match self.service.time_to_live_here(request).await {
            Ok(answer) => TimeToLiveResponse { answer: Some(answer), refusal: None },
            Err(error) => TimeToLiveResponse { answer: None, refusal: Some(refusal(error)) },
        }
    }
}

fn heard<T>(answer: Result<tonic::Response<T>, Status>) -> Told<T> {
    match answer {
        Ok(answer) => Told::Answer(answer.into_inner()),
        Err(status) if was_not_heard(&status) => Told::NotTaken,
        Err(_) => Told::Unknown,
    }
}

fn refusal(error: ProposeError) -> Refusal {
    let is_not_leader = matches!(error, ProposeError::NotLeader { .. });
    let status = status(error);
    Refusal { is_not_leader, code: status.code().into(), text: status.message().to_owned() }
}

fn refused(refusal: Refusal) -> ProposeError {
    let Refusal { is_not_leader, code, text } = refusal;
    if is_not_leader { not_leader() } else { ProposeError::Refused { code, text } }
}

fn answer(response: Response) -> Answer {
    match response {
        Response::Put(answer) => Answer::Put(answer),
        Response::DeleteRange(answer) => Answer::DeleteRange(answer),
        Response::Txn(answer) => Answer::Txn(answer),
        Response::Compact(answer) => Answer::Compact(answer),
        Response::LeaseGrant(answer) => Answer::LeaseGrant(answer),
        Response::LeaseRevoke(answer) => Answer::LeaseRevoke(answer),
        Response::Take(answer) => Answer::Taken(answer),
        Response::Leave(answer) => Answer::Left(answer),
    }
}

/// What is told of a write that was passed on under this number.
pub(super) fn proposed(number: u64, outcome: Result<(Response, u64), ProposeError>) -> Proposed {
    let (index, answer) = match outcome {
        Ok((response, index)) => (index, answer(response)),
        Err(error) => (0, Answer::Refusal(refusal(error))),
    };
    Proposed { number, index, answer: Some(answer) }
}

pub(super) fn answered(told: Proposed) -> Result<(Response, u64), ProposeError> {
    let response = match told.answer {
        Some(Answer::Refusal(refusal)) => return Err(refused(refusal)),
        Some(Answer::Put(answer)) => Response::Put(answer),
        Some(Answer::DeleteRange(answer)) => Response::DeleteRange(answer),
        Some(Answer::Txn(answer)) => Response::Txn(answer),
        Some(Answer::Compact(answer)) => Response::Compact(answer),
        Some(Answer::LeaseGrant(answer)) => Response::LeaseGrant(answer),
        Some(Answer::LeaseRevoke(answer)) => Response::LeaseRevoke(answer),
        Some(Answer::Taken(answer)) => Response::Take(answer),
        Some(Answer::Left(answer)) => Response::Leave(answer),
        // It did something, and said it in words that we do not know.
        None => return Err(ProposeError::Unknown),
    };
    Ok((response, told.index))
}
