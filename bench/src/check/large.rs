//! Large systems: complete searches, their counts pinned.

use vez_algorithms::election::{WeightedMajority, weighted_majority};
use vez_algorithms::mutex::{Maekawa, maekawa};
use vez_check::{Hooks, Options, Reductions, Stop, check};
use vez_core::{NodeId, Protocol, Topology};

use crate::measure::Sample;
use crate::table::{Table, Target};

pub(crate) fn measure(table: &mut Table) {
    eprintln!("measuring large systems …");
    let ample = Reductions { ample: true, ..Reductions::default() };
    let two = Some([NodeId(0), NodeId(1)].into());
    let options = Options { askers: two, reductions: ample, ..Options::new(&Maekawa::META) };
    let config = maekawa::Config { quorums: maekawa::Quorums::Plane, ..Default::default() };
    explore::<Maekawa>(table, "Maekawa, n = 7, plane, two ask", 7, &config, &options, 103);
    // On a lossy channel any number of messages may be lost, repeated and reordered.
    let options = Options { crashes: 1, epoch_max: 1, ..Options::new(&WeightedMajority::META) };
    let config = weighted_majority::Config::default();
    let name = "weighted majority, n = 5, a crash and any losses, term 1";
    explore::<WeightedMajority>(table, name, 5, &config, &options, 1_927_226);
    let alike = Reductions { symmetry: true, ..Reductions::default() };
    let options = Options { reductions: alike, ..options };
    let name = "the same, whoever is who";
    explore::<WeightedMajority>(table, name, 5, &config, &options, 20_919);
}

/// Seconds, of at most two minutes.
fn explore<P: Protocol>(
    table: &mut Table,
    name: &str,
    n: u32,
    config: &P::Config,
    options: &Options,
    states: u64,
) {
    let topology = Topology::of(P::META.layout, n).expect("the layout allows it");
    let sample = Sample::on_the_wall(|| {
        let outcome = check::<P>(&topology, config, options, &Hooks::default());
        let outcome = outcome.expect("it is sensible");
        assert!(outcome.complete || outcome.stopped == Some(Stop::Epoch), "{name}: {outcome:?}");
        assert!(outcome.kept(), "{name}: {:?}", outcome.counterexample);
        outcome.states
    });
    assert_eq!(sample.messages, states, "{name}");
    let seconds = sample.took.as_secs_f64();
    let within = Some(Target::AtMost(1.0));
    let name = format!("{name}: {states} states");
    table.compare(name, (seconds, "s"), ("limit", 120.0), seconds / 120.0, within);
}
