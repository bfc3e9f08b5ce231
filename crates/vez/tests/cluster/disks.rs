//! A member whose disk is slow, and one whose disk is full: the others go on.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tonic::Code;
use vez_api::etcdserverpb::{PutRequest, RangeRequest, kv_client::KvClient};

use crate::cold_disk::{ColdDisk, Thaw};
use crate::history::History;
use crate::trio::Trio;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_one_slow_disk_all_goes_on_and_nothing_is_lost() {
    let Some(disk) = ColdDisk::mount() else { return };
    let mut trio = Trio::start_with(&disk, 0).await;
    let thaw = Thaw(&disk);
    let history = History::begin(&trio);
    history.goes_on(10).await;
    let is_over = AtomicBool::new(false);
    tokio::task::block_in_place(|| {
        thread::scope(|scope| {
            // Whatever is written waits for a third of a second.
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert!(disk.freeze());
                    thread::sleep(Duration::from_millis(350));
                    assert!(disk.thaw());
                    thread::sleep(Duration::from_millis(5));
                }
            });
            tokio::runtime::Handle::current().block_on(async {
                history.goes_on(5).await;
                trio.says(0, "the disk is slow").await;
                eprintln!("slow disk: the first leads: {}", trio.leader().await == 0);
                // As one that follows it is in nobody's way.
                trio.kill(0);
                trio.leader_but(0).await;
                trio.run(0);
                history.goes_on(20).await;
            });
            is_over.store(true, Ordering::Relaxed);
        });
    });
    drop(thaw);
    history.goes_on(10).await;
    history.end(&trio).await;
}

/// What takes up all the room on a disk.
struct Filling(PathBuf);

impl Filling {
    fn of(disk: &ColdDisk) -> Self {
        let filling = Self(disk.place.join("filling"));
        let mut file = File::create(&filling.0).expect("a file");
        for size in [1 << 20, 1 << 10, 1] {
            let some = vec![1; size];
            while file.write_all(&some).is_ok() {}
        }
        file.sync_all().ok();
        filling
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// The first has a full disk, and this one leads.
async fn with_one_full_disk(leader: usize) {
    let Some(disk) = ColdDisk::mount() else { return };
    let mut trio = Trio::start_with(&disk, leader).await;
    let history = History::begin(&trio);
    history.goes_on(10).await;
    let filling = Filling::of(&disk);
    let value = vec![7; 100_000].into();
    let put = PutRequest { key: "large".into(), value, ..PutRequest::default() };
    // The room that the log had before is used up soon.
    let full = async {
        let mut keys = [KvClient::new(trio.channel(0)), KvClient::new(trio.channel(1))];
        while !trio.said(0).contains("No space left on device") {
            for keys in &mut keys {
                keys.put(put.clone()).await.ok();
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), full).await.expect("it is noticed");
    assert_ne!(trio.leader_but(0).await, 0);
    history.goes_on(10).await;
    let ready = trio.server(0).page("/readyz");
    assert!(ready.starts_with("HTTP/1.0 503") && ready.contains("No space left"), "{ready}");
    let mut keys = KvClient::new(trio.channel(0));
    let get = RangeRequest { key: "large".into(), ..RangeRequest::default() };
    for refused in [keys.put(put).await.map(drop), keys.range(get).await.map(drop)] {
        let refused = refused.expect_err("it cannot");
        assert_eq!(refused.code(), Code::Unavailable, "whoever hears this asks another: {refused}");
        assert!(refused.message().contains("No space left"), "{refused}");
    }
    // With room again, and started again, it is one of them as before.
    drop(filling);
    trio.kill(0);
    trio.run(0);
    history.goes_on(10).await;
    history.end(&trio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_disk_is_full_says_so_and_another_leads() {
    with_one_full_disk(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_whose_disk_is_full_says_so_and_the_others_go_on() {
    with_one_full_disk(1).await;
}
