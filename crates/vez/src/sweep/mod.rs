//! Many runs of many systems: what they cost, how long they take, what breaks.
//!
//! A [`Study`] says what to vary; [`Prepared::run`] runs every trial of every point on all cores. A
//! trial is a scenario made from (seed, algorithm, size, trial) alone, so that the result is the
//! same whatever the number of threads, and any run of it can be looked at with `vez run`.

pub mod axes;
mod chart;
mod crew;
mod point;
mod report;
mod trial;

use std::sync::atomic::AtomicBool;

use vez_core::{Layout, Seeded, Time, Topology};
use vez_numbers::cost::{Askers, Case, Initiators, Order, Quantity};
use vez_sim::Delay;

pub use chart::chart;
pub use crew::crew;
pub use point::{Break, Point};
pub(crate) use report::number;
pub use report::{csv, json, text};
pub use trial::scenario;
pub(crate) use trial::shuffle;

use crate::registry::Entry;
use crate::scenario::{Fault, Place, Placed, Resolved, Scenario, Wiring, resolve};

/// What to run.
#[derive(Clone)]
pub struct Study {
    pub algorithms: Vec<Subject>,
    pub nodes: Vec<u32>,
    /// The share of processes that want in.
    pub load: Vec<f64>,
    pub loss: Vec<f64>,
    /// Crashes of each process a second.
    pub crash_rate: Vec<f64>,
    pub trials: u32,
    pub seed: u64,
    pub metric: Metric,
    pub starters: Starters,
    pub order: Order,
    pub leader_down: bool,
    pub hold: Time,
    pub requests: u32,
    pub delay: Delay,
    /// Those who start or ask do so at a random moment up to this one.
    pub within: Time,
    /// How long a crashed process stays down, where it may come back.
    pub down: Time,
    pub wiring: Option<Wiring>,
    pub until: Option<Time>,
    pub threads: usize,
}

/// An algorithm with its settings.
#[derive(Clone)]
pub struct Subject {
    pub entry: Entry,
    pub config: std::collections::BTreeMap<String, Placed<toml::Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starters {
    All,
    /// So many, drawn by lot.
    Some(u32),
    /// Any number, drawn by lot.
    Random,
    Smallest,
    Largest,
}

/// What the table and the chart show. The other formats have all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Metric {
    /// To elect, or for one entry.
    Messages,
    /// Until everyone knows the leader, or until everyone has been served.
    Time,
    /// From asking to entering.
    Wait,
    /// How equally long processes wait: Jain's index, 1 if all alike.
    Fairness,
    /// How often another process came to lead.
    Changes,
}

impl Metric {
    pub fn word(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Time => "time",
            Self::Wait => "wait",
            Self::Fairness => "fairness",
            Self::Changes => "changes",
        }
    }

    /// The problem that has it, if only one does.
    pub fn problem(self) -> Option<&'static str> {
        match self {
            Self::Messages | Self::Time => None,
            Self::Wait | Self::Fairness => Some("mutex"),
            Self::Changes => Some("election"),
        }
    }

    fn quantity(self) -> Option<Quantity> {
        match self {
            Self::Messages => Some(Quantity::Messages),
            Self::Time => Some(Quantity::Time),
            Self::Wait => Some(Quantity::Wait),
            Self::Fairness | Self::Changes => None,
        }
    }
}

/// One combination of what is varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// The place of its algorithm in the study.
    pub subject: usize,
    pub n: u32,
    pub load: f64,
    pub loss: f64,
    pub crash_rate: f64,
}

/// What came out.
pub struct Outcome {
    pub points: Vec<Point>,
    /// Sizes an algorithm cannot have: a sentence each.
    pub skipped: Vec<String>,
    /// Points that were not finished when the user asked to stop.
    pub unfinished: usize,
    /// The first run that broke a promise of its algorithm.
    pub broken: Option<Scenario>,
}

impl Outcome {
    pub fn claims_kept(&self) -> bool {
        self.points.iter().flat_map(|point| &point.broken).all(|broken| !broken.claimed)
    }
}

/// A study whose every point can run.
pub struct Prepared<'a> {
    study: &'a Study,
    spots: Vec<Spot>,
    /// Sizes an algorithm cannot have: a sentence each.
    pub skipped: Vec<String>,
}

impl<'a> Prepared<'a> {
    pub fn new(study: &'a Study) -> Result<Self, Fault> {
        let (mut spots, mut skipped) = (Vec::new(), Vec::new());
        for spot in study.spots() {
            match study.resolved(&spot, 0) {
                Ok(_) => spots.push(spot),
                Err(fault) => {
                    let (name, n) = (study.algorithms[spot.subject].entry.meta.name, spot.n);
                    let line = format!("{name} with {n} processes is left out: {}", fault.message);
                    if !skipped.contains(&line) {
                        skipped.push(line);
                    }
                }
            }
        }
        if spots.is_empty() {
            let why = skipped.first().map_or("", String::as_str);
            return Err(Fault::new(&Place::Whole, format!("nothing is left to run: {why}")));
        }
        Ok(Self { study, spots, skipped })
    }

    /// Runs it; `told` hears how many of how many trials are done.
    pub fn run(self, stop: &AtomicBool, mut told: impl FnMut(u64, u64)) -> Outcome {
        let Self { study, spots, skipped } = self;
        let trials = study.trials as usize;
        let jobs = spots.len() * trials;
        let mut gathered: Vec<Vec<Option<trial::Trial>>> = Vec::new();
        gathered.resize_with(spots.len(), Vec::new);
        let mut points: Vec<Option<Point>> = vec![None; spots.len()];
        let mut missing = vec![trials; spots.len()];
        let mut done = 0;
        let work = |job: usize| trial::perform(study, &spots[job / trials], (job % trials) as u32);
        crew(study.threads, jobs, stop, work, |finished| {
            if let Some((job, trial)) = finished {
                let (spot, number) = (job / trials, job % trials);
                let so_far = &mut gathered[spot];
                so_far.resize_with(trials, || None);
                so_far[number] = Some(trial);
                missing[spot] -= 1;
                done += 1;
                if missing[spot] == 0 {
                    let all: Vec<_> = std::mem::take(so_far).into_iter().flatten().collect();
                    points[spot] = Some(Point::new(study, spots[spot], &all));
                }
            }
            told(done, jobs as u64);
        });
        let points: Vec<Point> = points.into_iter().flatten().collect();
        let unfinished = spots.len() - points.len();
        let broken = points.iter().find_map(|point| {
            let trial = point.broken_first?;
            Some(trial::scenario(study, &point.spot, trial))
        });
        Outcome { points, skipped, unfinished, broken }
    }
}

impl Study {
    /// Every combination, algorithm by algorithm.
    fn spots(&self) -> Vec<Spot> {
        let mut spots = Vec::new();
        for (subject, algorithm) in self.algorithms.iter().enumerate() {
            let is_mutex = algorithm.entry.problem == "mutex";
            // Elections know no load.
            let loads = if is_mutex { &self.load[..] } else { &self.load[..1] };
            for &crash_rate in &self.crash_rate {
                for &loss in &self.loss {
                    for &load in loads {
                        let at = |&n: &u32| Spot { subject, n, load, loss, crash_rate };
                        spots.extend(self.nodes.iter().map(at));
                    }
                }
            }
        }
        spots
    }

    fn resolved(&self, spot: &Spot, trial: u32) -> Result<Resolved, Fault> {
        let mut resolved = resolve(&trial::scenario(self, spot, trial))?;
        resolved.plan.steps_max = trial::STEPS_MAX;
        Ok(resolved)
    }

    /// What chance depends on in one trial. In 53 bits, so that every reader of JSON keeps it.
    fn trial_seed(&self, spot: &Spot, trial: u32) -> u64 {
        let name = self.algorithms[spot.subject].entry.meta.name;
        let parts = name.bytes().map(u64::from).chain([u64::from(spot.n), u64::from(trial)]);
        let mixed = parts.fold(self.seed, |seed, part| Seeded::stream(seed, part + 1).next_u64());
        mixed >> 11
    }

    /// How uids lie. Where everyone is linked to everyone no place differs from another, and uids
    /// go by address, which is how what arrives at one moment is ordered.
    fn order_of(&self, spot: &Spot) -> Order {
        match self.algorithms[spot.subject].entry.meta.layout {
            Layout::Complete | Layout::Star => Order::Ascending,
            _ => self.order,
        }
    }

    /// The case that the formulas are asked about.
    pub(crate) fn case(&self, spot: &Spot) -> Case {
        let resolved = self.resolved(spot, 0).unwrap_or_else(|fault| panic!("{spot:?}: {fault}"));
        let n = spot.n;
        let initiators = match self.starters {
            Starters::All => Initiators::All,
            Starters::Some(count) => Initiators::Some(count.min(n)),
            Starters::Random => Initiators::Unknown,
            Starters::Smallest => Initiators::Smallest,
            Starters::Largest => Initiators::Largest,
        };
        // A random graph has other links in every trial.
        let same = !matches!(self.wiring, Some(Wiring::Random(_)));
        let askers = trial::askers(n, spot.load);
        Case {
            initiators,
            order: self.order_of(spot),
            leader_down: self.leader_down,
            requests: self.requests,
            faultless: spot.loss == 0.0 && spot.crash_rate == 0.0 && same,
            steady: self.delay == Delay::Fixed(Time::from_millis(1)) && self.within == Time::ZERO,
            ..case_of(&self.algorithms[spot.subject], &resolved.topology, askers)
        }
    }
}

/// The case of a system in which so many ask, as far as the system itself decides it.
pub(crate) fn case_of(subject: &Subject, topology: &Topology, askers: u32) -> Case {
    let n = topology.n();
    Case {
        links: topology.link_count() as u64,
        diameter: axes::diameter(topology),
        complete: axes::is_complete(topology),
        askers: match askers {
            all if all == n => Askers::All,
            1 => Askers::One,
            _ => Askers::Some,
        },
        quorum: axes::quorum_sizes(n, subject),
        settings: axes::settings(subject),
        ..Case::new(n)
    }
}
