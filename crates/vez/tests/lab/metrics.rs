//! What machines ask of the service's pages: numbers, and how it is.

use std::collections::BTreeMap;

use crate::client::Lab;
use crate::service::Clients;

/// Every sample, by name and labels as they are written.
type Samples = BTreeMap<String, f64>;

/// Reads the text as strictly as the format is described.
fn parse(text: &str) -> Samples {
    let (mut samples, mut kinds) = (Samples::new(), BTreeMap::<String, String>::new());
    let mut helped = String::new();
    assert!(text.ends_with('\n'), "the last line ends too");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(!help.is_empty() && is_name(name, true), "{line}");
            name.clone_into(&mut helped);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(name, helped, "the type follows the help");
            assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{name} comes twice");
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
            let name = series.split('{').next().unwrap_or_default();
            assert!(is_name(name, true), "{line}");
            if let Some(labels) = series.strip_prefix(name).filter(|rest| !rest.is_empty()) {
                check_labels(labels);
            }
            let kind = kinds.get(&helped).unwrap_or_else(|| panic!("{line}: no type yet"));
            let suffixes: &[&str] =
                if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            let is_of_head = suffixes.iter().any(|suffix| *name == format!("{helped}{suffix}"));
            assert!(is_of_head, "{line} is not below its own head, {helped}");
            let value: f64 = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} comes twice");
        }
    }
    check_histograms(&samples);
    samples
}

fn is_name(name: &str, colons: bool) -> bool {
    let is_start = |sign: char| sign.is_ascii_alphabetic() || sign == '_' || colons && sign == ':';
    name.starts_with(is_start) && name.chars().all(|sign| is_start(sign) || sign.is_ascii_digit())
}

fn check_labels(labels: &str) {
    let inner = labels.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    for label in inner.unwrap_or_else(|| panic!("{labels}")).split(',') {
        let (name, value) = label.split_once('=').unwrap_or_else(|| panic!("{labels}"));
        assert!(is_name(name, false), "{labels}");
        assert!(value.len() >= 2 && value.starts_with('"') && value.ends_with('"'), "{labels}");
    }
}

/// Buckets grow, end with all of them, and all of them are the count.
fn check_histograms(samples: &Samples) {
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (series, value) in samples.iter().filter(|(series, _)| series.contains("le=\"")) {
        let (before, rest) = series.split_once("le=\"").expect("it was looked for");
        let bound = rest.trim_end_matches("\"}");
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
        buckets.entry(before.to_owned()).or_default().push((bound, *value));
    }
    assert!(3 <= buckets.len(), "there are histograms");
    for (of, mut found) in buckets {
        found.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(found.is_sorted_by(|one, other| one.1 <= other.1), "{of}: {found:?}");
        let last = found.last().expect("it has one");
        assert!(last.0.is_infinite(), "{of} has all");
        let count = of.replace("_bucket", "_count").replace(",le", "");
        let count = match count.trim_end_matches([',', '{']) {
            plain if !plain.contains('{') => plain.to_owned(),
            labels => format!("{labels}}}"),
        };
        assert!((samples[&count] - last.1).abs() < 0.5, "{count}");
    }
}

fn metrics(lab: &Lab) -> Samples {
    let answer = lab.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    parse(&answer.body)
}

#[tokio::test]
async fn numbers_can_be_read_strictly_and_move_as_they_should() {
    let lab = Lab::service(&[]);
    let clients = Clients::of(&lab).await;
    let before = metrics(&lab);
    clients.lease(1, 600).await;
    clients.lease(2, 600).await;
    let key = clients.locked("door", 1).await;
    let waiting = clients.lock("door", 2);
    clients.until_standing("door", 2).await;
    let held = metrics(&lab);
    assert_eq!((held["vez_locks_held"], held["vez_locks_waiting"]), (1.0, 1.0));
    assert_eq!((held["vez_leases"], held["etcd_server_has_leader"]), (2.0, 1.0));
    clients.unlock(&key).await;
    waiting.await.expect("it ends").expect("it is granted");
    clients.revoke(2).await;
    let after = metrics(&lab);
    let moved = |name: &str| after[name] - before.get(name).copied().unwrap_or_default();
    let asked = "vez_lock_releases_total{why=\"asked\"}";
    let revoked = "vez_lock_releases_total{why=\"lease_revoked\"}";
    let expected = [
        ("vez_lock_grants_total", 2.0),
        ("vez_lock_handovers_total", 1.0),
        (asked, 1.0),
        (revoked, 1.0),
        ("vez_lock_wait_seconds_count", 2.0),
        ("vez_lock_hold_seconds_count", 2.0),
        ("vez_lease_granted_total", 2.0),
        ("vez_lease_revoked_total", 1.0),
        ("vez_lease_expired_total", 0.0),
        ("vez_locks_held", 0.0),
        ("vez_locks_waiting", 0.0),
    ];
    for (name, by) in expected {
        assert!((moved(name) - by).abs() < 1e-9, "{name} moved by {}", moved(name));
    }
    let call = |method: &str| {
        format!("{{grpc_service=\"v3lockpb.Lock\",grpc_method=\"{method}\",grpc_code=\"OK\"}}")
    };
    for (method, calls) in [("Lock", 2.0), ("Unlock", 1.0)] {
        let name = format!("grpc_server_handled_total{}", call(method));
        assert!((after[&name] - calls).abs() < 1e-9, "{name}: {}", after[&name]);
    }
    assert!(moved("etcd_disk_wal_fsync_duration_seconds_count") >= 6.0, "each write was synced");
    assert!(moved("etcd_network_client_grpc_sent_bytes_total") > 0.0);
    for (series, value) in &before {
        let name = series.split('{').next().unwrap_or_default();
        let counts = ["_total", "_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end));
        assert!(!counts || *value <= after[series], "{series} fell");
    }
}

#[test]
fn machines_learn_how_it_is_by_whatever_name_they_know() {
    let lab = Lab::service(&[]);
    for path in ["/healthz", "/readyz", "/health", "/metrics"] {
        let answer = lab.ask("GET", path, &[("Host", "vez-1.example:2381")], "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    assert_eq!(lab.get("/healthz").body, "ok\n");
    assert_eq!(lab.get("/health").json()["health"], "true");
    assert_eq!(lab.ask("POST", "/metrics", &[], "").status, 405);
}
