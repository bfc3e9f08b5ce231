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
    let reductions = Reductions { ample: true, ..Reductions::default() };
    let options = Options { reductions, ..options };
    let reduced = check::<P>(&topology, &config, &options, &hooks).unwrap();
    let name = P::META.name;
    // Of several promises broken in one layer, which is found first is a matter of order; that
    // one is, is not. Runs that never end are not judged by a reduced search.
    let endless = whole.counterexample.as_ref().is_some_and(|found| found.cycle_from.is_some());
    assert!(endless || whole.kept() == reduced.kept(), "{name} {n} {options:?}");
    assert!(reduced.states <= whole.states || !whole.kept(), "{name} {n} {options:?}");
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
