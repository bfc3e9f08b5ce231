//! Many who ask at the same moment.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::Status;
use vez_api::etcdserverpb::kv_client::KvClient;
use vez_api::etcdserverpb::{PutRequest, RangeRequest};

use crate::clients::Town;

/// Whoever finds nobody leading asks again after this.
const AGAIN: Duration = Duration::from_millis(50);

/// Many write at the same moment, at each of the members: what is passed on together is answered to
/// each by itself.
pub(crate) async fn write_at_once(town: Town) -> turmoil::Result {
    let mut writers = JoinSet::new();
    for url in &town.endpoints {
        let mut client = KvClient::new(town.channel(url));
        let put = |key: String| PutRequest { key: key.into(), ..PutRequest::default() };
        // There is a leader, and a way to it.
        while client.put(put(format!("{url} begins"))).await.is_err() {
            sleep(AGAIN).await;
        }
        for number in 0..100 {
            let (mut client, key) = (client.clone(), format!("{url} {number}"));
            writers.spawn(async move {
                let told = client.put(put(key.clone())).await?.into_inner();
                let range = RangeRequest { key: key.clone().into(), ..RangeRequest::default() };
                let found = client.range(range).await?.into_inner().kvs;
                let found = found.first().map(|kv| kv.mod_revision);
                let told = told.header.map(|header| header.revision);
                Ok::<_, Status>((key, told, found))
            });
        }
    }
    while let Some(done) = writers.join_next().await {
        let (key, told, found) = done??;
        if told.is_none() || told != found {
            return Err(format!("{key} was written at {found:?}, not {told:?}").into());
        }
    }
    Ok(())
}
