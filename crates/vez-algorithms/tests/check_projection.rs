//! The algorithms we ship have more states than the small models that other tools have counted.
//! Here a plain explorer, which shares nothing with the checker, takes away what we added, and has
//! their counts; and with it, the checker's.

#[path = "../../vez-check/tests/models/mod.rs"]
mod models;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use models::agrawala::{self, Agrawala};
use vez_algorithms::election::ChangRoberts;
use vez_algorithms::election::chang_roberts;
use vez_algorithms::mutex::RicartAgrawala;
use vez_algorithms::mutex::ricart_agrawala;
use vez_check::{Hooks, Options, check};
use vez_core::problem::{ElectionRequest, MutexRequest};
use vez_core::{
    Ctx, Effect, Env, Event, Layout, NodeId, Notice, Promise, Protocol, Request, Script, Topology,
};

/// What a process says and is told in one step.
struct Done<P: Protocol> {
    sent: Vec<(NodeId, P::Message)>,
    told: Vec<Notice<P>>,
}

/// Algorithms that make no choices, arm no timers, and do not talk to themselves.
struct System<'a, P: Protocol> {
    topology: &'a Topology,
    config: P::Config,
}

impl<P: Protocol> System<'_, P> {
    fn with<R>(&self, me: NodeId, act: impl FnOnce(&mut Ctx<'_, P>) -> R) -> (R, Done<P>) {
        let (mut effects, mut script) = (Vec::new(), Script::default());
        let env = Env { me, topology: self.topology, config: &self.config };
        let result = act(&mut Ctx::new(env, &mut script, &mut effects));
        let mut done = Done { sent: Vec::new(), told: Vec::new() };
        for effect in effects {
            match effect {
                Effect::Send { to, message } => done.sent.push((to, message)),
                Effect::Notify(notice) => done.told.push(notice),
                other => unreachable!("{other:?}"),
            }
        }
        done.sent.sort();
        (result, done)
    }

    fn birth(&self) -> Vec<P> {
        self.topology.ids().map(|me| self.with(me, |ctx| P::start(None, ctx)).0).collect()
    }

    fn step(&self, processes: &mut [P], me: NodeId, event: Event<P>) -> Done<P> {
        self.with(me, |ctx| processes[me.index()].step(event, ctx)).1
    }

    fn ask(&self, processes: &mut [P], me: NodeId, request: Request<P>) -> Done<P> {
        self.step(processes, me, Event::Request(request))
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// How many different worlds there are, and how many different views of them.
fn count<W: Hash, const N: usize>(
    first: W,
    nexts: impl Fn(&W) -> Vec<W>,
    views: impl Fn(&W) -> [u64; N],
) -> (usize, [usize; N]) {
    let mut seen = BTreeSet::from([hash(&first)]);
    let mut viewed = [const { BTreeSet::new() }; N];
    let mut queue = VecDeque::from([first]);
    while let Some(world) = queue.pop_front() {
        for (viewed, view) in viewed.iter_mut().zip(views(&world)) {
            viewed.insert(view);
        }
        queue.extend(nexts(&world).into_iter().filter(|next| seen.insert(hash(next))));
    }
    (seen.len(), viewed.map(|viewed| viewed.len()))
}

/// A ring, what its users have asked and what they have been told.
#[derive(Clone, Hash)]
struct RingWorld {
    processes: Vec<ChangRoberts>,
    links: BTreeMap<NodeId, VecDeque<chang_roberts::Message>>,
    has_asked: Vec<bool>,
    knows: Vec<bool>,
}

impl RingWorld {
    fn after(&mut self, me: NodeId, done: Done<ChangRoberts>) {
        self.knows[me.index()] |= !done.told.is_empty();
        for (to, message) in done.sent {
            self.links.entry(to).or_default().push_back(message);
        }
    }

    fn nexts(&self, system: &System<'_, ChangRoberts>) -> Vec<Self> {
        let mut nexts = Vec::new();
        for me in system.topology.ids() {
            if !self.has_asked[me.index()] && !self.knows[me.index()] {
                let mut next = self.clone();
                next.has_asked[me.index()] = true;
                let done = system.ask(&mut next.processes, me, ElectionRequest::Start);
                next.after(me, done);
                nexts.push(next);
            }
            if self.links.contains_key(&me) {
                let mut next = self.clone();
                let link = next.links.get_mut(&me).expect("it is there");
                let message = link.pop_front().expect("there is something on it");
                if link.is_empty() {
                    next.links.remove(&me);
                }
                let event = Event::Message { from: system.topology.prev(me), message };
                let done = system.step(&mut next.processes, me, event);
                next.after(me, done);
                nexts.push(next);
            }
        }
        nexts
    }
}

#[test]
fn chang_roberts_has_the_states_of_the_model_but_for_what_its_users_have_asked() {
    let cases = [(4, 370, 116), (5, 1_847, 489), (6, 10_128, 2_206), (8, 362_674, 50_152)];
    for (n, whole, bare) in cases {
        let descending = (1..=u64::from(n)).rev().collect();
        let topology = Topology::of(Layout::Ring, n).unwrap().with_uids(descending);
        let system = System { topology: &topology, config: chang_roberts::Config::default() };
        let first = RingWorld {
            processes: system.birth(),
            links: BTreeMap::new(),
            has_asked: vec![false; n as usize],
            knows: vec![false; n as usize],
        };
        let view = |world: &RingWorld| [hash(&(&world.processes, &world.links))];
        let counts = count(first, |world| world.nexts(&system), view);
        assert_eq!(counts, (whole, [bare]), "{n} processes");
        let options = Options { threads: 2, ..Options::new(&ChangRoberts::META) };
        let config = chang_roberts::Config::default();
        let outcome = check::<ChangRoberts>(&topology, &config, &options, &Hooks::default());
        assert_eq!(outcome.unwrap().states, whole as u64, "{n} processes");
    }
}

/// What a user is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum User {
    Outside,
    Waiting,
    Inside,
}

/// The algorithm and the model side by side: the same happens to both.
#[derive(Clone, Hash)]
struct Twins {
    ours: Vec<RicartAgrawala>,
    model: Vec<Agrawala>,
    /// From, to, and what each of the two says.
    flying: BTreeSet<(NodeId, NodeId, ricart_agrawala::Message, agrawala::Message)>,
    users: Vec<(User, u32)>,
}

struct Pair<'a> {
    ours: System<'a, RicartAgrawala>,
    model: System<'a, Agrawala>,
}

impl Twins {
    /// Takes in what both did, which must be the same but for logical times.
    fn after(&mut self, me: NodeId, ours: Done<RicartAgrawala>, model: Done<Agrawala>) {
        assert_eq!(ours.told, model.told);
        assert_eq!(ours.sent.len(), model.sent.len());
        for ((to, word), (also, twin)) in ours.sent.into_iter().zip(model.sent) {
            let is_request = matches!(word, ricart_agrawala::Message::Request { .. });
            assert_eq!(to, also);
            assert_eq!(is_request, matches!(twin, agrawala::Message::Request(_)));
            assert!(self.flying.insert((me, to, word, twin)), "one of a kind at a time");
        }
        if !ours.told.is_empty() {
            self.users[me.index()].0 = User::Inside;
        }
    }

    fn ask(&self, pair: &Pair<'_>, me: NodeId, request: MutexRequest) -> Self {
        let mut next = self.clone();
        next.users[me.index()].0 = match request {
            MutexRequest::Acquire => User::Waiting,
            _ => User::Outside,
        };
        next.users[me.index()].1 -= u32::from(request == MutexRequest::Acquire);
        let ours = pair.ours.ask(&mut next.ours, me, request);
        let model = pair.model.ask(&mut next.model, me, request);
        next.after(me, ours, model);
        next
    }

    fn nexts(&self, pair: &Pair<'_>) -> Vec<Self> {
        let mut nexts = Vec::new();
        for (me, &(user, wishes)) in (0..).map(NodeId).zip(&self.users) {
            match user {
                User::Outside if 0 < wishes => {
                    nexts.push(self.ask(pair, me, MutexRequest::Acquire));
                }
                User::Inside => nexts.push(self.ask(pair, me, MutexRequest::Release)),
                User::Outside | User::Waiting => (),
            }
        }
        for flight in &self.flying {
            let mut next = self.clone();
            next.flying.remove(flight);
            let (from, me, message, twin) = flight.clone();
            let ours = pair.ours.step(&mut next.ours, me, Event::Message { from, message });
            let event = Event::Message { from, message: twin };
            let model = pair.model.step(&mut next.model, me, event);
            next.after(me, ours, model);
            nexts.push(next);
        }
        nexts
    }

    /// What is ours, and what is the model's.
    fn views(&self) -> [u64; 2] {
        let flying = self.flying.iter();
        let ours: Vec<_> = flying.clone().map(|(from, to, word, _)| (from, to, word)).collect();
        let model: BTreeSet<_> = flying.map(|(from, to, _, twin)| (from, to, twin)).collect();
        [hash(&(&self.ours, &ours, &self.users)), hash(&(&self.model, &model, &self.users))]
    }
}

#[test]
fn ricart_agrawala_does_what_the_model_does_and_has_its_states_but_for_logical_times() {
    for (n, whole, bare) in [(2, 45, 34), (3, 29_171, 2_822)] {
        let topology = Topology::of(Layout::Complete, n).unwrap();
        let config = ricart_agrawala::Config::default();
        let pair = Pair {
            ours: System { topology: &topology, config: config.clone() },
            model: System { topology: &topology, config: agrawala::Flaw::None },
        };
        let first = Twins {
            ours: pair.ours.birth(),
            model: pair.model.birth(),
            flying: BTreeSet::new(),
            users: vec![(User::Outside, 1); n as usize],
        };
        let (_, views) = count(first, |twins| twins.nexts(&pair), Twins::views);
        assert_eq!(views, [whole, bare], "{n} processes");
        let promises = vec![Promise::MutualExclusion];
        let options = Options { promises, ..Options::new(&RicartAgrawala::META) };
        let options = Options { bounded_wait: false, ..options };
        let outcome = check::<RicartAgrawala>(&topology, &config, &options, &Hooks::default());
        assert_eq!(outcome.unwrap().states, whole as u64, "{n} processes");
    }
}
