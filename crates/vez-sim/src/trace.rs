//! The one trace: what happened, for people, JSON, pictures and the lab.

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::Value;
use vez_core::kind::kind_of;
use vez_core::{NodeId, Protocol, Time, Topology};

use crate::{Happening, LossCause, Observer, Picture, describe};

/// Writes down everything that happens.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub events: Vec<TraceEvent>,
    /// Each process's state as last written down.
    states: Vec<Option<Picture>>,
    /// Stop writing after this many events; the run goes on.
    events_max: Option<usize>,
    /// How many events were not written down.
    pub dropped: u64,
}

impl Trace {
    /// Writes down the first `events_max` events only.
    pub fn with_limit(events_max: usize) -> Self {
        Self { events_max: Some(events_max), ..Self::default() }
    }
}

/// One thing that happened, processes by uid.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceEvent {
    #[serde(rename = "t_ms", serialize_with = "as_millis")]
    pub at: Time,
    /// The process it happened at; `None` for what befalls the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    Boot,
    Request {
        request: Value,
        kind: &'static str,
        text: String,
    },
    Receive {
        from: u64,
        id: u64,
        kind: &'static str,
        text: String,
    },
    Timer {
        kind: &'static str,
        text: String,
    },
    /// The state after a step that changed it, and what changed.
    State {
        state: Value,
        changed: Vec<String>,
    },
    Send {
        to: u64,
        id: u64,
        kind: &'static str,
        text: String,
        message: Value,
    },
    Repeat {
        id: u64,
        copy: u64,
    },
    Lose {
        id: u64,
        cause: &'static str,
    },
    Arm {
        kind: &'static str,
        text: String,
        #[serde(rename = "until_ms", serialize_with = "as_millis")]
        until: Time,
    },
    Disarm {
        kind: &'static str,
        text: String,
    },
    Notice {
        notice: Value,
        kind: &'static str,
        text: String,
    },
    Unexpected {
        text: &'static str,
    },
    Crash,
    Restart {
        forgot: bool,
    },
    Pause {
        #[serde(rename = "until_ms", serialize_with = "as_millis")]
        until: Time,
    },
    Resume,
    Partition {
        groups: Vec<Vec<u64>>,
    },
    Cut {
        from: u64,
        to: u64,
        both: bool,
    },
    Heal {
        #[serde(skip_serializing_if = "Option::is_none")]
        link: Option<(u64, u64, bool)>,
    },
    Violation {
        promise: &'static str,
        detail: String,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn as_millis<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_millis_f64())
}

impl<P: Protocol> Observer<P> for Trace {
    fn on(&mut self, at: Time, topology: &Topology, happening: Happening<'_, P>) {
        if self.events_max.is_some_and(|max| max <= self.events.len()) {
            self.dropped += 1;
            return;
        }
        let (node, what) = match happening {
            Happening::Now { node, process } => match self.new_state(node, process, topology) {
                Some(what) => (Some(node), what),
                None => return,
            },
            other => written::<P>(other, topology),
        };
        let node = node.map(|node| topology.uid(node));
        self.events.push(TraceEvent { at, node, what });
    }
}

impl Trace {
    fn new_state(
        &mut self,
        node: NodeId,
        process: &impl Serialize,
        topology: &Topology,
    ) -> Option<What> {
        self.states.resize(topology.n() as usize, None);
        let known = &mut self.states[node.index()];
        let state = describe(process);
        let changed = state.changes(known.as_ref(), topology);
        if changed.is_empty() {
            return None;
        }
        // The first state is what every process boots with: no news.
        let changed = if known.is_none() { Vec::new() } else { changed };
        let what = What::State { state: state.json(topology), changed };
        *known = Some(state);
        Some(what)
    }
}

fn written<P: Protocol>(
    happening: Happening<'_, P>,
    topology: &Topology,
) -> (Option<NodeId>, What) {
    let uid = |node: NodeId| topology.uid(node);
    match happening {
        Happening::Booted { node } => (Some(node), What::Boot),
        Happening::Asked { node, request } => {
            let (kind, text, request) = told(request, topology);
            (Some(node), What::Request { request, kind, text })
        }
        Happening::Heard { node, from, id, message } => {
            let (kind, text, _) = told(message, topology);
            (Some(node), What::Receive { from: uid(from), id, kind, text })
        }
        Happening::Fired { node, timer } => {
            let (kind, text, _) = told(&timer, topology);
            (Some(node), What::Timer { kind, text })
        }
        Happening::Sent { node, to, id, message } => {
            let (kind, text, message) = told(message, topology);
            (Some(node), What::Send { to: uid(to), id, kind, text, message })
        }
        Happening::Armed { node, timer, until } => {
            let (kind, text, _) = told(&timer, topology);
            (Some(node), What::Arm { kind, text, until })
        }
        Happening::Disarmed { node, timer } => {
            let (kind, text, _) = told(&timer, topology);
            (Some(node), What::Disarm { kind, text })
        }
        Happening::Told { node, notice } => {
            let (kind, text, notice) = told(notice, topology);
            (Some(node), What::Notice { notice, kind, text })
        }
        Happening::Unexpected { node, what } => (Some(node), What::Unexpected { text: what }),
        other => fault::<P>(&other, topology),
    }
}

/// What the world does to processes and links.
fn fault<P: Protocol>(happening: &Happening<'_, P>, topology: &Topology) -> (Option<NodeId>, What) {
    let uid = |node: NodeId| topology.uid(node);
    match *happening {
        Happening::Repeated { id, copy } => (None, What::Repeat { id, copy }),
        Happening::Lost { id, cause } => {
            let cause = match cause {
                LossCause::Chance => "chance",
                LossCause::Cut => "cut",
                LossCause::ReceiverDown => "receiver-down",
            };
            (None, What::Lose { id, cause })
        }
        Happening::Crashed { node } => (Some(node), What::Crash),
        Happening::Restarted { node, forgot } => (Some(node), What::Restart { forgot }),
        Happening::Paused { node, until } => (Some(node), What::Pause { until }),
        Happening::Resumed { node } => (Some(node), What::Resume),
        Happening::Partitioned { groups } => {
            let group = |group: &Vec<NodeId>| group.iter().map(|&node| uid(node)).collect();
            (None, What::Partition { groups: groups.iter().map(group).collect() })
        }
        Happening::Cut { from, to, both } => {
            (None, What::Cut { from: uid(from), to: uid(to), both })
        }
        Happening::Healed { from, to, both } => {
            (None, What::Heal { link: Some((uid(from), uid(to), both)) })
        }
        Happening::HealedAll => (None, What::Heal { link: None }),
        Happening::Broken(breach) => {
            let (promise, detail) = (breach.promise.name(), breach.detail.clone());
            (None, What::Violation { promise, detail })
        }
        _ => unreachable!("`written` takes what happens in a step"),
    }
}

fn told<T: Serialize>(value: &T, topology: &Topology) -> (&'static str, String, Value) {
    let picture = describe(value);
    (kind_of(value).name, picture.text(topology), picture.json(topology))
}
