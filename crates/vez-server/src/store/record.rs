//! How entries, votes and members are written down: protobuf, so that fields can be added. What
//! the disk made of them is noticed by the journal; what is beside a snapshot has a checksum here.

use std::collections::BTreeMap;

use bytes::Bytes;
use openraft::impls::{BasicNode, EntryPayload};
use prost::Message;

use super::{Entry, LogId, Mark, Members, Payload, Proposal, SnapshotMeta, StoredMembers, Vote};

/// What was read is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    #[error("its checksum is wrong")]
    Checksum,
    #[error("it cannot be decoded: {0}")]
    Decode(#[from] prost::DecodeError),
    #[error("{0}")]
    Content(String),
}

const CHECKSUM_BYTES: usize = 4;

/// The record with its checksum in front.
fn seal(record: &impl Message) -> Vec<u8> {
    let mut bytes = vec![0; CHECKSUM_BYTES];
    record.encode(&mut bytes).expect("a vector grows");
    let checksum = crc32fast::hash(&bytes[CHECKSUM_BYTES..]);
    bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn unseal<M: Message + Default>(bytes: &[u8]) -> Result<M, Damage> {
    let (checksum, record) = bytes.split_first_chunk().ok_or(Damage::Checksum)?;
    if crc32fast::hash(record) != u32::from_be_bytes(*checksum) {
        return Err(Damage::Checksum);
    }
    // Bytes that own themselves, of which what is decoded then takes slices.
    Ok(M::decode(Bytes::copy_from_slice(record))?)
}

pub(crate) fn encode_entry(entry: &Entry) -> Bytes {
    match &entry.payload {
        EntryPayload::Normal(proposal) => proposal.record(entry.log_id, || encode_anew(entry)),
        _ => encode_anew(entry),
    }
}

fn encode_anew(entry: &Entry) -> Bytes {
    let mut record = EntryRecord { id: Some(entry.log_id.into()), ..EntryRecord::default() };
    match &entry.payload {
        EntryPayload::Blank => {}
        EntryPayload::Normal(proposal) => {
            record.command = Some(proposal.encoded().clone());
            if let Some(Mark { asker, number }) = proposal.mark() {
                (record.asker, record.number) = (asker, number);
            }
        }
        EntryPayload::Membership(members) => record.members = Some(members.into()),
    }
    record.encode_to_vec().into()
}

pub(crate) fn decode_entry(bytes: &Bytes) -> Result<Entry, Damage> {
    let record = EntryRecord::decode(bytes.clone())?;
    let mark = Mark::new(record.asker, record.number);
    let log_id = record.id.ok_or_else(|| Damage::Content("it has no number".to_owned()))?.into();
    let payload: Payload = match (record.command, record.members) {
        (None, None) => EntryPayload::Blank,
        (Some(command), _) => {
            let proposal = Proposal::decode(command, mark)?;
            EntryPayload::Normal(proposal.with_record(log_id, bytes))
        }
        (None, Some(members)) => EntryPayload::Membership(members.try_into()?),
    };
    Ok(Entry { log_id, payload })
}

pub(crate) fn encode_vote(vote: &Vote) -> Vec<u8> {
    let (term, member) = (vote.leader_id.term, vote.leader_id.voted_for);
    VoteRecord { term, member, committed: vote.committed }.encode_to_vec()
}

pub(crate) fn decode_vote(bytes: Bytes) -> Result<Vote, Damage> {
    let VoteRecord { term, member, committed } = VoteRecord::decode(bytes)?;
    let vote = if committed { Vote::new_committed(term, member) } else { Vote::new(term, member) };
    Ok(vote)
}

pub(crate) fn encode_log_id(id: LogId) -> Vec<u8> {
    LogIdRecord::from(id).encode_to_vec()
}

pub(crate) fn decode_log_id(bytes: Bytes) -> Result<LogId, Damage> {
    Ok(LogIdRecord::decode(bytes)?.into())
}

pub(crate) fn encode_meta(meta: &SnapshotMeta) -> Vec<u8> {
    let (last, members_at) = (meta.last_log_id, *meta.last_membership.log_id());
    seal(&SnapshotRecord {
        last: last.map(Into::into),
        members_at: members_at.map(Into::into),
        members: Some(meta.last_membership.membership().into()),
    })
}

pub(crate) fn decode_meta(bytes: &[u8]) -> Result<SnapshotMeta, Damage> {
    let SnapshotRecord { last, members_at, members } = unseal(bytes)?;
    let members = members.unwrap_or_default().try_into()?;
    Ok(SnapshotMeta {
        last_log_id: last.map(Into::into),
        last_membership: StoredMembers::new(members_at.map(Into::into), members),
    })
}

#[derive(Clone, Copy, PartialEq, Message)]
struct LogIdRecord {
    #[prost(uint64, tag = "1")]
    term: u64,
    #[prost(uint64, tag = "2")]
    index: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct VoteRecord {
    #[prost(uint64, tag = "1")]
    term: u64,
    #[prost(uint64, tag = "2")]
    member: u64,
    #[prost(bool, tag = "3")]
    committed: bool,
}

#[derive(Clone, PartialEq, Message)]
struct EntryRecord {
    #[prost(message, optional, tag = "1")]
    id: Option<LogIdRecord>,
    // A message on the wire; bytes here, because the command is shared and need not be cloned.
    #[prost(bytes = "bytes", optional, tag = "2")]
    command: Option<Bytes>,
    #[prost(message, optional, tag = "3")]
    members: Option<MembersRecord>,
    // Who had the command written, and its number there; 0, if nobody has to know it again.
    #[prost(fixed64, tag = "4")]
    asker: u64,
    #[prost(uint64, tag = "5")]
    number: u64,
}

#[derive(Clone, PartialEq, Message)]
struct MembersRecord {
    // More than one while the members change: each must agree.
    #[prost(message, repeated, tag = "1")]
    majorities: Vec<MajorityRecord>,
    #[prost(btree_map = "uint64, string", tag = "2")]
    addresses: BTreeMap<u64, String>,
}

#[derive(Clone, PartialEq, Message)]
struct MajorityRecord {
    #[prost(uint64, repeated, tag = "1")]
    members: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct SnapshotRecord {
    #[prost(message, optional, tag = "1")]
    last: Option<LogIdRecord>,
    #[prost(message, optional, tag = "2")]
    members_at: Option<LogIdRecord>,
    #[prost(message, optional, tag = "3")]
    members: Option<MembersRecord>,
}

impl From<LogId> for LogIdRecord {
    fn from(id: LogId) -> Self {
        Self { term: **id.committed_leader_id(), index: id.index }
    }
}

impl From<LogIdRecord> for LogId {
    fn from(record: LogIdRecord) -> Self {
        Self::new_term_index(record.term, record.index)
    }
}

impl From<&Members> for MembersRecord {
    fn from(members: &Members) -> Self {
        let majority = |of: &std::collections::BTreeSet<u64>| MajorityRecord {
            members: of.iter().copied().collect(),
        };
        Self {
            majorities: members.get_joint_config().iter().map(majority).collect(),
            addresses: members.nodes().map(|(id, node)| (*id, node.addr.clone())).collect(),
        }
    }
}

impl TryFrom<MembersRecord> for Members {
    type Error = Damage;

    fn try_from(record: MembersRecord) -> Result<Self, Damage> {
        if record == MembersRecord::default() {
            return Ok(Self::default());
        }
        let majorities = record.majorities.into_iter();
        let majorities = majorities.map(|majority| majority.members.into_iter().collect());
        let nodes: BTreeMap<u64, BasicNode> =
            record.addresses.into_iter().map(|(id, addr)| (id, BasicNode { addr })).collect();
        let members = Self::new(majorities.collect(), nodes);
        members.map_err(|error| Damage::Content(format!("its members: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use vez_api::etcdserverpb::PutRequest;
    use vez_api::log::command;

    use super::*;

    fn entry(index: u64, proposal: &Proposal) -> Entry {
        let payload = EntryPayload::Normal(proposal.clone());
        Entry { log_id: LogId::new_term_index(3, index), payload }
    }

    #[test]
    fn a_command_of_a_later_version_is_refused_and_not_taken_for_nothing() {
        let id = Some(LogId::new_term_index(1, 1).into());
        // A field with a number that no command has yet.
        let command = Some(Bytes::from_static(&[0xfa, 0x3f, 0]));
        let record = EntryRecord { id, command, ..EntryRecord::default() };
        let refused = decode_entry(&record.encode_to_vec().into()).unwrap_err().to_string();
        assert!(refused.contains("not known here"), "{refused}");
    }

    #[test]
    fn an_entry_is_encoded_once_and_anew_where_it_has_another_place() {
        let put = PutRequest { key: "k".into(), ..PutRequest::default() };
        let proposal = Proposal::new(command::Command::Put(put).into());
        let first = encode_entry(&entry(7, &proposal));
        assert_eq!(first.as_ptr(), encode_entry(&entry(7, &proposal)).as_ptr());
        let again = encode_entry(&entry(8, &proposal));
        assert_eq!(decode_entry(&again).unwrap(), entry(8, &proposal));
        let read = decode_entry(&first).unwrap();
        assert_eq!(read, entry(7, &proposal));
        assert_eq!(encode_entry(&read).as_ptr(), first.as_ptr(), "as it came");
        let moved = Entry { log_id: LogId::new_term_index(4, 7), ..read };
        assert_eq!(decode_entry(&encode_entry(&moved)).unwrap(), moved);
    }
}
