//! Calls with one request and one answer, which are nearly all: straight from bytes to the method
//! and back.

use std::pin::Pin;

use bytes::{BufMut as _, Bytes};
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::{Request, Response, Status};
use vez_api::etcdserverpb::cluster_server::Cluster;
use vez_api::etcdserverpb::kv_server::Kv;
use vez_api::etcdserverpb::lease_server::Lease;
use vez_api::etcdserverpb::maintenance_server::Maintenance;
use vez_api::v3electionpb::election_server::Election;
use vez_api::v3lockpb::lock_server::Lock;

use super::Service;

/// What gRPC puts before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send>>;

/// How a method is called: with what was said beside the request, and the request as it came.
pub(crate) type Method = fn(Service, MetadataMap, Bytes) -> Answering;

/// An answer as it goes out, and what is said beside it.
pub(crate) struct Answer {
    pub(crate) metadata: MetadataMap,
    pub(crate) message: Bytes,
}

/// By path; nothing, if more than one message goes in or out, or there is no such method.
pub(crate) fn method(path: &str) -> Option<Method> {
    macro_rules! methods {
        ($($path:literal => $service:ident::$method:ident),* $(,)?) => {
            match path {
                $($path => Some(|service, metadata, bytes| {
                    Box::pin(async move {
                        let request = request(metadata, &bytes)?;
                        answer(<Service as $service>::$method(&service, request).await?)
                    })
                }),)*
                _ => None,
            }
        };
    }
    methods! {
        "/v3lockpb.Lock/Lock" => Lock::lock,
        "/v3lockpb.Lock/Unlock" => Lock::unlock,
        "/etcdserverpb.KV/Range" => Kv::range,
        "/etcdserverpb.KV/Put" => Kv::put,
        "/etcdserverpb.KV/DeleteRange" => Kv::delete_range,
        "/etcdserverpb.KV/Txn" => Kv::txn,
        "/etcdserverpb.KV/Compact" => Kv::compact,
        "/etcdserverpb.Lease/LeaseGrant" => Lease::lease_grant,
        "/etcdserverpb.Lease/LeaseRevoke" => Lease::lease_revoke,
        "/etcdserverpb.Lease/LeaseTimeToLive" => Lease::lease_time_to_live,
        "/etcdserverpb.Lease/LeaseLeases" => Lease::lease_leases,
        "/v3electionpb.Election/Campaign" => Election::campaign,
        "/v3electionpb.Election/Proclaim" => Election::proclaim,
        "/v3electionpb.Election/Leader" => Election::leader,
        "/v3electionpb.Election/Resign" => Election::resign,
        "/etcdserverpb.Cluster/MemberAdd" => Cluster::member_add,
        "/etcdserverpb.Cluster/MemberRemove" => Cluster::member_remove,
        "/etcdserverpb.Cluster/MemberUpdate" => Cluster::member_update,
        "/etcdserverpb.Cluster/MemberList" => Cluster::member_list,
        "/etcdserverpb.Cluster/MemberPromote" => Cluster::member_promote,
        "/etcdserverpb.Maintenance/Alarm" => Maintenance::alarm,
        "/etcdserverpb.Maintenance/Status" => Maintenance::status,
        "/etcdserverpb.Maintenance/Defragment" => Maintenance::defragment,
        "/etcdserverpb.Maintenance/Hash" => Maintenance::hash,
        "/etcdserverpb.Maintenance/HashKV" => Maintenance::hash_kv,
        "/etcdserverpb.Maintenance/MoveLeader" => Maintenance::move_leader,
    }
}

/// One message, whole.
fn request<T: Message + Default>(
    metadata: MetadataMap,
    bytes: &Bytes,
) -> Result<Request<T>, Status> {
    let Some((&[compressed, w, x, y, z], message)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(Status::invalid_argument("vez: expected one request, and got none"));
    };
    if compressed != 0 {
        return Err(Status::unimplemented("vez: compressed requests are not understood"));
    }
    if u32::from_be_bytes([w, x, y, z]) as usize != message.len() {
        return Err(Status::invalid_argument("vez: expected one request, whole"));
    }
    let message = T::decode(bytes.slice(PREFIX..))
        .map_err(|error| Status::internal(format!("vez: the request makes no sense: {error}")))?;
    let mut request = Request::new(message);
    *request.metadata_mut() = metadata;
    Ok(request)
}

fn answer<T: Message>(response: Response<T>) -> Result<Answer, Status> {
    let (metadata, message, _) = response.into_parts();
    let length = message.encoded_len();
    let Ok(prefix) = u32::try_from(length) else {
        return Err(Status::out_of_range("vez: the answer has more than 4 GB"));
    };
    let mut bytes = Vec::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(prefix);
    message.encode_raw(&mut bytes);
    Ok(Answer { metadata, message: bytes.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vez_api::etcdserverpb::PutRequest;

    #[test]
    fn a_request_is_one_message_and_nothing_else() {
        let put = PutRequest { key: "k".into(), ..PutRequest::default() };
        let mut bytes = vec![0, 0, 0, 0, put.encoded_len() as u8];
        put.encode_raw(&mut bytes);
        let read = |bytes: &[u8]| {
            let bytes = Bytes::copy_from_slice(bytes);
            request::<PutRequest>(MetadataMap::new(), &bytes).map(Request::into_inner)
        };
        assert_eq!(read(&bytes).expect("it is in order"), put);
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length]).is_err(), "{length}");
        }
        let twice = [&bytes[..], &bytes].concat();
        assert!(read(&twice).is_err());
        let compressed = [&[1], &bytes[1..]].concat();
        assert_eq!(read(&compressed).unwrap_err().code(), tonic::Code::Unimplemented);
        let senseless = [0, 0, 0, 0, 1, 0xff];
        assert_eq!(read(&senseless).unwrap_err().code(), tonic::Code::Internal);
    }
}
