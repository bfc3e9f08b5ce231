//! The failure detectors, alone and inside a protocol.

mod common;

use common::{crash, ms, restart, system};
use serde::{Deserialize, Serialize};
use vez_algorithms::detect::{DetectorConfig, DetectorKind, Watch};
use vez_core::problem::ElectionRequest;
use vez_core::{
    Channel, Crashes, Ctx, Election, Layout, Meta, NodeId, Protocol, Time, Timing, Topology,
};
use vez_sim::{Delay, Input, Network, Plan, Trace, TraceEvent, What, watch};

const PEER: NodeId = NodeId(1);

fn detector(kind: DetectorKind) -> DetectorConfig {
    DetectorConfig { kind, ..DetectorConfig::default() }
}

/// After how many ticks without a word the peer is suspected.
fn ticks_to_suspect(watch: &mut Watch, config: &DetectorConfig) -> u64 {
    for tick in 1..1_000 {
        if watch.on_tick(config).suspected.contains(&PEER) {
            return tick;
        }
    }
    panic!("never suspected");
}

/// Lets the peer speak after each of these numbers of ticks.
fn hear(watch: &mut Watch, config: &DetectorConfig, silences: impl IntoIterator<Item = u64>) {
    for silence in silences {
        for _ in 0..silence {
            assert!(watch.on_tick(config).suspected.is_empty(), "suspected within {silence}");
        }
        assert!(!watch.on_heartbeat(PEER));
    }
}

#[test]
fn silence_is_suspicious_after_the_timeout_and_a_heartbeat_takes_it_back() {
    let config = detector(DetectorKind::Heartbeat);
    let mut watch = Watch::new([PEER], &config);
    // Ten whole ticks, and the part of one that the last heartbeat may have come in.
    assert_eq!(ticks_to_suspect(&mut watch, &config), 11);
    assert!(watch.is_suspected(PEER));
    assert_eq!(watch.trusted().count(), 0);
    assert_eq!(watch.on_tick(&config).suspected, [], "suspected once, not at every tick");
    assert!(watch.on_heartbeat(PEER), "news: it is trusted again");
    assert!(!watch.on_heartbeat(PEER), "no news");
    assert_eq!(watch.trusted().collect::<Vec<_>>(), [PEER]);
    assert_eq!(ticks_to_suspect(&mut watch, &config), 11);
}

#[test]
fn every_heartbeat_starts_the_silence_anew() {
    let config = detector(DetectorKind::Heartbeat);
    let mut watch = Watch::new([PEER], &config);
    hear(&mut watch, &config, [10, 10, 1, 10]);
    assert_eq!(ticks_to_suspect(&mut watch, &config), 11);
}

#[test]
fn heartbeats_are_due_at_once_and_then_every_period() {
    let config = detector(DetectorKind::Heartbeat);
    let mut watch = Watch::new([], &config);
    let beats: Vec<u64> = (0..12).filter(|_| watch.on_tick(&config).beat).collect();
    assert_eq!(beats, [0, 5, 10]);
}

#[test]
fn a_span_that_is_no_whole_number_of_ticks_is_rounded_up() {
    let timeout = Time::from_micros(2_001);
    let config = DetectorConfig { timeout, ..DetectorConfig::default() };
    assert_eq!(ticks_to_suspect(&mut Watch::new([PEER], &config), &config), 4);
}

#[test]
fn the_adaptive_detector_grows_more_patient_only_with_each_false_suspicion() {
    let config = detector(DetectorKind::Adaptive);
    let mut watch = Watch::new([PEER, NodeId(2)], &config);
    for expected in [11, 16, 21, 26] {
        let suspected = ticks_to_suspect(&mut watch, &config);
        assert_eq!(suspected, expected);
        assert!(watch.on_heartbeat(PEER));
        hear(&mut watch, &config, [5, 5]); // Being on time teaches it nothing.
    }
    assert_eq!(watch.silence(NodeId(2), &config).unwrap().1, 10, "each peer on its own");
}

#[test]
fn the_adaptive_detector_errs_finitely_often_where_delays_have_a_bound() {
    let config = detector(DetectorKind::Adaptive);
    let mut watch = Watch::new([PEER], &config);
    let mut mistakes = 0;
    for _ in 0..100 {
        (0..33).for_each(|_| drop(watch.on_tick(&config)));
        mistakes += u32::from(watch.on_heartbeat(PEER));
    }
    assert_eq!(mistakes, 5, "patience 10, 15, 20, 25, 30, and then 35 is enough");
}

#[test]
fn the_accrual_detector_learns_what_is_usual() {
    let config = detector(DetectorKind::PhiAccrual);
    let patience = |silences: &[u64]| {
        let mut watch = Watch::new([PEER], &config);
        hear(&mut watch, &config, [1].into_iter().chain(silences.iter().copied()));
        watch.silence(PEER, &config).unwrap().1
    };
    assert_eq!(patience(&[]), 10, "nothing learned: the timeout; nor from the silence before");
    assert_eq!(patience(&[5]), 10);
    // A mean of 5 and the smallest deviation that is believed: 5 + 5.613 ticks.
    assert_eq!(patience(&[5; 16]), 11);
    // The same mean, a deviation of 2: 5 + 11.226 ticks.
    assert_eq!(patience(&[3, 7, 3, 7, 3, 7]), 17);
    // What is long ago is forgotten.
    let long_ago: Vec<u64> = [3, 7].into_iter().chain([5; 16]).collect();
    assert_eq!(patience(&long_ago), 11);
}

#[test]
fn the_accrual_detector_bears_more_the_surer_it_must_be() {
    let patience = |threshold| {
        let config = DetectorConfig { threshold, ..detector(DetectorKind::PhiAccrual) };
        assert_eq!(config.validate(), Ok(()));
        let mut watch = Watch::new([PEER], &config);
        hear(&mut watch, &config, [1, 2, 8, 2, 8]);
        watch.silence(PEER, &config).unwrap().1
    };
    let all: Vec<u64> = (1..=12).map(patience).collect();
    assert_eq!(all, [9, 12, 15, 17, 18, 20, 21, 22, 23, 25, 26, 27]);
}

#[test]
fn a_false_suspicion_makes_the_accrual_detector_more_patient() {
    let config = detector(DetectorKind::PhiAccrual);
    let mut watch = Watch::new([PEER], &config);
    hear(&mut watch, &config, [5; 17]);
    assert_eq!(ticks_to_suspect(&mut watch, &config), 12);
    (0..1_000).for_each(|_| drop(watch.on_tick(&config))); // Not counted: states stay finite.
    assert!(watch.on_heartbeat(PEER));
    assert_eq!(watch.silence(PEER, &config), Some((0, 15)));
}

#[test]
fn senseless_settings_are_refused() {
    let refused = |change: fn(&mut DetectorConfig)| {
        let mut config = detector(DetectorKind::PhiAccrual);
        change(&mut config);
        config.validate().unwrap_err()
    };
    assert_eq!(refused(|c| c.tick = Time::ZERO), "detector.tick: expected more than 0");
    assert_eq!(refused(|c| c.period = Time::ZERO), "detector.period: expected more than 0");
    assert_eq!(refused(|c| c.timeout = Time::ZERO), "detector.timeout: expected more than 0");
    assert_eq!(refused(|c| c.threshold = 0), "detector.threshold: expected 1 to 12, found 0");
    assert_eq!(refused(|c| c.threshold = 13), "detector.threshold: expected 1 to 12, found 13");
    assert_eq!(refused(|c| c.window = 1), "detector.window: expected 2 or more, found 1");
    assert_eq!(DetectorConfig::default().validate(), Ok(()));
}

#[test]
fn settings_read_as_people_write_them() {
    let text = r#"{ "kind": "phi-accrual", "period": "2ms", "threshold": 3 }"#;
    let config: DetectorConfig = serde_json::from_str(text).unwrap();
    assert_eq!((config.kind, config.period), (DetectorKind::PhiAccrual, ms(2)));
    assert!(serde_json::from_str::<DetectorConfig>(r#"{ "perod": "2ms" }"#).is_err());
}

/// The smallest host: everyone watches everyone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Host {
    watch: Watch,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Message {
    Heartbeat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum Timer {
    Tick,
}

impl Protocol for Host {
    type Problem = Election;
    type Message = Message;
    type Timer = Timer;
    type Durable = ();
    type Config = DetectorConfig;

    const META: Meta = Meta {
        name: "host",
        title: "Host",
        source: "",
        layout: Layout::Complete,
        channel: Channel::Lossy,
        timing: Timing::Asynchronous,
        crashes: Crashes::Recover,
        restless: Some(Time::from_millis(200)),
        promises: &[],
        rules: "",
    };

    fn start(_saved: Option<()>, ctx: &mut Ctx<'_, Self>) -> Self {
        ctx.arm(Timer::Tick, ctx.config().tick);
        Self { watch: Watch::new(ctx.peers(), ctx.config()) }
    }

    fn on_request(&mut self, _request: ElectionRequest, _ctx: &mut Ctx<'_, Self>) {}

    fn on_message(&mut self, from: NodeId, _message: Message, _ctx: &mut Ctx<'_, Self>) {
        self.watch.on_heartbeat(from);
    }

    fn on_timer(&mut self, _timer: Timer, ctx: &mut Ctx<'_, Self>) {
        ctx.arm(Timer::Tick, ctx.config().tick);
        if self.watch.on_tick(ctx.config()).beat {
            ctx.broadcast(&Message::Heartbeat);
        }
    }
}

/// When the first process began and ceased to suspect the second.
fn suspicions(config: &DetectorConfig, plan: &Plan) -> Vec<(Time, bool)> {
    let topology = system::<Host>(2);
    let mut found: Vec<(Time, bool)> = Vec::new();
    for event in observed(&topology, config, plan) {
        let What::State { state, .. } = event.what else { continue };
        let suspected = state.to_string().contains("\"suspected\":true");
        if found.last().map_or(suspected, |&(_, before)| before != suspected) {
            found.push((event.at, suspected));
        }
    }
    found
}

/// What happened at the first process.
fn observed(topology: &Topology, config: &DetectorConfig, plan: &Plan) -> Vec<TraceEvent> {
    let (_, trace) = watch::<Host, _>(topology, config, plan, Trace::default());
    trace.events.into_iter().filter(|event| event.node == Some(topology.uid(NodeId(0)))).collect()
}

#[test]
fn a_heartbeat_exactly_at_the_deadline_is_in_time() {
    // Heartbeats leave at 1 ms, 6 ms, 11 ms, … and arrive at 2 ms, 7 ms, 12 ms: 5 ms apart.
    let until = Some(ms(40));
    let plan = Plan { until, ..Plan::default() };
    let patient = |timeout| DetectorConfig { timeout, ..DetectorConfig::default() };
    assert_eq!(suspicions(&patient(ms(5)), &plan), []);
    let hasty = suspicions(&patient(ms(4)), &plan);
    assert_eq!(hasty[..3], [(ms(6), true), (ms(7), false), (ms(11), true)]);
}

#[test]
fn a_crashed_peer_is_suspected_and_trusted_again_when_it_returns() {
    let topology = system::<Host>(2);
    let inputs = vec![crash(&topology, 2, 20), restart(&topology, 2, 60)];
    let plan = Plan { inputs, ..Plan::default() };
    for kind in [DetectorKind::Heartbeat, DetectorKind::Adaptive, DetectorKind::PhiAccrual] {
        let found = suspicions(&detector(kind), &plan);
        let [(suspected, true), (trusted, false)] = found[..] else { panic!("{kind:?} {found:?}") };
        assert!(ms(27) <= suspected && suspected <= ms(29), "{kind:?} {suspected}");
        assert_eq!(trusted, ms(62), "{kind:?}");
    }
}

#[test]
fn detectors_that_learn_stop_being_wrong_about_a_slow_link() {
    // Delays beyond the timeout's hopes: the plain detector errs to the end, the others learn.
    let delay = Delay::Uniform(ms(1), ms(15));
    let network = Network { delay, fifo: false, ..Network::default() };
    let plan = Plan { network, until: Some(ms(3_000)), seed: 1, ..Plan::default() };
    let last_mistake = |kind| {
        let found = suspicions(&detector(kind), &plan);
        found.iter().rev().find(|(_, suspected)| *suspected).map_or(Time::ZERO, |&(at, _)| at)
    };
    assert!(ms(2_800) < last_mistake(DetectorKind::Heartbeat));
    assert!(last_mistake(DetectorKind::Adaptive) < ms(1_500));
    assert!(last_mistake(DetectorKind::PhiAccrual) < ms(1_500));
}

#[test]
fn s37_a_crashed_and_a_slow_process_are_the_same_silence() {
    let topology = system::<Host>(3);
    let after = |input| {
        let plan = Plan { inputs: vec![(ms(20), input)], ..Plan::default() };
        observed(&topology, &DetectorConfig::default(), &plan)
    };
    let crashed = after(Input::Crash(PEER));
    let slow = after(Input::Pause(PEER, ms(1_000)));
    let cut = after(Input::Partition(vec![vec![PEER]]));
    assert!(crashed.iter().any(|event| format!("{:?}", event.what).contains("suspected")));
    // Message ids count what others send among themselves, which the observer does not see.
    let local = |events: Vec<TraceEvent>| -> Vec<_> {
        let hide_id = |mut event: TraceEvent| {
            if let What::Receive { id, .. } | What::Send { id, .. } = &mut event.what {
                *id = 0;
            }
            event
        };
        events.into_iter().map(hide_id).collect()
    };
    let crashed = local(crashed);
    assert_eq!(crashed, local(slow));
    assert_eq!(crashed, local(cut));
}
