//! Processes on two machines, as far as they can tell: network namespaces joined by a cable. They
//! are killed, stopped and started again, and the cable is pulled.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use vez_net::now_line;
use vez_sim::What;

use crate::process::{Node, PATIENCE, scratch, write_group};

/// Two network namespaces joined by a cable; gone when it is. Addresses are of the machines, not
/// of the cable, so that each talks to itself when it is pulled.
struct Cable {
    near: String,
    far: String,
}

const NEAR: &str = "10.99.1.1";
const FAR: &str = "10.99.2.1";

impl Drop for Cable {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            let _ = Command::new("ip").args(["netns", "del", name]).output();
        }
    }
}

impl Cable {
    /// Why not, if this machine does not let us.
    fn lay() -> Result<Self, String> {
        static LAID: AtomicU32 = AtomicU32::new(0);
        let number = LAID.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("vez-{}-{number}{end}", std::process::id());
        let cable = Self { near: name("a"), far: name("b") };
        let Self { near, far } = &cable;
        for line in [
            format!("netns add {near}"),
            format!("netns add {far}"),
            format!("-n {near} link add end type veth peer name end netns {far}"),
        ] {
            ip(&line)?;
        }
        for (name, address) in [(near, NEAR), (far, FAR)] {
            ip(&format!("-n {name} addr add {address}/32 dev lo"))?;
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set end up"))?;
        }
        ip(&format!("-n {far} route add {NEAR} dev end src {FAR}"))?;
        ip(&format!("-n {near} route add {FAR} dev end src {NEAR}"))?;
        Ok(cable)
    }

    fn pull(&self) {
        ip(&format!("-n {} link set end down", self.near)).unwrap();
    }

    fn plug(&self) {
        ip(&format!("-n {} link set end up", self.near)).unwrap();
        ip(&format!("-n {} route add {FAR} dev end src {NEAR}", self.near)).unwrap();
    }
}

fn ip(line: &str) -> Result<(), String> {
    let output = Command::new("ip").args(line.split(' ')).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("ip {line}: {told}")) }
}

/// The moment, as traces have it.
fn now_ms() -> f64 {
    let line: Value = serde_json::from_str(&now_line(None, What::Crash)).unwrap();
    line["t_ms"].as_f64().unwrap()
}

/// A group at both ends of a cable.
struct Site {
    cable: Cable,
    algorithm: &'static str,
    near: u64,
    folder: PathBuf,
    nodes: BTreeMap<u64, Node>,
    /// Whom each follows, as it said last.
    leaders: BTreeMap<u64, Option<u64>>,
    /// Who suspects whom, as they said last.
    suspicions: BTreeSet<(u64, u64)>,
    faults: File,
    /// When something was last cut off or stopped.
    since: f64,
}

impl Site {
    /// Processes 1 to `n`, of which the first `near` are at the near end; `None`, with a plain
    /// word, where this machine does not let us.
    fn open(algorithm: &'static str, near: u64, n: u64, settings: &str) -> Option<Self> {
        let cable = match Cable::lay() {
            Ok(cable) => cable,
            Err(why) => {
                // Not by `eprintln`, which is kept from whoever runs the tests when they pass.
                let plain = "network namespaces cannot be used here: not tested on a cable";
                let _ = writeln!(std::io::stderr(), "vez: {plain}: {algorithm} ({why})");
                return None;
            }
        };
        let folder = scratch(&format!("cable-{algorithm}"));
        let member = |id: u64| {
            let host = if id <= near { NEAR } else { FAR };
            format!("[[node]]\nid = {id}\naddress = \"{host}:{}\"\n", 7000 + id)
        };
        let members: String = (1..=n).map(member).collect();
        write_group(&folder, &format!("{members}[config]\n{settings}"));
        fs::create_dir_all(folder.join("traces")).unwrap();
        let faults = File::create(folder.join("traces/cluster.jsonl")).unwrap();
        let (nodes, leaders, suspicions) = <_>::default();
        let mut site =
            Self { cable, algorithm, near, folder, nodes, leaders, suspicions, faults, since: 0.0 };
        (1..=n).for_each(|id| site.start(id));
        Some(site)
    }

    fn start(&mut self, id: u64) {
        let Cable { near, far } = &self.cable;
        let mut command = Command::new("ip");
        let end = if id <= self.near { near } else { far };
        command.args(["netns", "exec", end, env!("CARGO_BIN_EXE_vez")]);
        let (data, trace) = (self.folder.join(format!("data/{id}")), self.trace(id));
        let (data, trace) = (data.to_str().unwrap(), trace.to_str().unwrap());
        let more = ["--insecure", "--data", data, "--trace", trace];
        let cluster = self.folder.join("cluster.toml");
        let mut node = Node::spawn(command, self.algorithm, id, &cluster, &more);
        node.next("ready");
        self.nodes.insert(id, node);
        self.leaders.insert(id, None);
    }

    fn trace(&self, id: u64) -> PathBuf {
        self.folder.join(format!("traces/{id}.jsonl"))
    }

    fn say(&mut self, id: u64, line: &str) {
        self.nodes.get_mut(&id).unwrap().say(line);
    }

    fn kill(&mut self, id: u64) {
        let mut node = self.nodes.remove(&id).unwrap();
        node.child.kill().unwrap();
        node.child.wait().unwrap();
        self.leaders.remove(&id);
        self.suspicions.retain(|(who, _)| *who != id);
        writeln!(self.faults, "{}", now_line(Some(id), What::Crash)).unwrap();
    }

    fn pull(&mut self) {
        self.since = now_ms();
        self.cable.pull();
    }

    fn stop(&mut self, id: u64) {
        self.since = now_ms();
        self.signal(id, "-STOP");
    }

    fn signal(&self, id: u64, signal: &str) {
        let pid = self.nodes[&id].child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Until each of these follows somebody of whom this holds, as far as it has said.
    #[track_caller]
    fn until(&mut self, ids: &[u64], holds: impl Fn(&BTreeMap<u64, Option<u64>>) -> bool) {
        self.until_all(ids, |site| holds(&site.leaders));
    }

    /// Until these follow this one, and none takes it for dead any more: only then does it count
    /// anew how long it has been silent.
    #[track_caller]
    fn follow_and_trust(&mut self, ids: &[u64], leader: u64) {
        self.until_all(ids, |site| {
            let trusts = |id: &u64| !site.suspicions.contains(&(*id, leader));
            ids.iter().all(|id| site.leaders[id] == Some(leader) && trusts(id))
        });
    }

    #[track_caller]
    fn until_all(&mut self, ids: &[u64], holds: impl Fn(&Self) -> bool) {
        let held = self.listen(ids, PATIENCE, holds);
        assert!(held, "{}: {:?}", self.algorithm, self.leaders);
    }

    /// Hears what these say until this holds, or for so long; whether it holds.
    fn listen(&mut self, ids: &[u64], span: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let whom = |event: &Value| {
            let kind = event["kind"].as_str().unwrap();
            event["notice"][kind]["id"].as_u64().unwrap()
        };
        let deadline = Instant::now() + span;
        while !holds(self) {
            if deadline < Instant::now() {
                return false;
            }
            for &id in ids {
                let node = self.nodes.get_mut(&id).unwrap();
                for event in node.news(Duration::from_millis(5)) {
                    match event["kind"].as_str() {
                        Some("Leader") => {
                            let leader = event["notice"]["Leader"]["id"].as_u64();
                            self.leaders.insert(id, leader);
                        }
                        Some("NoLeader") => drop(self.leaders.insert(id, None)),
                        Some("Suspects") => drop(self.suspicions.insert((id, whom(&event)))),
                        Some("Trusts") => drop(self.suspicions.remove(&(id, whom(&event)))),
                        _ => (),
                    }
                }
            }
        }
        true
    }

    /// Starts elections until these follow this one. What was meant for an earlier life is not
    /// heard by a later one: who is only just back may be stepped over at first.
    #[track_caller]
    fn elect(&mut self, starter: u64, ids: &[u64], leader: u64) {
        let all = |site: &Self| ids.iter().all(|id| site.leaders[id] == Some(leader));
        let began = Instant::now();
        while !all(self) {
            assert!(began.elapsed() < PATIENCE, "{}: {:?}", self.algorithm, self.leaders);
            self.say(starter, "start");
            self.listen(ids, PATIENCE / 10, all);
        }
    }

    /// Until these follow this one.
    #[track_caller]
    fn follow(&mut self, ids: &[u64], leader: u64) {
        self.until(ids, |leaders| ids.iter().all(|id| leaders[id] == Some(leader)));
    }

    /// Until these follow one and the same of them; which.
    #[track_caller]
    fn agree(&mut self, ids: &[u64]) -> u64 {
        let one = |leaders: &BTreeMap<u64, Option<u64>>| {
            let first = leaders[&ids[0]]?;
            let all = ids.iter().all(|id| leaders[id] == Some(first));
            (all && ids.contains(&first)).then_some(first)
        };
        self.until(ids, |leaders| one(leaders).is_some());
        one(&self.leaders).unwrap()
    }

    /// A visit of this process, from asking to leaving; its fence.
    #[track_caller]
    fn visit(&mut self, id: u64) -> Value {
        self.say(id, "acquire");
        self.enter_and_leave(id)
    }

    /// It has asked.
    #[track_caller]
    fn enter_and_leave(&mut self, id: u64) -> Value {
        let fence = self.entered(id);
        self.leave(id);
        fence
    }

    #[track_caller]
    fn entered(&mut self, id: u64) -> Value {
        let node = self.nodes.get_mut(&id).unwrap();
        loop {
            let notice = node.next("notice");
            if notice["kind"] == "Entered" {
                return notice["notice"]["Entered"]["fence"].clone();
            }
        }
    }

    #[track_caller]
    fn leave(&mut self, id: u64) {
        self.say(id, "release");
        let node = self.nodes.get_mut(&id).unwrap();
        while node.next("asked")["wish"] != "release" {}
    }

    /// Until everything said since something was cut off has been heard, as the traces tell:
    /// nothing old is under way any more.
    #[track_caller]
    fn drain(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (mut said, mut heard) = (BTreeMap::new(), Vec::new());
            for id in self.nodes.keys() {
                let text = fs::read_to_string(self.trace(*id)).unwrap();
                let events = text.lines().filter_map(|line| serde_json::from_str(line).ok());
                for event in events.collect::<Vec<Value>>() {
                    let number = event["id"].as_u64().unwrap_or_default();
                    match event["event"].as_str() {
                        Some("send") if self.since <= event["t_ms"].as_f64().unwrap() => {
                            said.insert(number, event["to"].as_u64());
                        }
                        Some("receive") => heard.push(number),
                        _ => (),
                    }
                }
            }
            said.retain(|number, _| !heard.contains(number));
            if said.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{}: never heard: {said:?}", self.algorithm);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends all, and judges: what came out, and the promises that were broken.
    fn close(mut self) -> (Value, Vec<String>) {
        for node in self.nodes.values() {
            let pid = node.child.id().to_string();
            assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
        }
        self.nodes.clear();
        let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_vez"))
            .args(["judge", "--format", "json"])
            .arg(self.folder.join("traces"))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&stderr);
        assert!(status.code().is_some_and(|code| code < 2), "{}: {told}", self.algorithm);
        let result: Value = serde_json::from_slice(&stdout).unwrap();
        assert_eq!(result["unexpected"], 0, "{result}");
        let promises = result["promises"].as_array().unwrap().iter();
        let is_broken = |promise: &&Value| promise["kept"] == false && promise["claimed"] == true;
        let name = |promise: &Value| promise["name"].as_str().unwrap().to_owned();
        let broken = promises.filter(is_broken).map(name).collect();
        (result, broken)
    }
}

#[test]
fn a_bully_behind_a_pulled_cable_rules_its_side_and_gives_way_when_it_is_over() {
    let settings = "answer_within = \"300ms\"\nvictory_within = \"900ms\"\n";
    let Some(mut site) = Site::open("bully", 2, 5, settings) else { return };
    site.say(1, "start");
    site.follow(&[1, 2, 3, 4, 5], 5);
    site.kill(5);
    site.say(1, "suspect 5");
    site.follow(&[1, 2, 3, 4], 4);
    site.start(5);
    site.follow(&[1, 2, 3, 4, 5], 5);
    site.stop(5);
    site.say(2, "suspect 5");
    site.follow(&[1, 2, 3, 4], 4);
    site.signal(5, "-CONT");
    site.drain();
    site.say(5, "start");
    site.follow(&[1, 2, 3, 4, 5], 5);
    site.pull();
    site.say(1, "suspect 5");
    site.follow(&[1, 2], 2);
    site.cable.plug();
    site.drain();
    site.say(5, "start");
    site.follow(&[1, 2, 3, 4, 5], 5);
    let (result, broken) = site.close();
    assert_eq!(result["election"]["leader"], 5, "{result}");
    // No timeout tells a slow process, or one that is far, from a dead one.
    assert_eq!(broken, ["uniqueness"], "{result}");
}

#[test]
fn a_list_goes_round_what_is_left_of_its_ring() {
    let settings = "skip_within = \"1s\"\npick = \"max\"\n";
    let Some(mut site) = Site::open("list-ring", 2, 5, settings) else { return };
    site.say(2, "start");
    site.follow(&[1, 2, 3, 4, 5], 5);
    site.kill(5);
    site.kill(3);
    site.say(2, "start");
    site.follow(&[1, 2, 4], 4);
    site.start(3);
    site.start(5);
    site.elect(3, &[1, 2, 3, 4, 5], 5);
    site.stop(5);
    site.say(1, "start");
    site.follow(&[1, 2, 3, 4], 4);
    site.signal(5, "-CONT");
    site.drain();
    site.elect(5, &[1, 2, 3, 4, 5], 5);
    site.pull();
    site.say(1, "start");
    site.follow(&[1, 2], 2);
    site.cable.plug();
    site.drain();
    site.elect(3, &[1, 2, 3, 4, 5], 5);
    let (result, _) = site.close();
    assert_eq!(result["election"]["leader"], 5, "{result}");
}

#[test]
fn a_token_ring_mends_itself_at_both_ends_and_fences_tell_the_tokens_apart() {
    let settings = "hold = \"5ms\"\nhop_within = \"300ms\"\nlap_within = \"2s\"\n";
    let Some(mut site) = Site::open("token-ring", 2, 5, settings) else { return };
    site.visit(3);
    site.kill(2);
    site.visit(4);
    // The token dies with who has it.
    site.say(1, "acquire");
    site.entered(1);
    site.kill(1);
    site.visit(3);
    site.start(1);
    site.start(2);
    site.visit(1);
    site.visit(2);
    site.say(4, "acquire");
    site.entered(4);
    site.say(5, "acquire");
    site.stop(3);
    site.leave(4);
    site.enter_and_leave(5);
    site.visit(2);
    site.signal(3, "-CONT");
    site.visit(3);
    site.pull();
    site.visit(5);
    site.visit(2);
    site.cable.plug();
    site.visit(1);
    site.visit(4);
    let (result, broken) = site.close();
    assert!(!broken.contains(&"mutual-exclusion".to_owned()), "{result}");
    assert_eq!(result["mutex"]["waiting"], json!([]), "{result}");
}

#[test]
fn a_quorum_that_remembers_lets_in_one_whatever_happens() {
    let settings = "durable = true\nretry_after = \"300ms\"\n";
    let Some(mut site) = Site::open("quorum", 2, 5, settings) else { return };
    site.pull();
    site.say(1, "acquire");
    site.visit(4);
    site.cable.plug();
    site.enter_and_leave(1);
    site.say(5, "acquire");
    site.entered(5);
    site.kill(1);
    site.kill(2);
    site.start(1);
    site.start(2);
    site.say(1, "acquire");
    site.leave(5);
    site.enter_and_leave(1);
    site.stop(3);
    site.stop(4);
    site.visit(2);
    site.signal(3, "-CONT");
    site.signal(4, "-CONT");
    site.visit(3);
    let (result, broken) = site.close();
    assert_eq!(broken, [""; 0], "{result}");
    assert_eq!(result["mutex"]["entries"].as_array().unwrap().len(), 6);
}

#[test]
fn a_majority_has_the_leader_at_whichever_end_it_is() {
    let Some(mut site) = Site::open("weighted-majority", 2, 5, "check_quorum = true\n") else {
        return;
    };
    let all = [1, 2, 3, 4, 5];
    site.say(1, "start");
    site.agree(&all);
    site.pull();
    site.agree(&[3, 4, 5]);
    // Who is with the few comes to know of no leader, whether it led or not.
    site.until(&[1, 2], |leaders| leaders[&1].is_none() && leaders[&2].is_none());
    site.cable.plug();
    let leader = site.agree(&all);
    site.kill(leader);
    let rest: Vec<u64> = all.into_iter().filter(|&id| id != leader).collect();
    let next = site.agree(&rest);
    site.start(leader);
    site.agree(&all);
    site.stop(next);
    let rest: Vec<u64> = all.into_iter().filter(|&id| id != next).collect();
    site.agree(&rest);
    site.signal(next, "-CONT");
    site.agree(&all);
    let (result, broken) = site.close();
    assert_eq!(broken, [""; 0], "{result}");
}

#[test]
fn who_watches_each_other_needs_nobody_to_say_who_is_gone() {
    let settings = "detector = { kind = \"heartbeat\", period = \"50ms\", tick = \"50ms\", \
                    timeout = \"500ms\" }\n\
                    election = { answer_within = \"200ms\", victory_within = \"600ms\" }\n";
    let Some(mut site) = Site::open("monitored", 2, 4, settings) else { return };
    site.say(1, "start");
    site.follow(&[1, 2, 3, 4], 4);
    site.kill(4);
    site.follow(&[1, 2, 3], 3);
    site.start(4);
    site.follow_and_trust(&[1, 2, 3, 4], 4);
    site.stop(4);
    site.follow(&[1, 2, 3], 3);
    site.signal(4, "-CONT");
    site.follow_and_trust(&[1, 2, 3, 4], 4);
    site.pull();
    site.follow(&[1, 2], 2);
    site.cable.plug();
    // What both sides announce may cross on its way: whoever hears of the lower leader last stays
    // with it until it is told again.
    site.listen(&[1, 2, 3, 4], Duration::from_secs(1), |_| false);
    site.elect(1, &[1, 2, 3, 4], 4);
    let (result, _) = site.close();
    assert_eq!(result["election"]["leader"], 4, "{result}");
}

#[test]
fn an_elected_coordinator_is_replaced_at_both_ends() {
    let settings = "detector = { kind = \"heartbeat\", period = \"50ms\", tick = \"50ms\", \
                    timeout = \"500ms\" }\n\
                    election = { answer_within = \"200ms\", victory_within = \"600ms\" }\n\
                    recover_within = \"1s\"\n";
    let Some(mut site) = Site::open("elected-coordinator", 2, 5, settings) else { return };
    site.visit(2);
    site.kill(5);
    site.visit(1);
    site.start(5);
    site.visit(3);
    site.stop(5);
    site.visit(4);
    site.signal(5, "-CONT");
    site.visit(5);
    site.pull();
    site.visit(4);
    site.visit(2);
    site.cable.plug();
    site.visit(1);
    site.visit(3);
    let (result, broken) = site.close();
    assert!(!broken.contains(&"mutual-exclusion".to_owned()), "{result}");
    assert_eq!(result["mutex"]["waiting"], json!([]), "{result}");
}
