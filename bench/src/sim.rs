//! The measurements, each a few rows of the table.

use crate::bare::{self, Buckets, Heap, Wheel};
use crate::counting::counted;
use crate::measure::{Rates, Sample, in_turns};
use crate::ours;
use crate::peers::{PEERS, Peer};
use crate::sizes::sizes;
use crate::table::{MILLIONS, Table, Target};

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Fewer rounds and smaller systems, where the full size is not the point.
    pub(crate) quick: bool,
}

impl Scale {
    fn rounds(self) -> usize {
        if self.quick { 3 } else { 7 }
    }

    pub(crate) fn pick(self, full: u32, quick: u32) -> u32 {
        if self.quick { quick } else { full }
    }
}

type Part = fn(&mut Table, Scale);

pub(crate) fn measure(scale: Scale) -> Table {
    let mut table = Table::default();
    let parts: [(&str, Part); 8] = [
        ("bare loops, small", bare_small),
        ("bare loops, large", bare_large),
        ("other simulators", others),
        ("memory", memory),
        ("everyone asks everyone", flood),
        ("random delays", random_delays),
        ("tracing", tracing),
        ("large systems, and a storm", sizes),
    ];
    for (name, part) in parts {
        eprintln!("measuring {name} …");
        part(&mut table, scale);
    }
    table
}

fn bare_small(table: &mut Table, scale: Scale) {
    against_bare(table, 1_000, scale.pick(300, 100), 2 * scale.rounds() + 1);
}

fn bare_large(table: &mut Table, scale: Scale) {
    against_bare(table, scale.pick(1_000_000, 200_000), 1, scale.pick(5, 3) as usize);
}

/// The whole simulator, promises judged, against loops that only pass the messages.
fn against_bare(table: &mut Table, n: u32, times: u32, rounds: usize) {
    let (topology, plan, uids) = (ours::ring_of(n), ours::all_start(), ours::shuffled(n));
    let [ours, shipped, wheel, heap] = in_turns(
        rounds,
        [
            &mut || Sample::of_many(times, || ours::ring(&topology, &plan).messages.total),
            &mut || Sample::of_many(times, || ours::shipped_ring(&topology, &plan).messages.total),
            &mut || Sample::of_many(times, || bare::ring::<Wheel<_>>(&uids)),
            &mut || Sample::of_many(times, || bare::ring::<Heap<_>>(&uids)),
        ],
    );
    let name = format!("ring, n = {}", grouped(n));
    slower(table, &name, (&ours, "bare loop, our queue", &wheel), Some(Target::AtMost(2.0)));
    slower(table, &name, (&ours, "bare loop, BinaryHeap", &heap), None);
    let name = format!("{name}, the algorithm as shipped");
    slower(table, &name, (&shipped, "bare loop, our queue", &wheel), None);
}

/// A row in messages a second, its ratio how many times slower we are.
fn slower(
    table: &mut Table,
    name: &str,
    (ours, against, other): (&Rates, &str, &Rates),
    target: Option<Target>,
) {
    let (figure, baseline) = (ours.median() / 1e6, other.median() / 1e6);
    table.compare(name, (figure, MILLIONS), (against, baseline), other.over(ours), target);
}

fn others(table: &mut Table, scale: Scale) {
    for peer in PEERS {
        for n in [1_000, peer.n_large] {
            if scale.quick && n != 1_000 {
                continue;
            }
            if let Err(error) = against_peer(table, peer, n, scale) {
                table.leave_out(format!("{}: {error:#}", peer.name));
                break;
            }
        }
    }
    if cfg!(not(madsim)) {
        table.leave_out("madsim: needs `--cfg madsim`, as `cargo xtask bench` gives it");
    }
}

fn against_peer(table: &mut Table, peer: &Peer, n: u32, scale: Scale) -> anyhow::Result<()> {
    let (topology, plan, uids) = (ours::ring_of(n), ours::all_start(), ours::shuffled(n));
    let expected = ours::ring(&topology, &plan).messages.total;
    let first = (peer.run)(&uids)?;
    let passed = first.messages;
    anyhow::ensure!(passed == expected, "passes {passed} messages where we pass {expected}");
    // Enough of each to time well.
    let times = (1_000_000 / expected).max(1) as u32;
    let their_times = (30_000 / expected).max(1);
    let [ours, theirs] = in_turns(
        scale.rounds().min(5),
        [
            &mut || Sample::of_many(times, || ours::ring(&topology, &plan).messages.total),
            &mut || {
                let runs = (0..their_times).map(|_| (peer.run)(&uids).expect("it has just worked"));
                Sample::sum(runs)
            },
        ],
    );
    let (figure, baseline) = (ours.median() / 1e6, theirs.median() / 1e6);
    let name = format!("ring, n = {}", grouped(n));
    let target = Some(Target::AtLeast(20.0));
    table.compare(name, (figure, MILLIONS), (peer.name, baseline), ours.over(&theirs), target);
    Ok(())
}

/// What a process costs beyond the queue, and whether a step allocates once all is warm.
fn memory(table: &mut Table, scale: Scale) {
    let n = scale.pick(1_000_000, 200_000);
    let plan = ours::all_start();
    let (report, whole) = counted(|| ours::shipped_ring(&ours::ring_of(n), &plan));
    let beyond = whole.peak.saturating_sub(report.queue_bytes_max) as f64 / f64::from(n);
    let name = format!("memory beyond the queue, n = {}", grouped(n));
    let limit = 150.0;
    let within = Some(Target::AtMost(1.0));
    table.compare(name, (beyond, "bytes/process"), ("limit", limit), beyond / limit, within);
    // The same run cut off half-way has allocated all that the first half needs.
    let half = vez_sim::Plan { steps_max: report.steps / 2, ..plan.clone() };
    let topology = ours::ring_of(n);
    let run = |plan| counted(|| ours::cut_off(&topology, plan));
    let ((first, early), (all, late)) = (run(&half), run(&plan));
    let millions = (all.steps - first.steps) as f64 / 1e6;
    let calls = late.calls.saturating_sub(early.calls) as f64 / millions;
    let name = format!("allocations once warm, n = {}", grouped(n));
    table.compare(name, (calls, "/M steps"), ("limit", 1.0), calls, within);
}

fn flood(table: &mut Table, scale: Scale) {
    let n = scale.pick(3_000, 1_500);
    let [ours, wheel, heap, buckets] = in_turns(
        scale.pick(3, 1) as usize,
        [
            &mut || Sample::of(|| ours::flood(n).messages.total),
            &mut || Sample::of(|| bare::flood::<Wheel<_>>(n)),
            &mut || Sample::of(|| bare::flood::<Heap<_>>(n)),
            &mut || Sample::of(|| bare::flood::<Buckets<_>>(n)),
        ],
    );
    let name = format!("all ask all, n = {}", grouped(n));
    slower(table, &name, (&ours, "bare loop, our queue", &wheel), Some(Target::AtMost(2.0)));
    slower(table, &name, (&ours, "bare loop, BinaryHeap", &heap), Some(Target::AtMost(1.0)));
    slower(table, &name, (&ours, "bare loop, unordered lists", &buckets), None);
}

fn random_delays(table: &mut Table, scale: Scale) {
    for (n, times) in [(1_000, scale.pick(100, 50)), (100_000, 1)] {
        let topology = ours::ring_of(n);
        let plans = [
            ours::all_start(),
            ours::all_start_with_random_delays(true),
            ours::all_start_with_random_delays(false),
        ];
        let run = |plan| Sample::of_many(times, || ours::ring(&topology, plan).messages.total);
        let [fixed, ordered, unordered] = in_turns(
            scale.rounds().min(5),
            [&mut || run(&plans[0]), &mut || run(&plans[1]), &mut || run(&plans[2])],
        );
        for (how, rates) in [("in order", ordered), ("any order", unordered)] {
            let name = format!("ring, delays 1..20 ms, {how}, n = {}", grouped(n));
            slower(table, &name, (&rates, "the same, delays 1 ms", &fixed), None);
        }
    }
}

/// A run nobody watches is compiled without the watching; what it saves, for information.
fn tracing(table: &mut Table, scale: Scale) {
    let (topology, plan) = (ours::ring_of(1_000), ours::all_start());
    let [silent, watched, traced] = in_turns(
        2 * scale.rounds(),
        [
            &mut || Sample::of_many(50, || ours::ring(&topology, &plan).messages.total),
            &mut || Sample::of_many(50, || ours::ring_watched(&topology, &plan).messages.total),
            &mut || Sample::of(|| ours::ring_traced(&topology, &plan).messages.total),
        ],
    );
    let name = "ring, n = 1,000, nobody watching";
    slower(table, name, (&silent, "watched by Silent", &watched), Some(Target::AtMost(1.1)));
    slower(table, name, (&silent, "traced", &traced), None);
}

/// A number as people read it.
fn grouped(n: u32) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if 0 < index && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
