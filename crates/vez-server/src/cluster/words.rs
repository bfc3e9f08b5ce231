//! What openraft says, in the words that members exchange, and back.

use openraft::raft::{self, StreamAppendError, StreamAppendResult};
use vez_api::peer::append_response::{Answer, Matched};
use vez_api::peer::{AppendRequest, AppendResponse, Ballot, LogId, VoteRequest, VoteResponse};

use crate::store::record::{self, Damage};
use crate::store::{self, Types, Vote};

fn missing(what: &str) -> Damage {
    Damage::Content(format!("it has no {what}"))
}

pub(super) fn log_id(id: store::LogId) -> LogId {
    LogId { term: **id.committed_leader_id(), index: id.index }
}

pub(super) fn to_log_id(id: LogId) -> store::LogId {
    store::LogId::new_term_index(id.term, id.index)
}

pub(super) fn ballot(vote: &Vote) -> Ballot {
    let (term, member) = (vote.leader_id.term, vote.leader_id.voted_for);
    Ballot { term, member, committed: vote.committed }
}

pub(super) fn to_vote(ballot: Option<Ballot>) -> Result<Vote, Damage> {
    let Ballot { term, member, committed } = ballot.ok_or_else(|| missing("ballot"))?;
    Ok(if committed { Vote::new_committed(term, member) } else { Vote::new(term, member) })
}

pub(super) fn append(
    request: &raft::AppendEntriesRequest<Types>,
    is_notice: bool,
) -> AppendRequest {
    AppendRequest {
        ballot: Some(ballot(&request.vote)),
        previous: request.prev_log_id.map(log_id),
        entries: request.entries.iter().map(record::encode_entry).collect(),
        committed: request.leader_commit.map(log_id),
        is_notice,
    }
}

pub(super) fn to_append(
    request: &AppendRequest,
) -> Result<raft::AppendEntriesRequest<Types>, Damage> {
    let entries: Result<_, _> = request.entries.iter().map(record::decode_entry).collect();
    Ok(raft::AppendEntriesRequest {
        vote: to_vote(request.ballot)?,
        prev_log_id: request.previous.map(to_log_id),
        entries: entries?,
        leader_commit: request.committed.map(to_log_id),
    })
}

pub(super) fn appended(result: &StreamAppendResult<Types>) -> AppendResponse {
    let answer = match result {
        Ok(last) => Answer::Matched(Matched { last: last.map(log_id) }),
        Err(StreamAppendError::Conflict(at)) => Answer::Conflict(log_id(*at)),
        Err(StreamAppendError::HigherVote(vote)) => Answer::Higher(ballot(vote)),
    };
    AppendResponse { answer: Some(answer) }
}

pub(super) fn to_appended(answer: AppendResponse) -> Result<StreamAppendResult<Types>, Damage> {
    Ok(match answer.answer.ok_or_else(|| missing("answer"))? {
        Answer::Matched(Matched { last }) => Ok(last.map(to_log_id)),
        Answer::Conflict(at) => Err(StreamAppendError::Conflict(to_log_id(at))),
        Answer::Higher(ballot) => Err(StreamAppendError::HigherVote(to_vote(Some(ballot))?)),
    })
}

pub(super) fn vote(request: &raft::VoteRequest<Types>, is_question: bool) -> VoteRequest {
    VoteRequest {
        ballot: Some(ballot(&request.vote)),
        last: request.last_log_id.map(log_id),
        is_transfer: request.leadership_transfer,
        is_question,
    }
}

pub(super) fn to_vote_request(request: VoteRequest) -> Result<raft::VoteRequest<Types>, Damage> {
    let mut made = raft::VoteRequest::new(to_vote(request.ballot)?, request.last.map(to_log_id));
    made.leadership_transfer = request.is_transfer;
    Ok(made)
}

pub(super) fn voted(response: &raft::VoteResponse<Types>) -> VoteResponse {
    VoteResponse {
        ballot: Some(ballot(&response.vote)),
        granted: response.vote_granted,
        last: response.last_log_id.map(log_id),
    }
}

pub(super) fn to_voted(response: VoteResponse) -> Result<raft::VoteResponse<Types>, Damage> {
    let vote = to_vote(response.ballot)?;
    Ok(raft::VoteResponse::new(vote, response.last.map(to_log_id), response.granted))
}
