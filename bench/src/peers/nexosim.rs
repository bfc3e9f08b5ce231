//! nexosim: discrete-event simulation of asynchronous models wired by ports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::{EventSource, Output};
use nexosim::simulation::{Mailbox, SimInit};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};

use crate::measure::Sample;

const DELAY: Duration = Duration::from_millis(1);

pub(super) fn run(uids: &[u64]) -> anyhow::Result<Sample> {
    let sent = Arc::new(AtomicU64::new(0));
    // One thread: the hops of one instant are too short to be worth sharing out.
    let mut bench = SimInit::with_num_threads(1);
    let mut models: Vec<Candidate> = uids.iter().map(|&uid| Candidate::new(uid, &sent)).collect();
    let mailboxes: Vec<Mailbox<Candidate>> = uids.iter().map(|_| Mailbox::new()).collect();
    let mut start = EventSource::new();
    for (index, model) in models.iter_mut().enumerate() {
        model.next.connect(Candidate::send, &mailboxes[(index + 1) % mailboxes.len()]);
        start = start.connect(Candidate::start, &mailboxes[index]);
    }
    let start = start.register(&mut bench);
    for (model, mailbox) in models.into_iter().zip(mailboxes) {
        bench = bench.add_model(model, mailbox, "candidate");
    }
    let mut simulation = bench.init(MonotonicTime::EPOCH).map_err(said)?;
    let mut failed = None;
    let sample = Sample::of(|| {
        let run = simulation.process_event(&start, ()).and_then(|()| simulation.run());
        failed = run.err();
        sent.load(Relaxed)
    });
    failed.map_or(Ok(sample), |error| Err(said(error)))
}

/// Its errors cannot be shared between threads; their words can.
fn said(error: impl std::error::Error) -> anyhow::Error {
    anyhow::anyhow!("{error}")
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Message {
    Election(u64),
    Elected(u64),
}

#[derive(Serialize, Deserialize)]
struct Candidate {
    uid: u64,
    next: Output<Message>,
    #[serde(skip)]
    sent: Arc<AtomicU64>,
}

#[Model]
impl Candidate {
    fn new(uid: u64, sent: &Arc<AtomicU64>) -> Self {
        Self { uid, next: Output::default(), sent: Arc::clone(sent) }
    }

    /// The wire into this process: what enters it is heard a delay later.
    fn send(&mut self, message: Message, cx: &Context<Self>) {
        self.sent.fetch_add(1, Relaxed);
        let heard = cx.schedule_event(DELAY, schedulable!(Self::hear), message);
        heard.expect("the delay is positive");
    }

    async fn start(&mut self) {
        self.next.send(Message::Election(self.uid)).await;
    }

    #[nexosim(schedulable)]
    async fn hear(&mut self, message: Message) {
        match message {
            Message::Election(uid) if uid == self.uid => {
                self.next.send(Message::Elected(uid)).await;
            }
            Message::Election(uid) if uid < self.uid => (),
            Message::Elected(uid) if uid == self.uid => (),
            message => self.next.send(message).await,
        }
    }
}
