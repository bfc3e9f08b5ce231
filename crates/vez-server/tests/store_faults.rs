//! Killed at any moment, or out of room: nothing acknowledged is lost, nothing panics.
//!
//! The one that suffers is this same program, started again to run `proposes_as_told` only.

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use vez_server::raft::ProposeError;

use self::common::{Scratch, open, put, value};

/// Where the other one keeps its data, and what it is to do there.
const DIRECTORY: &str = "VEZ_TEST_DIRECTORY";
const ROUND: &str = "VEZ_TEST_ROUND";

fn program() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "proposes_as_told", "--nocapture", "--test-threads=1"]);
    command.stdout(Stdio::piped());
    command
}

/// Not a test unless it is told what to do: then it proposes until it is killed or refused, and
/// prints what was acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn proposes_as_told() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    match std::env::var(ROUND) {
        Ok(round) => propose_for_ever(&PathBuf::from(directory), &round).await,
        Err(_) => fill(&PathBuf::from(directory)).await,
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

async fn propose_for_ever(directory: &Path, round: &str) {
    let replica = open(directory).await;
    let proposers = (0..8).map(|proposer| {
        let (replica, round) = (replica.clone(), round.to_owned());
        tokio::spawn(async move {
            for number in 0_u32.. {
                let key = format!("{round}/{proposer}/{number}");
                let revision = common::proposed(&replica, &key, key.as_str()).await;
                say(&format!("acknowledged {revision} {key}"));
            }
        })
    });
    for proposer in proposers.collect::<Vec<_>>() {
        proposer.await.unwrap();
    }
}

/// Runs out of room and says how that was.
async fn fill(directory: &Path) {
    let replica = open(directory).await;
    let refused = loop {
        let key = format!("key {}", replica.read(vez_server::state::State::revision));
        match replica.propose(put(&key, vec![7; 50_000])).await {
            Ok(_) => say(&format!("acknowledged 0 {key}")),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, ProposeError::Disk(_)), "{refused}");
    say(&format!("refused {refused}"));
    let again = replica.propose(put("again", "small")).await.unwrap_err();
    assert!(matches!(again, ProposeError::Disk(_)), "{again}");
    assert!(value(&replica, "key 1").is_some(), "what is there can still be read");
    replica.shutdown().await;
    say("stopped");
}

/// What the other one says, line by line.
struct Ear(std::io::Lines<BufReader<ChildStdout>>);

impl Ear {
    fn on(child: &mut Child) -> Self {
        Self(BufReader::new(child.stdout.take().unwrap()).lines())
    }

    /// The revision and key of the next acknowledgement.
    fn acknowledged(&mut self) -> Option<(i64, String)> {
        loop {
            // A line cut off in the middle was never said.
            let line = self.0.next()?.ok()?;
            if let Some(said) = line.strip_prefix("acknowledged ") {
                let (revision, key) = said.split_once(' ')?;
                return Some((revision.parse().ok()?, key.to_owned()));
            }
        }
    }
}

/// Numbers that look random, the same in each run.
fn draw(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_moment_it_has_all_it_acknowledged() {
    let scratch = Scratch::new();
    let (mut seed, mut all, mut newest) = (1, Vec::new(), 0);
    for round in 0..20 {
        let mut child =
            program().env(DIRECTORY, scratch.data()).env(ROUND, round.to_string()).spawn().unwrap();
        let mut ear = Ear::on(&mut child);
        // Some die before they led, most under load.
        let wanted = draw(&mut seed) % 60;
        let mut said: Vec<_> =
            std::iter::from_fn(|| ear.acknowledged()).take(wanted.try_into().unwrap()).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        said.extend(std::iter::from_fn(|| ear.acknowledged()));
        for (revision, _) in &said {
            assert!(newest < *revision, "round {round}: revision {revision} was given out before");
        }
        newest = said.iter().map(|(revision, _)| *revision).fold(newest, i64::max);
        all.extend(said);
    }
    let replica = open(&scratch.data()).await;
    assert!(!all.is_empty());
    for (revision, key) in all {
        let found = replica.read(|state| state.get(key.as_bytes()).map(|key| key.mod_revision));
        assert_eq!(found, Some(revision), "{key} was acknowledged");
        assert_eq!(value(&replica, &key), Some(key.into_bytes()));
    }
    replica.shutdown().await;
}

/// Lets the other one run out of room; then all it acknowledged must be there.
async fn runs_full(directory: &Path, mut command: Command, check: impl AsyncFnOnce(&Path)) {
    let mut child = command.env(DIRECTORY, directory).spawn().unwrap();
    let lines: Vec<_> = Ear::on(&mut child).0.map(Result::unwrap).collect();
    assert!(child.wait().unwrap().success(), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("refused nothing can be written")));
    assert!(lines.iter().any(|line| line == "stopped"));
    check(directory).await;
    let replica = open(directory).await;
    let keys: Vec<_> =
        lines.iter().filter_map(|line| line.strip_prefix("acknowledged 0 ")).collect();
    assert!(!keys.is_empty());
    for key in keys {
        assert_eq!(value(&replica, key).map(|value| value.len()), Some(50_000), "{key}");
    }
    common::proposed(&replica, "later", "there is room again").await;
    replica.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_may_not_grow_refuses_writes_and_loses_none() {
    let scratch = Scratch::new();
    let mut command = Command::new("sh");
    // In blocks of 512 bytes. Whoever does not want to hear the signal gets an error instead.
    command.args(["-c", "trap '' XFSZ; ulimit -f 8192; exec \"$0\" \"$@\""]);
    let program = program();
    command.arg(program.get_program()).args(program.get_args()).stdout(Stdio::piped());
    runs_full(&scratch.data(), command, async |_: &Path| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_writes_and_loses_none() {
    let scratch = Scratch::new();
    let disk = scratch.data();
    std::fs::create_dir(&disk).unwrap();
    let mount = |size: &str| {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", size, "vez"]).arg(&disk).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    if !mount("size=4m") {
        eprintln!("left out: only root may mount a small disk");
        return;
    }
    let unmount = Unmount(disk.clone());
    runs_full(&disk.join("data"), program(), async |_: &Path| {
        assert!(mount("remount,size=64m"), "a disk may be made larger");
    })
    .await;
    drop(unmount);
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}
