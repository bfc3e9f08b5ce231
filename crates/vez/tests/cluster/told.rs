//! What every member tells people: in its log, in its numbers and on its page.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use vez_api::etcdserverpb::{LeaseGrantRequest, LeaseRevokeRequest, lease_client::LeaseClient};
use vez_api::v3electionpb::{CampaignRequest, election_client::ElectionClient};
use vez_api::v3lockpb::{LockRequest, lock_client::LockClient};

use crate::trio::Trio;

async fn grant(trio: &Trio, id: i64, ttl: i64) {
    let mut leases = LeaseClient::new(trio.channel(0));
    leases.lease_grant(LeaseGrantRequest { ttl, id }).await.expect("a lease");
}

/// The line in which a member says this of a lock.
fn line(trio: &Trio, member: usize, what: &str, name: &str) -> String {
    let said = trio.said(member);
    let is_it = |line: &&str| line.contains(what) && line.contains(&format!("lock=\"{name}\""));
    said.lines().find(is_it).unwrap_or_default().to_owned()
}

fn page(trio: &Trio, member: usize) -> Value {
    let answer = trio.server(member).page("/api/service");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("JSON")
}

#[tokio::test]
async fn every_member_tells_who_lost_a_turn_why_and_after_how_long() {
    let trio = Trio::start().await;
    grant(&trio, 1, 2).await;
    grant(&trio, 2, 600).await;
    grant(&trio, 3, 600).await;
    let lock = |member, lease| {
        let mut locks = LockClient::new(trio.channel(member));
        async move { locks.lock(LockRequest { name: "door".into(), lease }).await }
    };
    // Nobody keeps the first lease alive; and the second is revoked while it waits again.
    lock(0, 1).await.expect("it is free");
    lock(1, 2).await.expect("its turn comes");
    let stand = CampaignRequest { name: "throne".into(), lease: 3, value: "somebody".into() };
    ElectionClient::new(trio.channel(2)).campaign(stand).await.expect("nobody else stands");
    for id in [2, 3] {
        let mut leases = LeaseClient::new(trio.channel(1));
        leases.lease_revoke(LeaseRevokeRequest { id }).await.expect("it is there");
    }
    for member in 0..3 {
        trio.says(member, "who=\"somebody\" why=\"lease revoked\"").await;
        let expired = line(&trio, member, "taken away", "door");
        assert!(expired.contains("why=\"lease expired\""), "{member}: {expired}");
        let held = expired.rsplit_once("held_ms=").map(|(_, held)| held.trim().parse::<u64>());
        assert!(held.is_some_and(|held| held.is_ok_and(|held| 1_000 < held)), "{expired}");
        let handed = line(&trio, member, "handed over", "door");
        assert!(handed.contains("lease=\"2\"") && handed.contains("waited_ms="), "{handed}");
        let numbers = trio.server(member).page("/metrics");
        for number in [
            "vez_lease_granted_total 3",
            "vez_lease_expired_total 1",
            "vez_lease_revoked_total 2",
            "vez_lock_releases_total{why=\"lease_expired\"} 1",
            "vez_lock_releases_total{why=\"lease_revoked\"} 2",
            "vez_lock_handovers_total 1",
        ] {
            assert!(numbers.lines().any(|line| line == number), "{member}: {number}\n{numbers}");
        }
    }
}

#[tokio::test]
async fn every_page_has_all_members_and_says_who_leads() {
    let trio = Trio::start().await;
    grant(&trio, 1, 600).await;
    let leader = trio.leader().await;
    let begun = Instant::now();
    for member in 0..3 {
        let (seen, names) = loop {
            let seen = page(&trio, member);
            let members = seen["members"].as_array().expect("a list").clone();
            let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
            let mut names: Vec<_> = members.iter().map(name).collect();
            names.sort_unstable();
            let leads = members.iter().filter(|one| one["leads"] == true).count();
            // They make themselves known by and by.
            if names == crate::trio::NAMES[..3] && leads == 1 {
                break (seen, names);
            }
            assert!(begun.elapsed() < Duration::from_mins(1), "{seen}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        for one in seen["members"].as_array().expect("a list") {
            let number = names.iter().position(|name| one["name"] == name.as_str());
            let number = number.expect("it is one of them");
            assert_eq!(one["leads"] == true, number == leader, "{one}");
            assert_eq!(one["own"].is_null(), number != member, "{one}");
            assert_eq!(one["learns"], false);
        }
        assert_eq!(seen["leases"]["total"], 1);
        assert_eq!(seen["leases"]["counted_here"], member == leader);
    }
}
