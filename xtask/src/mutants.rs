//! `cargo xtask mutants`: the classic mistakes, made on purpose, one at a time, in a copy of the
//! workspace; for each the test that must notice.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::gate::{cargo_afresh, root};

struct Mutant {
    mistake: &'static str,
    file: &'static str,
    /// Must stand in the file exactly once.
    was: &'static str,
    becomes: &'static str,
    /// The test binary that must fail.
    test: &'static str,
}

/// By the crate in which they are made.
const MUTANTS: &[(&str, &[Mutant])] = &[("vez-algorithms", ALGORITHMS), ("vez-server", SERVICE)];

const ALGORITHMS: &[Mutant] = &[
    Mutant {
        mistake: "coordinator: a release of anyone frees the resource",
        file: "mutex/desk.rs",
        was: "grant.claim == claim && Some(grant.fence) == fence",
        becomes: "grant.claim == claim || Some(grant.fence) != fence",
        test: "mutex_coordinator",
    },
    Mutant {
        mistake: "Lamport: a release takes the wrong request off the queue",
        file: "mutex/lamport.rs",
        was: "self.queue.retain(|request| request.node != from)",
        becomes: "drop(self.queue.pop_first())",
        test: "mutex_timestamps_traps",
    },
    Mutant {
        mistake: "Ricart–Agrawala: compares times and forgets to break ties",
        file: "mutex/ricart_agrawala.rs",
        was: "State::Waiting { request } => request < theirs,",
        becomes: "State::Waiting { request } => request.time < theirs.time,",
        test: "mutex_timestamps_traps",
    },
    Mutant {
        mistake: "Ricart–Agrawala: compares with the running clock",
        file: "mutex/ricart_agrawala.rs",
        was: "State::Waiting { request } => request < theirs,",
        becomes: "State::Waiting { request } => Stamp { time: self.clock, ..request } < theirs,",
        test: "mutex_timestamps_traps",
    },
    Mutant {
        mistake: "Ricart–Agrawala: replies while inside",
        file: "mutex/ricart_agrawala.rs",
        was: "State::Inside => true,",
        becomes: "State::Inside => false,",
        test: "conformance",
    },
    Mutant {
        mistake: "Maekawa: the overtaken head is not told",
        file: "mutex/arbiter.rs",
        was: "first < locked && ctx.config().repair",
        becomes: "first < locked && false",
        test: "mutex_timestamps_maekawa",
    },
    Mutant {
        mistake: "Maekawa: asks the holder to yield again and again",
        file: "mutex/arbiter.rs",
        was: "if !mem::replace(&mut self.inquired, true) {",
        becomes: "if !mem::replace(&mut self.inquired, true) || true {",
        test: "mutex_timestamps_maekawa",
    },
    Mutant {
        mistake: "weighted majority: half is enough",
        file: "election/weighted_majority/steady.rs",
        was: "ctx.topology().weight_total() < 2 *",
        becomes: "ctx.topology().weight_total() <= 2 *",
        test: "election_majority",
    },
    Mutant {
        mistake: "weighted majority: the vote is not saved",
        file: "election/weighted_majority.rs",
        was: "fn durable(&self) -> Ballot {\n        self.ballot",
        becomes: "fn durable(&self) -> Ballot {\n        Ballot::default()",
        test: "election_majority",
    },
    Mutant {
        mistake: "Bully: follows whoever declares itself",
        file: "election/bully.rs",
        was: "if ctx.topology().rank(from) > ctx.rank() {",
        becomes: "if from != ctx.me() {",
        test: "election_bully",
    },
    Mutant {
        mistake: "Bully: an answer to an older question counts",
        file: "election/bully.rs",
        was: "if self.state == (State::Candidate { asked: number }) {",
        becomes: "if number > 0 && matches!(self.state, State::Candidate { .. }) {",
        test: "election_bully",
    },
    Mutant {
        mistake: "Chang–Roberts: a process that took part once never does again",
        file: "election/chang_roberts.rs",
        was: "(self.participant, self.leader) = (false, Some(leader));",
        becomes: "self.leader = Some(leader);",
        test: "election_rings",
    },
];

const SERVICE: &[Mutant] = &[
    Mutant {
        mistake: "a read does not ask whether there is anything newer",
        file: "cluster/ask.rs",
        was: "let index = index.await.unwrap_or(Err(ProposeError::Stopping))?;\n        self.applied(index, limit).await",
        becomes: "drop((index, limit));\n        Ok(())",
        test: "sim",
    },
    Mutant {
        mistake: "a lease ends before its time",
        file: "lessor.rs",
        was: "let ends = now + ttl;",
        becomes: "let ends = now + ttl / 4 * 3;",
        test: "sim",
    },
    Mutant {
        mistake: "a change is called durable before it is",
        file: "store/writer.rs",
        was: "self.begin();\n            tokio::time::sleep(before).await;",
        becomes: "self.end();\n            tokio::time::sleep(before).await;",
        test: "sim",
    },
    Mutant {
        mistake: "a late release releases a newer grant",
        file: "api/queue.rs",
        was: "compare: vec![made_at(key, since)],",
        becomes: "compare: vec![made_at(key, since)].split_off(1),",
        test: "sim",
    },
];

/// Makes every mistake in turn and fails if one goes unnoticed.
pub(crate) fn mutants() -> anyhow::Result<()> {
    let copy = root().join("target/mutants");
    let _ = fs::remove_dir_all(&copy);
    copy_workspace(&copy)?;
    let mut survivors = Vec::new();
    let all = || MUTANTS.iter().flat_map(|(krate, all)| all.iter().map(move |one| (*krate, one)));
    for (krate, mutant) in all() {
        let path = copy.join("crates").join(krate).join("src").join(mutant.file);
        let original = fs::read_to_string(&path)?;
        if original.matches(mutant.was).count() != 1 {
            bail!("{}: `{}` does not stand there exactly once", mutant.file, mutant.was);
        }
        fs::write(&path, original.replace(mutant.was, mutant.becomes))?;
        let compiles = test(&copy, krate, mutant, &["--no-run"])?;
        let passes = compiles && test(&copy, krate, mutant, &[])?;
        fs::write(&path, original)?;
        if !compiles {
            bail!("the mutant `{}` does not compile", mutant.mistake);
        }
        let verdict = if passes { "SURVIVED" } else { "killed  " };
        eprintln!("{verdict}  {} ({})", mutant.mistake, mutant.test);
        if passes {
            survivors.push(mutant.mistake);
        }
    }
    if !survivors.is_empty() {
        bail!("not noticed: {survivors:?}");
    }
    eprintln!("{} passed, 0 failed", all().count());
    Ok(())
}

fn copy_workspace(to: &Path) -> anyhow::Result<()> {
    let listed = Command::new("git").current_dir(root()).args(["ls-files"]).output()?;
    for file in String::from_utf8(listed.stdout)?.lines() {
        let (from, to) = (root().join(file), to.join(file));
        fs::create_dir_all(to.parent().context("files lie in folders")?)?;
        fs::copy(&from, &to).with_context(|| format!("cannot copy {file}"))?;
    }
    Ok(())
}

/// Whether the mutant's test passes.
fn test(copy: &Path, krate: &str, mutant: &Mutant, more: &[&str]) -> anyhow::Result<bool> {
    let status = cargo_afresh()
        .current_dir(copy)
        .args(["test", "--quiet", "--package", krate, "--test", mutant.test])
        .args(more)
        .env("CARGO_TARGET_DIR", root().join("target/mutants-target"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(status.success())
}
