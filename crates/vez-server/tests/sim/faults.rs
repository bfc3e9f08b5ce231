//! What goes wrong, and when: drawn before a run begins.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use turmoil::Sim;

use crate::disk::USUAL;
use crate::world::{CLIENTS, LATENCY_MAX, SERVERS, World};

/// Something that goes wrong, and comes right after a while.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// These crash; what was not written is lost.
    Crash(Vec<&'static str>),
    /// Nothing passes between these, and what was under way is lost.
    Cut(Vec<(&'static str, &'static str)>),
    /// Nothing passes from the one to the other.
    CutOneWay(Vec<(&'static str, &'static str)>),
    /// What these say to each other arrives when it is over.
    Hold(Vec<(&'static str, &'static str)>),
    /// What these say to each other takes longer.
    Delay(Vec<(&'static str, &'static str)>, Duration),
    /// A disk takes so many milliseconds for a write, or some less.
    SlowDisk(usize, u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Episode {
    pub(crate) begins: Duration,
    pub(crate) lasts: Duration,
    /// It waits for somebody to be told that a write was made: then it is late to lose it.
    pub(crate) after_write: bool,
    pub(crate) fault: Fault,
}

pub(crate) struct Plan {
    pub(crate) episodes: Vec<Episode>,
    /// What is wrong after all of them with one member, for as long as anybody waits because of
    /// it: the others are enough.
    pub(crate) siege: Option<Fault>,
}

/// What goes wrong with this seed.
pub(crate) fn plan(seed: u64) -> Plan {
    let mut chance = StdRng::seed_from_u64(seed);
    let mut at = 600;
    let episodes = 0..chance.random_range(1..=3);
    let mut episode = |_| {
        let begins = Duration::from_millis(at + chance.random_range(0..600));
        // One may begin before another is over.
        at += chance.random_range(100..1_800);
        let (after_write, fault) = (chance.random(), draw(&mut chance));
        // Some outlast leases, and elections besides: above all where one goes on without others.
        let is_long = match fault {
            Fault::Cut(_) | Fault::Hold(_) => chance.random(),
            _ => chance.random_ratio(1, 6),
        };
        let lasts = if is_long { 2_000..5_000 } else { 50..1_400 };
        let lasts = Duration::from_millis(chance.random_range(lasts));
        Episode { begins, lasts, after_write, fault }
    };
    let episodes = episodes.map(&mut episode).collect();
    let siege = chance.random_ratio(1, 5).then(|| besiege(&mut chance));
    Plan { episodes, siege }
}

fn besiege(chance: &mut StdRng) -> Fault {
    let mut servers = SERVERS;
    servers.shuffle(chance);
    let [one, two, three] = servers;
    let others = || [two, three].into_iter().chain(CLIENTS).map(move |other| (one, other));
    match chance.random_range(0..4) {
        0 => Fault::Crash(vec![one]),
        1 => Fault::Cut(vec![(one, two), (one, three)]),
        // It stands still, as far as anybody can tell.
        _ => Fault::Hold(others().collect()),
    }
}

fn draw(chance: &mut StdRng) -> Fault {
    let mut servers = SERVERS;
    servers.shuffle(chance);
    let [one, two, three] = servers;
    let alone = vec![(one, two), (one, three)];
    let clients: Vec<_> = CLIENTS.into_iter().map(|client| (one, client)).collect();
    match chance.random_range(0..12) {
        0 | 1 => Fault::Crash(vec![one]),
        2 => Fault::Crash(vec![one, two]),
        3 => Fault::Crash(servers.to_vec()),
        4 => Fault::Cut(alone),
        // Two that reach each other through the third only.
        5 => Fault::Cut(vec![(one, two)]),
        6 if chance.random() => Fault::CutOneWay(alone),
        6 => Fault::CutOneWay(vec![(two, one), (three, one)]),
        7 => Fault::Hold(alone),
        8 if chance.random() => Fault::Hold(clients),
        8 => Fault::Hold([alone, clients].concat()),
        9 | 10 => {
            let pairs = if chance.random() { alone } else { clients };
            Fault::Delay(pairs, Duration::from_millis(chance.random_range(20..400)))
        }
        _ => Fault::SlowDisk(chance.random_range(0..SERVERS.len()), chance.random_range(50..3_000)),
    }
}

/// How the way between two hosts is at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Way {
    is_held: bool,
    is_cut_forth: bool,
    is_cut_back: bool,
    latency: Option<Duration>,
}

impl Way {
    fn new(one: &str, other: &str, faults: &[Fault]) -> Self {
        let mut way = Self::default();
        let goes = |(from, to): &(&str, &str)| *from == one && *to == other;
        let comes = |(from, to): &(&str, &str)| *from == other && *to == one;
        for fault in faults {
            match fault {
                Fault::Cut(pairs) if pairs.iter().any(|pair| goes(pair) || comes(pair)) => {
                    (way.is_cut_forth, way.is_cut_back) = (true, true);
                }
                Fault::CutOneWay(pairs) => {
                    way.is_cut_forth |= pairs.iter().any(goes);
                    way.is_cut_back |= pairs.iter().any(comes);
                }
                Fault::Hold(pairs) => {
                    way.is_held |= pairs.iter().any(|pair| goes(pair) || comes(pair));
                }
                Fault::Delay(pairs, latency)
                    if pairs.iter().any(|pair| goes(pair) || comes(pair)) =>
                {
                    way.latency = Some(*latency);
                }
                _ => {}
            }
        }
        way
    }

    fn set(self, sim: &Sim<'_>, one: &str, other: &str) {
        sim.release(one, other);
        match (self.is_cut_forth, self.is_cut_back) {
            (true, true) => sim.partition(one, other),
            (true, false) => sim.partition_oneway(one, other),
            (false, true) => sim.partition_oneway(other, one),
            (false, false) if self.is_held => sim.hold(one, other),
            (false, false) => {}
        }
        let latency = self.latency.unwrap_or(LATENCY_MAX);
        sim.set_link_max_message_latency(one, other, latency);
    }
}

fn is_down(host: &str, faults: &[Fault]) -> bool {
    faults.iter().any(|fault| matches!(fault, Fault::Crash(hosts) if hosts.contains(&host)))
}

/// The faults of a run, as they come and go.
pub(crate) struct Calendar {
    /// With when each began.
    episodes: Vec<(Episode, Option<Duration>)>,
    writes: u64,
}

impl Calendar {
    pub(crate) fn new(episodes: Vec<Episode>) -> Self {
        let episodes = episodes.into_iter().map(|episode| (episode, None)).collect();
        Self { episodes, writes: 0 }
    }

    /// What is wrong now, if so many writes were acknowledged until now.
    pub(crate) fn on(&mut self, now: Duration, writes: u64) -> Vec<Fault> {
        let is_news = self.writes < std::mem::replace(&mut self.writes, writes);
        for (episode, begun) in self.episodes.iter_mut().filter(|(_, begun)| begun.is_none()) {
            // Perhaps nobody writes: then it does not wait for ever.
            let is_late = episode.begins + Duration::from_millis(500) <= now;
            if episode.begins <= now && (!episode.after_write || is_news || is_late) {
                *begun = Some(now);
            }
        }
        let is_on = |(episode, begun): &&(Episode, Option<Duration>)| {
            begun.is_some_and(|begun| now < begun + episode.lasts)
        };
        self.episodes.iter().filter(is_on).map(|(episode, _)| episode.fault.clone()).collect()
    }

    /// Whether nothing more will be wrong.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        let is_over = |(episode, begun): &(Episode, Option<Duration>)| {
            begun.is_some_and(|begun| begun + episode.lasts <= now)
        };
        self.episodes.iter().all(is_over)
    }
}

impl World<'_> {
    /// Lets these faults be, after those have been.
    pub(crate) fn change(&mut self, before: &[Fault], now: &[Fault]) {
        for (server, disk) in self.disks.iter().enumerate() {
            let slow = now.iter().find_map(|fault| match fault {
                Fault::SlowDisk(which, most) if *which == server => Some(*most),
                _ => None,
            });
            disk.set(slow.unwrap_or(USUAL));
        }
        let mut crashed = Vec::new();
        for host in SERVERS {
            match (is_down(host, before), is_down(host, now)) {
                (false, true) => {
                    self.crash(host);
                    crashed.push(host);
                }
                (true, false) => self.sim.bounce(host),
                _ => {}
            }
        }
        let hosts = || SERVERS.into_iter().chain(CLIENTS);
        for (at, one) in hosts().enumerate() {
            for other in hosts().skip(at + 1) {
                let way = Way::new(one, other, now);
                let was_reset = crashed.contains(&one) || crashed.contains(&other);
                if was_reset || way != Way::new(one, other, before) {
                    way.set(&self.sim, one, other);
                }
            }
        }
    }

    /// Like a machine that loses its power: it says nothing any more, nobody a farewell. (Tasks die
    /// in no order that could be had again; what they said would be in none either.)
    fn crash(&mut self, host: &str) {
        let others = || SERVERS.into_iter().chain(CLIENTS).filter(|other| *other != host);
        others().for_each(|other| self.sim.partition(host, other));
        self.sim.crash(host);
    }
}
