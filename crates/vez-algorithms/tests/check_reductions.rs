//! Searching less comes to the same verdict, for every algorithm, with what it assumes and without.

use vez_algorithms::election::{Bully, bully};
use vez_algorithms::{Visitor, visit_all};
use vez_check::{Hooks, Options, Reductions, check};
use vez_core::{Channel, Protocol, Topology};

/// Systems with more states than this are left out: what is compared must have been searched whole.
const STATES_MAX: u64 = 20_000;

fn agree<P: Protocol>(n: u32, options: &Options) -> bool {
    let Ok(topology) = Topology::of(P::META.layout, n) else { return false };
    let config = P::Config::default();
    let hooks = Hooks::default();
    let options = Options { states_max: STATES_MAX, ..options.clone() };
    let Ok(whole) = check::<P>(&topology, &config, &options, &hooks) else { return false };
    if !whole.complete && whole.kept() {
        return false;
    }
    for (ample, symmetry) in [(true, false), (false, true), (true, true)] {
        let reductions = Reductions { ample, symmetry, ..Reductions::default() };
        let options = Options { reductions, ..options.clone() };
        let reduced = check::<P>(&topology, &config, &options, &hooks).unwrap();
        let name = P::META.name;
        // Of several promises broken in one layer, which is found first is a matter of order; that
        // one is, is not. Runs that never end are not judged by a reduced search.
        let endless = whole.counterexample.as_ref().is_some_and(|found| found.cycle_from.is_some());
        assert!(endless || whole.kept() == reduced.kept(), "{name} {n} {options:?}");
        assert!(reduced.states <= whole.states || !whole.kept(), "{name} {n} {options:?}");
        let ways = reduced.statistics.renamings.unwrap_or(1);
        let is_whole = !ample && whole.kept();
        assert!(!is_whole || whole.states <= ways * reduced.states, "{name} {n} {options:?}");
    }
    true
}

#[test]
fn one_way_on_is_enough_for_every_algorithm() {
    struct Agree(Vec<&'static str>);
    impl Visitor for Agree {
        fn visit<P: Protocol>(&mut self) {
            let assumed = Options::new(&P::META);
            let variants = [
                assumed.clone(),
                Options { channel: Channel::Reliable, ..assumed.clone() },
                Options { channel: Channel::Fifo, crashes: 0, ..assumed.clone() },
                Options { crashes: 1, restarts: false, ..assumed.clone() },
                Options { losses: 1, crashes: 0, ..assumed.clone() },
            ];
            for options in &variants {
                if agree::<P>(2, options) | agree::<P>(3, options) {
                    self.0.push(P::META.name);
                }
            }
        }
    }
    let mut agree = Agree(Vec::new());
    visit_all(&mut agree);
    for name in ["coordinator", "chang-roberts", "bully"] {
        assert!(agree.0.contains(&name), "{name} was not compared: {:?}", agree.0);
    }
}

/// Of three processes: in how many ways they can be renamed, and how many states are left of how
/// many, up to epoch 1. Whoever is not listed can tell them apart.
const ALIKE: &[(&str, u64, u64, u64)] = &[
    ("coordinator", 2, 135, 260),
    ("raymond", 2, 180, 350),
    ("anonymous-ring", 3, 58, 168),
    ("itai-rodeh", 3, 615, 1_825),
    ("franklin", 2, 176, 332),
    ("weighted-majority", 6, 1_305, 7_458),
];

#[test]
fn it_is_found_out_where_processes_are_alike() {
    struct Find(Vec<(&'static str, u64, u64, u64)>);
    impl Visitor for Find {
        fn visit<P: Protocol>(&mut self) {
            let Ok(topology) = Topology::of(P::META.layout, 3) else { return };
            let states_max = STATES_MAX;
            let whole = Options { epoch_max: 1, states_max, ..Options::new(&P::META) };
            let reductions = Reductions { symmetry: true, ..Reductions::default() };
            let reduced = Options { reductions, ..whole.clone() };
            let [whole, reduced] = [whole, reduced].map(|options| {
                let config = P::Config::default();
                check::<P>(&topology, &config, &options, &Hooks::default()).unwrap()
            });
            let ways = reduced.statistics.renamings.unwrap();
            if 1 < ways && whole.states < STATES_MAX {
                self.0.push((P::META.name, ways, reduced.states, whole.states));
            }
        }
    }
    let mut find = Find(Vec::new());
    visit_all(&mut find);
    assert_eq!(find.0, ALIKE);
}

#[test]
fn one_way_on_is_enough_while_there_may_be_crashes() {
    let topology = Topology::of(Bully::META.layout, 3).unwrap();
    let whole = Options::new(&Bully::META);
    let reductions = Reductions { ample: true, ..Reductions::default() };
    let reduced = Options { reductions, ..whole.clone() };
    let states = [whole, reduced].map(|options| {
        let config = bully::Config::default();
        let outcome = check::<Bully>(&topology, &config, &options, &Hooks::default()).unwrap();
        assert!(outcome.complete && outcome.kept());
        outcome.states
    });
    assert_eq!(states, [25_999, 9_894]);
}
