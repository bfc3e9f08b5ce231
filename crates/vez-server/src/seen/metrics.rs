//! All numbers at once, for Prometheus. Names are etcd's where the meaning is.

use std::fs;
use std::sync::atomic::Ordering;

use super::calls::{CODES, Calls, METHODS};
use super::chronicle::{Chronicle, Why};
use super::text::Text;
use super::{VERSION, View};
use crate::door::Doors;
use crate::state::State;

impl View {
    /// Costs what it writes, whatever there is of keys and locks; watchers are counted one by one.
    pub fn metrics(&self) -> String {
        let mut text = Text::default();
        self.server(&mut text);
        self.store(&mut text);
        locks(&mut text, &self.chronicle);
        self.leases(&mut text);
        doors(&mut text, &self.doors);
        calls(&mut text, &self.calls);
        process(&mut text);
        text.finish()
    }

    fn server(&self, text: &mut Text) {
        let leadership = *self.service.replica.leadership().borrow();
        let (_, applied) = self.service.replica.indices();
        let leads = u8::from(leadership.leading);
        let has_leader = u8::from(leadership.leader.is_some());
        text.gauge("etcd_server_has_leader", "Whether a leader is known.", has_leader);
        text.gauge("etcd_server_is_leader", "Whether this member leads.", leads);
        let changes = self.leaders.get();
        let name = "etcd_server_leader_changes_seen_total";
        text.counter(name, "Leaders this member has seen come.", changes);
        let name = "etcd_server_proposals_committed_total";
        text.gauge(name, "The last entry of the log that was agreed upon.", applied);
        let name = "etcd_server_proposals_applied_total";
        text.gauge(name, "The last entry of the log that was applied.", applied);
        text.head("etcd_server_version", "gauge", "Which version this is.");
        text.sample("etcd_server_version", &[("server_version", VERSION)], 1);
        let healthy = u8::from(self.trouble().is_none());
        text.gauge("vez_ready", "Whether it can answer and write, as /readyz says.", healthy);
    }

    fn store(&self, text: &mut Text) {
        let (revision, compacted, keys) = self
            .service
            .replica
            .read(|state| (state.revision(), state.compacted().max(0), State::len(state)));
        text.gauge("etcd_debugging_mvcc_keys_total", "Keys there are.", keys);
        text.gauge("etcd_debugging_mvcc_current_revision", "That of the last change.", revision);
        let name = "etcd_debugging_mvcc_compact_revision";
        text.gauge(name, "The earliest that can be read.", compacted);
        let name = "etcd_mvcc_db_total_size_in_bytes";
        let bytes = self.service.replica.disk_bytes();
        text.gauge(name, "What its files take of the disk.", bytes);
        let name = "etcd_disk_wal_fsync_duration_seconds";
        let took = self.service.replica.counters().took.now();
        text.histogram(name, "How long the disk takes to make a batch durable.", &took);
        text.gauge("vez_watchers", "Watches there are.", self.service.hub.watchers());
    }

    fn leases(&self, text: &mut Text) {
        let leases = self.service.replica.read(|state| state.leases().len());
        text.gauge("vez_leases", "Leases there are.", leases);
        let counts = &self.leases;
        text.counter("vez_lease_granted_total", "Leases granted.", counts.granted.get());
        text.counter("vez_lease_revoked_total", "Leases revoked.", counts.revoked.get());
        let name = "vez_lease_expired_total";
        text.counter(name, "Leases whose time ran out.", counts.expired.get());
    }
}

fn locks(text: &mut Text, chronicle: &Chronicle) {
    let (held, waiting) = chronicle.standing();
    text.gauge("vez_locks_held", "Locks and elections that somebody has.", held);
    text.gauge("vez_locks_waiting", "Clients that wait for one.", waiting);
    let name = "vez_lock_grants_total";
    text.counter(name, "Turns given, at once or after waiting.", chronicle.grants.get());
    let name = "vez_lock_handovers_total";
    text.counter(name, "Turns given to one that waited.", chronicle.hand_overs.get());
    let ends = [
        ("vez_lock_releases_total", "Turns that ended, by why.", &chronicle.ends),
        ("vez_lock_waits_ended_total", "Waits that ended without a turn.", &chronicle.leaves),
    ];
    for (name, help, counters) in ends {
        text.head(name, "counter", help);
        for (why, counter) in Why::ALL.iter().zip(counters) {
            text.sample(name, &[("why", &why.name().replace(' ', "_"))], counter.get());
        }
    }
    let name = "vez_lock_wait_seconds";
    text.histogram(name, "How long turns were waited for.", &chronicle.waits.now());
    let name = "vez_lock_hold_seconds";
    text.histogram(name, "How long turns took.", &chronicle.holds.now());
}

fn doors(text: &mut Text, doors: &Doors) {
    text.gauge("vez_connections", "Clients that are connected.", doors.connections());
    let name = "vez_connections_refused_total";
    text.counter(name, "Clients turned away because there were too many.", doors.refused());
    let name = "vez_handshakes_failed_total";
    let help = "Clients that could not agree with us on certificates.";
    text.counter(name, help, doors.handshakes_failed());
}

fn calls(text: &mut Text, calls: &Calls) {
    let called = || METHODS.iter().zip(&calls.tallies).filter(|(_, tally)| 0 < tally.started.get());
    let labels = |name: &(&'static str, &'static str)| match name.1 {
        "" => [("grpc_service", "other"), ("grpc_method", "other")],
        method => [("grpc_service", name.0), ("grpc_method", method)],
    };
    let name = "grpc_server_started_total";
    text.head(name, "counter", "Calls that began.");
    for (method, tally) in called() {
        text.sample(name, &labels(method), tally.started.get());
    }
    let name = "grpc_server_handled_total";
    text.head(name, "counter", "Calls that ended, by how.");
    for (method, tally) in called() {
        for (code, handled) in CODES.iter().zip(&tally.handled) {
            let handled = handled.load(Ordering::Relaxed);
            if 0 < handled {
                let [service, method] = labels(method);
                text.sample(name, &[service, method, ("grpc_code", code)], handled);
            }
        }
    }
    let name = "grpc_server_handling_seconds";
    text.head(name, "histogram", "How long calls took, waiting for others included.");
    for (method, tally) in called() {
        text.distribution(name, &labels(method), &tally.took.now());
    }
    let name = "etcd_network_client_grpc_sent_bytes_total";
    text.counter(name, "What was answered, in bytes.", calls.sent.get());
}

/// What the system says of this process, where it does.
fn process(text: &mut Text) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok());
    if let Some(kilobytes) = resident {
        let bytes: u64 = kilobytes;
        text.gauge("process_resident_memory_bytes", "Memory it has.", bytes * 1024);
    }
    // After the name, which may hold anything but ends with the last bracket.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace());
    let ticks: Option<u64> = fields
        .map(|fields| fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum());
    if let Some(ticks) = ticks {
        // A hundredth of a second each, on every Linux there is.
        let name = "process_cpu_seconds_total";
        let seconds = format!("{}.{:02}", ticks / 100, ticks % 100);
        text.head(name, "counter", "Time it had a processor.").sample(name, &[], seconds);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        text.gauge("process_open_fds", "Files and connections it has open.", open.count());
    }
}
