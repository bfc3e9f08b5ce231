//! Places in a line, which are keys: taken, or found, and given up.
//!
//! Transactions could say the same, as those of etcd's clients do. But the log, the disk and each
//! other member carry every one, and most of such a transaction is the key, again and again.

use vez_api::etcdserverpb::PutRequest;
use vez_api::log::{Leave, Left, Take, Taken};

use super::error::Error;
use super::header;
use super::write::Write;

/// For a request that was found good.
pub(super) fn take(write: &mut Write<'_>, request: &Take) -> Result<Taken, Error> {
    let found = write.state.get(&request.key).cloned();
    let put = PutRequest { key: request.key.clone(), ..PutRequest::default() };
    if found.is_none() {
        let (value, lease) = (request.value.clone(), request.lease);
        super::put(write, &PutRequest { value, lease, ..put })?;
    } else if request.again {
        super::put(write, &PutRequest { ignore_value: true, ignore_lease: true, ..put })?;
    }
    Ok(Taken { header: header(write.current()), found })
}

/// For a request that was found good.
pub(super) fn leave(write: &mut Write<'_>, request: &Leave) -> Left {
    let is_meant = write.state.get(&request.key).is_some_and(|kv| {
        kv.create_revision == request.since && [0, kv.version].contains(&request.if_version)
    });
    if is_meant {
        write.delete(&request.key);
    }
    Left { header: header(write.current()), left: is_meant }
}
