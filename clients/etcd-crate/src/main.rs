//! What the etcd-client crate can do, said line by line, so that two servers can be compared.
//!
//! Usage: etcd-crate ADDRESS

use etcd_client::{
    Client, Compare, CompareOp, DeleteOptions, EventType, GetOptions,
    LeaseGrantOptions, LockOptions, PutOptions, SortOrder, SortTarget, Txn, TxnOp, WatchOptions,
};

const PATIENCE: std::time::Duration = std::time::Duration::from_mins(2);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).expect("an address");
    // Whoever waits for this wants to know where it stopped.
    tokio::time::timeout(PATIENCE, all(&address)).await?
}

async fn all(address: &str) -> anyhow::Result<()> {
    let mut client = Client::connect([address], None).await?;
    keys(&mut client).await?;
    watches(&mut client).await?;
    locks(&mut client).await?;
    elections(&mut client).await
}

async fn keys(client: &mut Client) -> anyhow::Result<()> {
    client.put("a", "1", None).await?;
    let before = client.put("a", "2", Some(PutOptions::new().with_prev_key())).await?;
    println!("before: {:?}", before.prev_key().map(|kv| (kv.value_str().map(str::to_owned), kv.version())));
    client.put("a/b", "3", None).await?;
    let sorted = GetOptions::new().with_prefix().with_sort(SortTarget::Mod, SortOrder::Descend);
    let found = client.get("a", Some(sorted)).await?;
    for kv in found.kvs() {
        println!("{}={} {} {}", kv.key_str()?, kv.value_str()?, kv.create_revision(), kv.mod_revision());
    }
    let transaction = Txn::new()
        .when([Compare::version("a", CompareOp::Equal, 2)])
        .and_then([TxnOp::put("a", "4", None), TxnOp::get("a", None)])
        .or_else([TxnOp::get("a/b", None)]);
    let done = client.txn(transaction).await?;
    println!("transaction: {} {}", done.succeeded(), done.op_responses().len());
    let gone = client.delete("a", Some(DeleteOptions::new().with_prefix())).await?;
    println!("deleted: {}", gone.deleted());
    let lease = client.lease_grant(60, Some(LeaseGrantOptions::new().with_id(77))).await?;
    println!("lease: {} {}", lease.id(), lease.ttl());
    client.put("leased", "x", Some(PutOptions::new().with_lease(77))).await?;
    let (mut keeper, mut kept) = client.lease_keep_alive(77).await?;
    keeper.keep_alive().await?;
    println!("kept: {:?}", kept.message().await?.map(|answer| answer.ttl()));
    client.lease_revoke(77).await?;
    println!("leased: {}", client.get("leased", None).await?.count());
    println!("refused: {:?}", client.lease_revoke(77).await.err().map(|error| error.to_string()));
    Ok(())
}

async fn watches(client: &mut Client) -> anyhow::Result<()> {
    let mut stream = client.watch("w/", Some(WatchOptions::new().with_prefix().with_prev_key())).await?;
    client.put("w/1", "one", None).await?;
    client.put("w/2", "two", None).await?;
    client.delete("w/1", None).await?;
    let mut heard = 0;
    while heard < 3 {
        let answer = stream.message().await?.expect("it goes on");
        for event in answer.events() {
            heard += 1;
            let kind = if event.event_type() == EventType::Put { "put" } else { "delete" };
            let key = event.kv().map(|kv| kv.key_str().map(str::to_owned)).transpose()?;
            println!("event: {kind} {key:?} {}", event.prev_kv().is_some());
        }
    }
    stream.cancel(0).await?;
    while !stream.message().await?.is_some_and(|answer| answer.canceled()) {}
    println!("cancelled");
    Ok(())
}

async fn locks(client: &mut Client) -> anyhow::Result<()> {
    client.lease_grant(60, Some(LeaseGrantOptions::new().with_id(1))).await?;
    client.lease_grant(60, Some(LeaseGrantOptions::new().with_id(2))).await?;
    let first = client.lock("door", Some(LockOptions::new().with_lease(1))).await?;
    println!("inside: {:?}", String::from_utf8_lossy(first.key()));
    let mut other = client.clone();
    let second = tokio::spawn(async move { other.lock("door", Some(LockOptions::new().with_lease(2))).await });
    let in_line = GetOptions::new().with_prefix().with_count_only();
    while client.get("door/", Some(in_line.clone())).await?.count() < 2 {}
    println!("second waits: {}", !second.is_finished());
    client.unlock(first.key()).await?;
    let second = second.await??;
    println!("inside: {:?}", String::from_utf8_lossy(second.key()));
    client.unlock(second.key()).await?;
    println!("left: {}", client.get("door/", Some(in_line)).await?.count());
    Ok(())
}

async fn elections(client: &mut Client) -> anyhow::Result<()> {
    println!("nobody: {:?}", client.leader("throne").await.err().map(|error| error.to_string()));
    let won = client.campaign("throne", "ana", 1).await?;
    let key = won.leader().expect("a leader").clone();
    println!("won: {} {}", key.name_str()?, key.key_str()?);
    let leader = client.leader("throne").await?;
    println!("leader: {:?}", leader.kv().map(|kv| kv.value_str().map(str::to_owned)));
    let proclaim = etcd_client::ProclaimOptions::new().with_leader(key.clone());
    client.proclaim("anabela", Some(proclaim)).await?;
    let mut observed = client.observe("throne").await?;
    let seen = observed.message().await?.expect("it goes on");
    println!("observed: {:?}", seen.kv().map(|kv| kv.value_str().map(str::to_owned)));
    let resign = etcd_client::ResignOptions::new().with_leader(key);
    client.resign(Some(resign)).await?;
    println!("nobody: {}", client.leader("throne").await.is_err());
    Ok(())
}
