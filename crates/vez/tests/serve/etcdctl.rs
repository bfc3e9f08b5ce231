//! Debian's `etcdctl`, against `vez serve`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Output, Stdio};

use crate::server::{Server, is_there};

fn command(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new("etcdctl");
    command
        .env("ETCDCTL_API", "3")
        .args(["--endpoints", &server.address])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn ask(server: &Server, arguments: &[&str]) -> String {
    ask_with(server, arguments, "")
}

fn ask_with(server: &Server, arguments: &[&str], input: &str) -> String {
    let mut child = command(server, arguments).spawn().expect("etcdctl starts");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("it reads");
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let (out, error) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "etcdctl {arguments:?}: {out}{error}");
    out.into_owned()
}

/// A long-running etcdctl whose lines are read as they come.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(server: &Server, arguments: &[&str]) -> Self {
        let mut child = command(server, arguments).spawn().expect("etcdctl starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("it says more").expect("in UTF-8")
    }

    fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        // Not SIGINT: whoever starts tests in the background may have it ignored, for all of them.
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
        self.child.wait().expect("it ends");
    }
}

#[test]
fn keys_are_put_read_and_deleted() {
    if !is_there("etcdctl") {
        return;
    }
    let server = Server::vez();
    assert_eq!(ask(&server, &["put", "a", "1"]), "OK\n");
    assert_eq!(ask(&server, &["put", "a", "2", "--prev-kv"]), "OK\na\n1\n");
    ask(&server, &["put", "b", "3"]);
    assert_eq!(ask(&server, &["get", "a"]), "a\n2\n");
    assert_eq!(ask(&server, &["get", "a", "--rev", "2"]), "a\n1\n");
    assert_eq!(ask(&server, &["get", "", "--prefix", "--keys-only"]), "a\n\nb\n\n");
    assert_eq!(ask(&server, &["get", "a", "c", "--order", "DESCEND"]), "b\n3\na\n2\n");
    assert_eq!(ask(&server, &["del", "", "--prefix"]), "2\n");
    assert_eq!(ask(&server, &["get", "", "--prefix"]), "");
    let compare = "mod(\"a\") = \"0\"\n\nput a new\n\nget a\n\n";
    assert_eq!(ask_with(&server, &["txn"], compare), "SUCCESS\n\nOK\n");
    assert_eq!(ask_with(&server, &["txn"], compare), "FAILURE\n\na\nnew\n");
    assert_eq!(ask(&server, &["compaction", "4"]), "compacted revision 4\n");
}

#[test]
fn a_watch_hears_the_past_and_what_comes() {
    if !is_there("etcdctl") {
        return;
    }
    let server = Server::vez();
    ask(&server, &["put", "a/1", "x"]);
    let mut watch = Running::start(&server, &["watch", "a/", "--prefix", "--rev", "2"]);
    let mut event = || [watch.line(), watch.line(), watch.line()].join(" ");
    assert_eq!(event(), "PUT a/1 x");
    ask(&server, &["put", "b", "unheard"]);
    ask(&server, &["put", "a/2", "y"]);
    assert_eq!(event(), "PUT a/2 y");
    ask(&server, &["del", "a/1"]);
    assert_eq!(event(), "DELETE a/1 ");
    watch.end();
}

#[test]
fn leases_take_their_keys_with_them() {
    if !is_there("etcdctl") {
        return;
    }
    let server = Server::vez();
    let granted = ask(&server, &["lease", "grant", "600"]);
    let id = granted.split(' ').nth(1).expect("it says which").to_owned();
    ask(&server, &["put", "mine", "x", "--lease", &id]);
    let left = ask(&server, &["lease", "timetolive", &id, "--keys"]);
    assert!(left.contains("granted with TTL(600s)") && left.contains("[mine]"), "{left}");
    assert!(ask(&server, &["lease", "list"]).contains(&id));
    let kept = ask(&server, &["lease", "keep-alive", "--once", &id]);
    assert!(kept.contains("TTL(600)"), "{kept}");
    ask(&server, &["lease", "revoke", &id]);
    assert_eq!(ask(&server, &["get", "mine"]), "");
}

#[test]
fn a_lock_is_handed_over_in_the_order_of_asking() {
    if !is_there("etcdctl") {
        return;
    }
    let server = Server::vez();
    let mut first = Running::start(&server, &["lock", "door"]);
    assert!(first.line().starts_with("door/"));
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut next = Running::start(&server, &["lock", "door", "--ttl", "600"]);
        // It is in line when its key is there.
        let many = waiting.len() + 2;
        while ask(&server, &["get", "door/", "--prefix", "--keys-only"]).split_whitespace().count()
            < many
        {}
        next.child.stdin.take();
        waiting.push(next);
    }
    first.end();
    for mut next in waiting {
        assert!(next.line().starts_with("door/"));
        let inside = ask(
            &server,
            &["get", "door/", "--prefix", "--keys-only", "--sort-by", "CREATE", "--limit", "1"],
        );
        assert!(inside.starts_with("door/"));
        next.end();
    }
    assert_eq!(ask(&server, &["get", "door/", "--prefix"]), "");
}

#[test]
fn an_election_is_won_watched_and_given_up() {
    if !is_there("etcdctl") {
        return;
    }
    let server = Server::vez();
    let mut observer = Running::start(&server, &["elect", "-l", "throne"]);
    let mut first = Running::start(&server, &["elect", "throne", "ana"]);
    assert!(first.line().starts_with("throne/"));
    assert_eq!(first.line(), "ana");
    assert!(observer.line().starts_with("throne/"));
    assert_eq!(observer.line(), "ana");
    let mut second = Running::start(&server, &["elect", "throne", "bia"]);
    first.end();
    assert!(second.line().starts_with("throne/"));
    assert_eq!(second.line(), "bia");
    assert!(observer.line().starts_with("throne/"));
    assert_eq!(observer.line(), "bia");
    second.end();
    observer.end();
}

#[test]
fn members_and_status_are_told() {
    if !is_there("etcdctl") {
        return;
    }
    let server = Server::vez();
    let members = ask(&server, &["member", "list"]);
    assert!(members.contains(", started, default, "), "{members}");
    assert!(members.contains(&server.endpoint()), "{members}");
    let status = ask(&server, &["endpoint", "status", "-w", "json"]);
    let status: serde_json::Value = serde_json::from_str(&status).expect("it is JSON");
    let status = &status[0]["Status"];
    assert_eq!(status["leader"], status["header"]["member_id"], "{status}");
    assert!(ask(&server, &["endpoint", "hashkv"]).contains(&server.address));
    let health = command(&server, &["endpoint", "health"]).output().expect("it runs");
    assert!(health.status.success());
}

#[test]
fn what_is_not_offered_is_refused_with_a_sentence() {
    if !is_there("etcdctl") {
        return;
    }
    let server = Server::vez();
    let refused = command(&server, &["auth", "enable"]).output().expect("it runs");
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && why.contains("vez does not offer"), "{why}");
}
