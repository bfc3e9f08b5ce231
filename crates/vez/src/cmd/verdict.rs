//! The verdict of a check, for people.

use std::fmt::Write as _;

use vez_check::{Counterexample, Judgement, Options, Outcome};

use crate::checking::{Exhibit, Question, grouped, judged, model, searched, stopped};
use crate::picture::shape;

/// One screen: the system, what may happen in it, how much was searched, what was found.
pub(super) fn verdict(
    question: &Question<'_>,
    outcome: &Outcome,
    exhibit: Option<&Exhibit>,
) -> String {
    let Question { resolved, options, without } = question;
    let topology = &resolved.topology;
    let processes = if topology.n() == 1 { "process" } else { "processes" };
    let users = match &options.askers {
        None => "each user asks".to_owned(),
        Some(askers) => match askers.len() {
            1 => format!("the user of {} asks", topology.names(askers.iter().copied())),
            _ => format!("the users of {} ask", topology.names(askers.iter().copied())),
        },
    };
    let times = match options.entries {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        entries => format!("{entries} ×"),
    };
    let mut out = format!(
        "{} · {} {processes}, {}, {users} {times}\n",
        resolved.entry.meta.name,
        topology.n(),
        shape(topology)
    );
    let mut line = |heading: &str, words: &str| {
        writeln!(out, "  {heading:<9} {words}").expect("strings take anything");
    };
    if !without.is_empty() {
        let names: Vec<&str> = without.iter().map(|assumption| assumption.name()).collect();
        line("without", &names.join(", "));
    }
    for (heading, words) in model(&resolved.entry, options) {
        line(heading, &words);
    }
    line("searched", &searched(outcome));
    line("", &stopped(outcome, options));
    for (heading, words) in remarks(outcome, options) {
        line(heading, &words);
    }
    let width = outcome.promises.iter().map(|verdict| verdict.promise.name().len()).max();
    for verdict in &outcome.promises {
        let mark = match verdict.judgement {
            Judgement::Kept => "✔",
            Judgement::Broken => "✘",
            Judgement::KeptSoFar | Judgement::Unjudged => "·",
        };
        let (name, width) = (verdict.promise.name(), width.unwrap_or_default());
        let words = judged(verdict);
        writeln!(out, "  {mark} {name:<width$}  {words}").expect("strings take anything");
    }
    if let Some(found) = &outcome.counterexample {
        out += &told(found, options, exhibit);
    }
    out
}

fn remarks(outcome: &Outcome, options: &Options) -> Vec<(&'static str, String)> {
    let mut remarks = Vec::new();
    let statistics = &outcome.statistics;
    match statistics.coverage {
        // Random runs have nothing to cover.
        Some(_) if options.reductions.bitstate.is_none() => (),
        Some(coverage) => {
            remarks.push(("", format!("about {:.2} % of the states were seen", 100.0 * coverage)));
        }
        None if statistics.collision_probability > 0.0 => {
            let chance = statistics.collision_probability;
            remarks.push(("", format!("chance that a state was overlooked: {chance:.0e}")));
        }
        None => (),
    }
    if options.reductions.ample {
        let (some, saved) = (grouped(statistics.ample_states), grouped(statistics.ample_saved));
        let words = format!("{some} states explored one way only, {saved} steps left out");
        remarks.push(("reduced", words));
    }
    if let Some(renamings) = statistics.renamings {
        let words = match renamings {
            0 | 1 => "none found: who is who matters here".to_owned(),
            ways => format!("{ways} ways to name everyone, all alike"),
        };
        remarks.push(("symmetry", words));
    }
    if outcome.unexpected > 0 {
        let words = format!("{} × what an algorithm says cannot be", grouped(outcome.unexpected));
        remarks.push(("surprise", words));
    }
    remarks
}

/// The trace in words.
fn told(found: &Counterexample, options: &Options, exhibit: Option<&Exhibit>) -> String {
    let count = found.steps.len();
    let steps = if count == 1 { "step" } else { "steps" };
    let promise = found.promise.name();
    let is_shortest =
        options.search == vez_check::Search::BreadthFirst && options.reductions == <_>::default();
    let way = match (found.cycle_from, is_shortest) {
        (None, true) => "The shortest way",
        _ => "A way",
    };
    let mut out = format!("\n{way} to break {promise}, {count} {steps}:\n");
    let mut line = |mark: &str, words: &str| {
        writeln!(out, "{mark:>4}  {words}").expect("strings take anything");
    };
    for birth in exhibit.iter().flat_map(|exhibit| &exhibit.births) {
        line("0", birth);
    }
    for (index, step) in found.steps.iter().enumerate() {
        let words = exhibit.map_or(&step.text, |exhibit| &exhibit.steps[index]);
        line(&(index + 1).to_string(), words);
    }
    let end = match found.cycle_from {
        Some(from) if from + 1 == count => format!("step {count} repeats for ever"),
        Some(from) => format!("from step {} on this repeats for ever", from + 1),
        None => found.detail.clone(),
    };
    line("✘", &format!("{promise}: {end}"));
    if exhibit.is_none() {
        out += "(the simulator does not confirm this trace)\n";
    }
    out
}
