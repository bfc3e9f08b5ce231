//! madsim: deterministic simulation of asynchronous programs and their network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use madsim::Config;
use madsim::net::{Endpoint, NetSim};
use madsim::runtime::Runtime;

use crate::measure::{Sample, worked};

/// Messages are matched by tag: one for all.
const TAG: u64 = 1;
const ELECTED: u64 = 1 << 63;

pub(super) fn run(uids: &[u64]) -> anyhow::Result<Sample> {
    let mut config = Config::default();
    // Its range of delays must not be empty.
    let delay = Duration::from_millis(1);
    config.net.send_latency = delay..delay + Duration::from_nanos(1);
    let runtime = Runtime::with_seed_and_config(1, config);
    let mut candidates = Vec::new();
    for (index, &uid) in uids.iter().enumerate() {
        let (own, next) = (address(index), address((index + 1) % uids.len()));
        let node = runtime.create_node().ip(own.ip()).build();
        candidates.push(node.spawn(stand(uid, own, next)));
    }
    let began = worked();
    let messages = runtime.block_on(async move {
        for candidate in candidates {
            candidate.await.expect("no candidate fails")?;
        }
        anyhow::Ok(NetSim::current().stat().msg_count)
    })?;
    Ok(Sample { messages, took: worked().saturating_sub(began) })
}

fn address(index: usize) -> SocketAddr {
    let [_, high, middle, low] = (index as u32 + 1).to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, high, middle, low)), 1)
}

/// One candidate, until it knows who leads and has told the next.
async fn stand(uid: u64, own: SocketAddr, next: SocketAddr) -> std::io::Result<()> {
    let endpoint = Endpoint::bind(own).await?;
    // What is sent before the next one listens is lost.
    madsim::time::sleep(Duration::from_millis(1)).await;
    endpoint.send_to(next, TAG, &uid.to_be_bytes()).await?;
    let mut buffer = [0; 8];
    loop {
        endpoint.recv_from(TAG, &mut buffer).await?;
        let message = u64::from_be_bytes(buffer);
        match message & !ELECTED {
            _ if message == uid | ELECTED => return Ok(()),
            home if home == uid => {
                endpoint.send_to(next, TAG, &(uid | ELECTED).to_be_bytes()).await?;
            }
            _ if message & ELECTED != 0 => {
                endpoint.send_to(next, TAG, &buffer).await?;
                return Ok(());
            }
            larger if larger > uid => endpoint.send_to(next, TAG, &buffer).await?,
            _ => (),
        }
    }
}
