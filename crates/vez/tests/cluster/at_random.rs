//! Faults at random, one on top of the other, while clients are at work.
//!
//! What is done, to whom and when is drawn from a seed alone: who leads when it is done is not, so
//! that the same seed is the same plan and nearly the same run.

use std::fmt;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rustix::process::Signal;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::Instant;

use crate::history::History;
use crate::net::Net;
use crate::trio::{NAMES, Trio};

/// At the same time: each needs little of the machine.
const CLUSTERS: u64 = 5;
/// For each of them, if nothing else is asked for: five minutes in all.
const SECONDS: u64 = 60;
/// Between two requests of a client, so that all of them leave room for other tests.
const PACE: Duration = Duration::from_millis(10);

/// Who is meant when something is done.
#[derive(Clone, Copy)]
struct Whom {
    /// Rather than one of those who follow it.
    is_leader: bool,
    /// Which of these, or of all, while nobody leads.
    number: usize,
}

impl Whom {
    fn draw(chance: &mut StdRng) -> Self {
        Self { is_leader: chance.random(), number: chance.random_range(0..6) }
    }

    async fn find(self, trio: &Trio) -> usize {
        match trio.leader_now(usize::MAX).await {
            Some(leader) if self.is_leader => leader,
            Some(leader) => others(leader)[self.number % 2],
            None => self.number % 3,
        }
    }
}

/// The two that are not this one.
fn others(of: usize) -> [usize; 2] {
    [(of + 1) % 3, (of + 2) % 3]
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Kill,
    KillAll,
    Stop,
    StopAll,
    /// SIGTERM, and started again when all is mended.
    End,
    /// Hears nobody, and nobody hears it.
    Part,
    Deafen,
    Silence,
    /// The two others meet only through this one.
    Bridge,
    Scatter,
}

impl Deed {
    fn draw(chance: &mut StdRng, has_net: bool) -> Self {
        // Those that need a network come last.
        let kinds = [
            Self::Kill,
            Self::Kill,
            Self::Stop,
            Self::Stop,
            Self::StopAll,
            Self::End,
            Self::KillAll,
            Self::KillAll,
            Self::Part,
            Self::Deafen,
            Self::Silence,
            Self::Bridge,
            Self::Scatter,
        ];
        kinds[chance.random_range(0..if has_net { kinds.len() } else { 8 })]
    }
}

/// What was done, and how often.
#[derive(Default)]
struct Tally {
    kills: u32,
    stops: u32,
    ends: u32,
    cuts: u32,
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, stops, ends, cuts } = self;
        write!(out, "{kills} kills, {stops} stops, {ends} orderly restarts, {cuts} cuts")
    }
}

/// One cluster, and what is the matter with it.
struct Ordeal {
    number: u64,
    trio: Trio,
    chance: StdRng,
    begun: Instant,
    is_stopped: [bool; 3],
    tally: Tally,
}

impl Ordeal {
    async fn begin(number: u64, seed: u64) -> Self {
        let trio = match Net::make() {
            Some(net) => Trio::start_on(net).await,
            None => {
                eprintln!("at random: no partitions, but processes that are killed and stopped");
                Trio::start().await
            }
        };
        Self {
            number,
            trio,
            chance: StdRng::seed_from_u64(seed.wrapping_add(number)),
            begun: Instant::now(),
            is_stopped: [false; 3],
            tally: Tally::default(),
        }
    }

    fn say(&self, what: &str) {
        eprintln!("cluster {} {:7.2} s: {what}", self.number, self.begun.elapsed().as_secs_f64());
    }

    async fn pause(&mut self, longest_ms: u64) {
        let time = self.chance.random_range(10..longest_ms);
        tokio::time::sleep(Duration::from_millis(time)).await;
    }

    /// Something goes wrong, perhaps with whom something is the matter already.
    async fn strike(&mut self) {
        let deed = Deed::draw(&mut self.chance, self.trio.has_net());
        let whom = Whom::draw(&mut self.chance).find(&self.trio).await;
        self.say(&format!("{deed:?} {}", NAMES[whom]));
        match deed {
            Deed::Kill => self.kill(whom),
            Deed::KillAll => self.kill_all(),
            Deed::Stop => self.stop(whom),
            Deed::StopAll => (0..3).for_each(|member| self.stop(member)),
            Deed::End => self.end(whom),
            _ => self.cut(deed, whom),
        }
    }

    fn kill(&mut self, member: usize) {
        if self.trio.runs(member) {
            self.trio.kill(member);
            self.is_stopped[member] = false;
            self.tally.kills += 1;
        }
    }

    fn kill_all(&mut self) {
        self.trio.kill_all();
        self.is_stopped = [false; 3];
        self.tally.kills += 3;
    }

    fn stop(&mut self, member: usize) {
        if self.trio.runs(member) {
            self.trio.signal(member, Signal::STOP);
            self.is_stopped[member] = true;
            self.tally.stops += 1;
        }
    }

    fn end(&mut self, member: usize) {
        // Who stands still does not hear that it should end.
        if self.trio.runs(member) && !self.is_stopped[member] {
            block_in_place(|| self.trio.end(member));
            self.tally.ends += 1;
        }
    }

    fn cut(&mut self, deed: Deed, whom: usize) {
        let (net, [one, other]) = (self.trio.net(), others(whom));
        // Whatever was cut before.
        net.heal();
        match deed {
            Deed::Part => [one, other].into_iter().for_each(|peer| net.part(whom, peer)),
            Deed::Deafen => [one, other].into_iter().for_each(|from| net.cut(from, whom)),
            Deed::Silence => [one, other].into_iter().for_each(|to| net.cut(whom, to)),
            Deed::Bridge => net.part(one, other),
            _ => (0..3).for_each(|one| net.part(one, (one + 1) % 3)),
        }
        self.tally.cuts += 1;
    }

    /// All is well again, a little at a time and in any order.
    async fn mend(&mut self) {
        let first = self.chance.random_range(0..4);
        for part in (0..4).map(|turn| (first + turn) % 4) {
            match part {
                3 if self.trio.has_net() => self.trio.net().heal(),
                3 => {}
                member if !self.trio.runs(member) => block_in_place(|| self.trio.run(member)),
                member if self.is_stopped[member] => {
                    self.trio.signal(member, Signal::CONT);
                    self.is_stopped[member] = false;
                }
                _ => continue,
            }
            self.pause(300).await;
        }
    }

    async fn endure(mut self, time: Duration) {
        let history = History::begin_at(&self.trio, PACE);
        history.goes_on(10).await;
        while self.begun.elapsed() < time {
            history.is_right();
            for _ in 0..self.chance.random_range(1..4) {
                self.strike().await;
                // Sometimes for longer than a lease lasts.
                let longest = if self.chance.random_bool(0.1) { 5_000 } else { 1_200 };
                self.pause(longest).await;
            }
            self.mend().await;
            // Sometimes they are given time to get well, sometimes not.
            if self.chance.random() {
                history.goes_on(3).await;
            } else {
                self.pause(500).await;
            }
        }
        history.goes_on(10).await;
        self.say(&format!("judged after {}: {}", self.tally, history.told()));
        history.end(&self.trio).await;
    }
}

/// `VEZ_FAULT_SECONDS` lets it go on for longer than five minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_minutes_of_random_faults_and_nobody_is_told_anything_wrong() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("VEZ_SEED").unwrap_or_else(|| rand::rng().next_u64());
    let seconds = number("VEZ_FAULT_SECONDS").unwrap_or(SECONDS);
    eprintln!(
        "again: VEZ_SEED={seed} VEZ_FAULT_SECONDS={seconds} \
         cargo test --workspace --test cluster at_random -- --nocapture"
    );
    let mut ordeals = JoinSet::new();
    for cluster in 0..CLUSTERS {
        ordeals.spawn(async move {
            let ordeal = Ordeal::begin(cluster, seed).await;
            ordeal.endure(Duration::from_secs(seconds)).await;
        });
    }
    while let Some(ended) = ordeals.join_next().await {
        ended.expect("every history is as it should be");
    }
}
