//! Who belongs to a cluster, and who does not.

use std::process::Stdio;
use std::time::Duration;

use vez_api::etcdserverpb::{RangeRequest, kv_client::KvClient};

use crate::server::{Server, directory, serve_at};
use crate::trio::{NAMES, Trio};

#[tokio::test]
async fn a_member_with_another_token_is_refused_with_a_reason() {
    let mut trio = Trio::start().await;
    trio.kill(2);
    let directory = directory();
    std::fs::create_dir_all(&directory).expect("there is room");
    let said = directory.with_extension("log");
    let log = std::fs::File::create(&said).expect("there is room");
    let mut command = serve_at(&directory, &trio.client_url(2));
    command
        .args(["--name", NAMES[2], "--initial-cluster", &trio.initial_cluster()])
        .args(["--initial-cluster-token", "another"])
        .stderr(Stdio::from(log));
    let server = Server::start(command, &directory);
    let told = async {
        loop {
            let said = std::fs::read_to_string(&said).expect("it is there");
            if said.contains("were the members started with different --initial-cluster") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), told).await.expect("it is told why");
    let get = RangeRequest { key: "k".into(), ..RangeRequest::default() };
    let refused = KvClient::new(trio.channel(2)).range(get).await.expect_err("it is alone");
    assert_eq!(refused.message(), "etcdserver: no leader");
    drop(server);
    std::fs::remove_file(said).expect("it is there");
    trio.leader().await;
}
