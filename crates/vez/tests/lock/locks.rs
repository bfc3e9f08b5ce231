use crate::run::{Run, until_keys, vez};
use crate::server::with_each;

#[test]
fn a_command_knows_its_turn_and_its_exit_code_is_passed_on() {
    with_each("cli-code", |server| {
        let script = "echo $VEZ_LOCK $VEZ_FENCE $VEZ_LEASE; exit 7";
        let first = Run::vez(server, &["lock", "job", "--", "sh", "-c", script]).end();
        assert_eq!(first.code, Some(7), "{first:?}");
        assert_eq!(first.stderr, "");
        let second = Run::vez(server, &["lock", "job", "--", "sh", "-c", script]).end();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let (first, second) = (words(&first.stdout), words(&second.stdout));
        assert_eq!((&*first[0], &*second[0]), ("job", "job"));
        let fence = |words: &[String]| words[1].parse::<u64>().unwrap();
        assert!(fence(&second) > fence(&first));
        assert_ne!(first[2], second[2]);

        let dead = Run::vez(server, &["lock", "job", "--", "sh", "-c", "kill -9 $$"]).end();
        assert_eq!(dead.code, Some(128 + 9));
        let missing = Run::vez(server, &["lock", "job", "--", "no-such-program"]).end();
        assert_eq!(missing.code, Some(127), "{missing:?}");
        let folder = Run::vez(server, &["lock", "job", "--", "/"]).end();
        assert_eq!(folder.code, Some(126), "{folder:?}");
        assert_eq!(server.keys(), [""; 0]);
        assert_eq!(server.etcdctl_output(&["lease", "list"]).lines().count(), 1, "only a title");
    });
}

#[test]
fn turns_are_taken_in_the_order_of_asking_and_who_waits_sees_who_holds() {
    with_each("cli-order", |server| {
        let mut holder = Run::vez(server, &["lock", "job"]);
        let fence: u64 = holder.line().parse().unwrap();
        assert_eq!(holder.note(), "vez: holding job; Ctrl-C ends it");
        let print = ["lock", "job", "--", "sh", "-c", "echo $VEZ_FENCE; read never"];
        let mut second = Run::start({
            let mut command = vez(server, &["lock", "job", "--", "sh", "-c"]);
            command.arg("echo $VEZ_FENCE; exec sleep 60");
            command
        });
        let waiting = second.note();
        let expected = format!(":{} since 2", holder.pid());
        assert!(waiting.starts_with("vez: waiting for job: 1 ahead, held by "), "{waiting}");
        assert!(waiting.contains(&expected), "{waiting}");
        let mut third = Run::vez(server, &print);
        assert!(third.note().starts_with("vez: waiting for job: 2 ahead"));

        holder.signal("-INT");
        assert_eq!(holder.end().code, Some(130));
        let second_fence: u64 = second.line().parse().unwrap();
        assert!(second_fence > fence);
        let waiting = third.note();
        assert!(waiting.starts_with("vez: waiting for job: 1 ahead"), "{waiting}");
        assert!(waiting.contains(&format!(":{} since 2", second.pid())), "{waiting}");
        second.signal("-TERM");
        assert_eq!(second.end().code, Some(143));
        assert!(third.line().parse::<u64>().unwrap() > second_fence);
    });
}

#[test]
fn who_does_not_want_to_wait_or_not_for_long_leaves_with_a_code_of_its_own() {
    with_each("cli-try", |server| {
        let mut holder = Run::vez(server, &["lock", "job"]);
        holder.line();
        let tried = Run::vez(server, &["lock", "job", "--try", "--", "echo", "in"]).end();
        assert_eq!((tried.code, &*tried.stdout), (Some(75), ""), "{tried:?}");
        let expected = format!(":{} since 2", holder.pid());
        assert!(tried.stderr.starts_with("vez: job is held by "), "{tried:?}");
        assert!(tried.stderr.contains(&expected), "{tried:?}");
        let own = Run::vez(server, &["lock", "job", "--try", "-E", "3", "--", "true"]).end();
        assert_eq!(own.code, Some(3));
        let waited = Run::vez(server, &["lock", "job", "--wait", "300ms", "--", "true"]).end();
        assert_eq!(waited.code, Some(75));
        assert!(waited.stderr.ends_with("vez: job: not granted within 300ms\n"), "{waited:?}");
        assert_eq!(server.keys().len(), 1, "who gave up has left the queue");
        holder.signal("-TERM");
        assert_eq!(holder.end().code, Some(143));
        let free = Run::vez(server, &["lock", "job", "--try", "--", "true"]).end();
        assert_eq!(free.code, Some(0));
    });
}

#[test]
fn signals_reach_the_command_and_what_it_started() {
    with_each("cli-signals", |server| {
        let script = "trap 'echo caught; exit 5' TERM; echo up; while :; do sleep 0.05; done";
        let mut run = Run::vez(server, &["lock", "job", "--", "sh", "-c", script]);
        assert_eq!(run.line(), "up");
        run.signal("-TERM");
        let ended = run.end();
        assert_eq!((ended.code, &*ended.stdout), (Some(5), "caught\n"));
        assert_eq!(server.keys(), [""; 0], "released before it ended");

        // Its child would go on without it, if only it were told.
        let script = "sh -c 'trap \"echo below; exit\" HUP; echo up; while :; do sleep 0.05; done'";
        let mut run = Run::vez(server, &["lock", "job", "--", "sh", "-c", &format!("{script}; :")]);
        assert_eq!(run.line(), "up");
        run.signal("-HUP");
        let ended = run.end();
        assert_eq!((ended.code, &*ended.stdout), (Some(129), "below\n"));
    });
}

#[test]
fn who_is_asked_to_end_while_waiting_leaves_the_queue() {
    with_each("cli-leave", |server| {
        let mut holder = Run::vez(server, &["lock", "job"]);
        holder.line();
        let mut waiting = Run::vez(server, &["lock", "job", "--", "echo", "in"]);
        waiting.note();
        waiting.signal("-TERM");
        let ended = waiting.end();
        assert_eq!((ended.code, &*ended.stdout), (Some(143), ""));
        assert_eq!(server.keys().len(), 1);
    });
}

#[test]
fn programs_are_told_in_json() {
    with_each("cli-json", |server| {
        let mut holder = Run::vez(server, &["lock", "job", "--format", "json"]);
        let acquired: serde_json::Value = serde_json::from_str(&holder.line()).unwrap();
        assert_eq!((&acquired["event"], &acquired["lock"]), (&"acquired".into(), &"job".into()));
        let mut run = Run::vez(server, &["lock", "job", "--format", "json", "--", "echo", "in"]);
        let waiting = run.event();
        assert_eq!((&waiting["event"], &waiting["ahead"]), (&"waiting".into(), &1.into()));
        assert_eq!(waiting["holder"]["fence"], acquired["fence"]);
        assert!(
            waiting["holder"]["who"].as_str().unwrap().ends_with(&format!(":{}", holder.pid()))
        );
        assert!(waiting["holder"]["since"].as_str().unwrap().ends_with('Z'));
        let tried = ["lock", "job", "--try", "--format", "json", "--", "true"];
        let refused = Run::vez(server, &tried).event();
        assert_eq!((&refused["event"], &refused["why"]), (&"refused".into(), &"held".into()));
        holder.signal("-INT");
        assert!(holder.end().stdout.contains("\"released\""));
        let acquired = run.event();
        assert_eq!(acquired["event"], "acquired");
        assert_eq!(run.line(), "in");
        let released = run.event();
        assert_eq!(
            (&released["event"], &released["fence"]),
            (&"released".into(), &acquired["fence"])
        );
        assert_eq!(run.end().code, Some(0));
    });
}

#[test]
fn turns_are_taken_with_etcdctl_in_both_directions() {
    with_each("cli-etcdctl", |server| {
        let mut theirs = Run::start(server.etcdctl(&["lock", "job"]));
        let key = theirs.line();
        assert!(key.starts_with("job/"), "{key}");
        let tried = Run::vez(server, &["lock", "job", "--try", "--", "true"]).end();
        assert_eq!(tried.code, Some(75));
        let lease = key.strip_prefix("job/").unwrap();
        assert_eq!(tried.stderr, format!("vez: job is held by lease {lease}\n"));
        let mut ours = Run::vez(server, &["lock", "job"]);
        assert!(ours.note().contains("1 ahead"));
        theirs.signal("-INT");
        let fence: u64 = ours.line().parse().unwrap();
        assert!(fence > 0);

        let mut theirs = Run::start(server.etcdctl(&["lock", "job", "echo", "theirs"]));
        until_keys(server, 2);
        ours.signal("-INT");
        assert_eq!(ours.end().code, Some(130));
        assert_eq!(theirs.line(), "theirs");
    });
}

#[test]
fn nonsense_and_a_service_out_of_reach_are_said_in_one_line() {
    with_each("cli-nonsense", |server| {
        for (args, said) in [
            (
                &["lock", "job", "--ttl", "1500ms"][..],
                "vez: --ttl 1500ms: expected whole seconds, at least 1s\n",
            ),
            (
                &["lock", "job", "--ttl", "4s", "--grace", "3s"],
                "vez: --grace 3s: expected at most half of --ttl 4s\n",
            ),
            (
                &["lock", "job", "--endpoints", "127.0.0.1:1"],
                "vez: cannot reach 127.0.0.1:1: Connection refused (os error 111)\n",
            ),
            (
                &["status", "--endpoints", "https://127.0.0.1:1"],
                "vez: https://127.0.0.1:1: expected --cacert FILE, who vouches for it; on most systems \
                 everybody known is in /etc/ssl/certs/ca-certificates.crt\n",
            ),
            (
                &["status", "--endpoints", "http://127.0.0.1:1", "--cacert", "/dev/null"],
                "vez: endpoint `http://127.0.0.1:1`: not encrypted, although certificates are given: \
                 expected https://\n",
            ),
            (
                &["status", "--endpoints", "127.0.0.1:1", "--cacert", "/dev/null"],
                "vez: cannot read /dev/null: no certificate in it\n",
            ),
        ] {
            let ended = Run::vez(server, args).end();
            assert_eq!((ended.code, &*ended.stdout, &*ended.stderr), (Some(2), "", said));
        }
        let both = Run::vez(server, &["lock", "job", "--try", "--wait", "1s"]).end();
        assert_eq!(both.code, Some(2));
    });
}
