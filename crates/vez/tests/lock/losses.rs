//! What becomes of a command whose turn is over before it has ended.

use std::time::Duration;

use tokio::time::Instant;

use crate::run::Run;
use crate::server::with_each;

/// Prints its own number and that of what it started; neither ends when asked to.
const STUBBORN: &str = "trap '' TERM; sleep 60 & echo $$ $!; wait; wait";

/// Whether nothing but a corpse is left of a process.
fn is_dead(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_none_or(|rest| rest.is_empty() || rest.starts_with(" Z"))
}

#[test]
fn a_silent_server_costs_the_command_its_life_before_the_lock_can_pass_on() {
    with_each("cli-silent", |server| {
        let ttl = Duration::from_secs(4);
        let args = ["lock", "job", "--ttl", "4s", "--grace", "1s", "--", "sh", "-c", STUBBORN];
        let mut run = Run::vez(server, &args);
        let pids = run.line();
        assert_eq!(server.keys().len(), 1);
        server.freeze();
        let frozen = Instant::now();
        while !pids.split(' ').all(is_dead) && frozen.elapsed() < 3 * ttl {
            std::thread::sleep(Duration::from_millis(10));
        }
        let after = frozen.elapsed();
        assert!(after < ttl, "{pids} lived for {after:?}");
        assert!(after > ttl / 4, "it had no time to end: {after:?}");
        let ended = run.end();
        assert_eq!(ended.code, Some(76), "{ended:?}");
        let said = "vez: lost job: the server was silent for as long as the lease lasts; ending \
                    the command\n";
        assert_eq!(ended.stderr, said);
        server.thaw();
    });
}

#[test]
fn a_command_that_ends_when_asked_to_is_not_killed() {
    with_each("cli-deleted", |server| {
        let script = "trap 'echo tidy; exit 0' TERM; echo up; while :; do sleep 0.05; done";
        let args = ["lock", "job", "--format", "json", "--", "sh", "-c", script];
        let mut run = Run::vez(server, &args);
        assert_eq!(run.line(), "up");
        assert_eq!(run.event()["event"], "acquired");
        let key = server.keys().remove(0);
        let asked = Instant::now();
        server.etcdctl_output(&["del", &key]);
        let lost = run.event();
        assert_eq!((&lost["event"], &lost["why"]), (&"lost".into(), &"deleted".into()));
        let ended = run.end();
        assert_eq!((ended.code, &*ended.stdout), (Some(76), "tidy\n"));
        assert!(asked.elapsed() < Duration::from_secs(2), "at once: {:?}", asked.elapsed());
    });
}

#[test]
fn a_holder_that_sleeps_and_wakes_up_too_late_is_stopped_and_its_fence_is_stale() {
    with_each("cli-asleep", |server| {
        let script = "echo $VEZ_FENCE; exec sleep 60";
        let args = ["lock", "job", "--ttl", "2s", "--", "sh", "-c", script];
        let mut sleeper = Run::vez(server, &args);
        let stale: u64 = sleeper.line().parse().unwrap();
        sleeper.signal("-STOP");
        let mut next = Run::vez(server, &["lock", "job"]);
        let fence: u64 = next.line().parse().unwrap();
        assert!(fence > stale);
        sleeper.signal("-CONT");
        assert_eq!(sleeper.end().code, Some(76));
        next.signal("-INT");
        let ended = next.end();
        assert_eq!(ended.code, Some(130));
        assert!(!ended.stderr.contains("not given back"), "{ended:?}");
    });
}

#[test]
fn a_server_that_crashes_and_comes_back_costs_nothing() {
    with_each("cli-crash", |server| {
        let mut holder = Run::vez(server, &["lock", "job", "--", "sh", "-c", "echo up; sleep 4"]);
        assert_eq!(holder.line(), "up");
        let mut waiting = Run::vez(server, &["lock", "job", "--", "echo", "in"]);
        waiting.note();
        server.crash_and_restart();
        let ended = holder.end();
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
        assert_eq!(waiting.line(), "in");
        assert_eq!(waiting.end().code, Some(0));
    });
}
