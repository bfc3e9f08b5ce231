//! Failure detectors: parts that a protocol watches its peers with.
//!
//! A detector says *suspected*, never *crashed*: where delays have no bound, a slow peer and a dead
//! one are the same silence. It takes a suspicion back when the peer is heard again. Detectors
//! read no clock. Their host arms one timer, again and again, for [`DetectorConfig::tick`], and
//! tells the [`Watch`] of every tick and of every heartbeat; silence is counted in ticks.
//!
//! **Invariant:** a peer is suspected no sooner than its patience runs out, and less than a tick
//! later; a heartbeat that arrives at the very end of it is in time, because drivers deliver before
//! they let timers fire. Once a peer is suspected nothing is counted, so that states stay finite.

mod adaptive;
mod heartbeat;
mod phi_accrual;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vez_core::{NodeId, Time};

use adaptive::Adaptive;
use heartbeat::Heartbeat;
use phi_accrual::PhiAccrual;

/// How a protocol watches its peers. Part of its own settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DetectorConfig {
    pub kind: DetectorKind,
    /// How finely silence is measured.
    pub tick: Time,
    /// How often to send heartbeats.
    pub period: Time,
    /// How long a silence to bear; the adaptive detector begins with it, and the accrual detector
    /// goes by it until it has learned what is usual.
    pub timeout: Time,
    /// How much more the adaptive detector bears after each false suspicion.
    pub increase: Time,
    /// The accrual detector suspects at this φ: the chance of being wrong is 10^−φ.
    pub threshold: u32,
    /// How many of the last silences the accrual detector remembers.
    pub window: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DetectorKind {
    Heartbeat,
    Adaptive,
    PhiAccrual,
}

impl Default for DetectorConfig {
    /// Right under the reference schedule: heartbeats of one peer arrive at most 6 ms apart.
    fn default() -> Self {
        Self {
            kind: DetectorKind::Heartbeat,
            tick: Time::from_millis(1),
            period: Time::from_millis(5),
            timeout: Time::from_millis(10),
            increase: Time::from_millis(5),
            threshold: 8,
            window: 16,
        }
    }
}

impl DetectorConfig {
    /// Refuses what makes no sense, in one sentence.
    pub fn validate(&self) -> Result<(), String> {
        let highest = phi_accrual::THRESHOLD_MAX;
        let times = [("period", self.period), ("timeout", self.timeout), ("tick", self.tick)];
        if let Some((name, _)) = times.iter().find(|(_, time)| *time == Time::ZERO) {
            return Err(format!("detector.{name}: expected more than 0"));
        }
        if self.kind == DetectorKind::PhiAccrual && !(1..=highest).contains(&self.threshold) {
            let found = self.threshold;
            return Err(format!("detector.threshold: expected 1 to {highest}, found {found}"));
        }
        if self.kind == DetectorKind::PhiAccrual && self.window < 2 {
            let found = self.window;
            return Err(format!("detector.window: expected 2 or more, found {found}"));
        }
        Ok(())
    }

    /// A span in ticks, rounded up: patience is never shorter than asked for.
    fn ticks(&self, span: Time) -> u64 {
        span.as_micros().div_ceil(self.tick.as_micros())
    }
}

/// What a detector knows of one peer, besides how long it has been silent.
trait Detector {
    /// How many ticks of silence it bears.
    fn patience(&self, config: &DetectorConfig) -> u64;

    /// The peer spoke after this many ticks, having been suspected or not.
    fn on_heartbeat(&mut self, silent: u64, suspected: bool);
}

/// The peers a process watches, and whom of them it suspects.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Watch {
    peers: BTreeMap<NodeId, Peer>,
    /// How many more ticks until the next heartbeat is due.
    rest: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Peer {
    /// Ticks since it was last heard; stands still while it is suspected.
    silent: u64,
    suspected: bool,
    detector: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
enum Kind {
    Heartbeat(Heartbeat),
    Adaptive(Adaptive),
    PhiAccrual(PhiAccrual),
}

/// What a tick brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// Whether it is time to send heartbeats.
    pub beat: bool,
    /// Who is suspected now and was not before.
    pub suspected: Vec<NodeId>,
}

impl Watch {
    /// Trusts all of them at first. The first tick is also the first to send heartbeats.
    pub fn new(peers: impl IntoIterator<Item = NodeId>, config: &DetectorConfig) -> Self {
        let peer = |node| (node, Peer { silent: 0, suspected: false, detector: Kind::new(config) });
        Self { peers: peers.into_iter().map(peer).collect(), rest: 0 }
    }

    /// Upon [`DetectorConfig::tick`] having passed. The host arms its timer again, sends
    /// heartbeats if they are due, and does about the suspected what its algorithm says.
    pub fn on_tick(&mut self, config: &DetectorConfig) -> Tick {
        let mut tick = Tick { beat: self.rest == 0, suspected: Vec::new() };
        self.rest = if tick.beat { config.ticks(config.period) } else { self.rest } - 1;
        for (&node, peer) in &mut self.peers {
            if peer.suspected {
                continue;
            }
            peer.silent += 1;
            // The first of these ticks was a part of one only.
            if peer.detector.get().patience(config) < peer.silent {
                peer.suspected = true;
                tick.suspected.push(node);
            }
        }
        tick
    }

    /// Upon a heartbeat. Whether it takes a suspicion back. Other messages are signs of life too,
    /// but would teach the accrual detector the wrong rhythm.
    pub fn on_heartbeat(&mut self, from: NodeId) -> bool {
        let Some(peer) = self.peers.get_mut(&from) else { return false };
        peer.detector.get_mut().on_heartbeat(peer.silent, peer.suspected);
        peer.silent = 0;
        std::mem::replace(&mut peer.suspected, false)
    }

    pub fn is_suspected(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(|peer| peer.suspected)
    }

    /// The watched peers that are not suspected.
    pub fn trusted(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.peers.iter().filter(|(_, peer)| !peer.suspected).map(|(&node, _)| node)
    }

    /// How much of its patience with a peer is used up, in ticks: silence and limit.
    pub fn silence(&self, node: NodeId, config: &DetectorConfig) -> Option<(u64, u64)> {
        let peer = self.peers.get(&node)?;
        Some((peer.silent, peer.detector.get().patience(config)))
    }
}

impl Kind {
    fn new(config: &DetectorConfig) -> Self {
        match config.kind {
            DetectorKind::Heartbeat => Self::Heartbeat(Heartbeat),
            DetectorKind::Adaptive => Self::Adaptive(Adaptive::default()),
            DetectorKind::PhiAccrual => Self::PhiAccrual(PhiAccrual::new(config.window)),
        }
    }

    fn get(&self) -> &dyn Detector {
        match self {
            Self::Heartbeat(detector) => detector,
            Self::Adaptive(detector) => detector,
            Self::PhiAccrual(detector) => detector,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Detector {
        match self {
            Self::Heartbeat(detector) => detector,
            Self::Adaptive(detector) => detector,
            Self::PhiAccrual(detector) => detector,
        }
    }
}
