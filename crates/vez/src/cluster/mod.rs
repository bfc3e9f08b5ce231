//! Many processes on one machine, with faults between them, and a court at the end.

mod child;
mod script;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::Signal;
use tokio::signal::unix;
use tokio::sync::mpsc;
use tokio::time::Instant;
use vez_core::{Channel, Time};
use vez_net::{Fault, Group, Proxy, now_line};
use vez_sim::What;

use crate::judged::{self, Judged};
use crate::lab::Order;
use crate::process::now_or_ever;
use crate::registry::Entry;
use child::{News, Running, Start, Tidings};
use script::{Condition, Deed, Direction, HELP};
use view::{State, View};

/// What a cluster is made of.
pub struct Plan {
    pub entry: Entry,
    /// Members at `127.0.0.1:0`: where they are is found out.
    pub group: Group,
    /// Where traces go, and where processes keep what must survive.
    pub traces: PathBuf,
    pub data: PathBuf,
    pub seed: u64,
    /// Whether a line that fails is only complained about, for somebody is typing.
    pub forgiving: bool,
}

/// Prints what happens.
pub type Say<'a> = &'a mut dyn FnMut(&str);

pub struct Cluster<'a> {
    plan: Plan,
    ids: Vec<u64>,
    proxy: Proxy,
    view: View,
    running: BTreeMap<u64, Running>,
    runs: u64,
    stopped: BTreeSet<u64>,
    interrupts: Interrupts,
    news: mpsc::UnboundedReceiver<News>,
    sender: mpsc::UnboundedSender<News>,
    faults: File,
    since: Instant,
    say: Say<'a>,
}

/// Whoever is at the keyboard, or at the machine, wants it to end.
struct Interrupts {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

#[derive(Debug)]
struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl Interrupts {
    fn new() -> std::io::Result<Self> {
        let interrupt = unix::signal(unix::SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: unix::signal(unix::SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }
}

const READY_WITHIN: Duration = Duration::from_mins(1);

impl<'a> Cluster<'a> {
    /// Starts all processes, and waits until they are up.
    pub async fn start(plan: Plan, say: Say<'a>) -> anyhow::Result<Self> {
        let ids: Vec<u64> = plan.group.members.iter().map(|member| member.id).collect();
        let is_lossy = plan.entry.meta.channel == Channel::Lossy;
        let proxy = Proxy::open(&ids, is_lossy, plan.seed).await.context("the fault proxy")?;
        for directory in [&plan.traces, &plan.data] {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
        }
        let path = plan.traces.join("cluster.jsonl");
        let faults = File::options().create(true).append(true).open(&path);
        let faults = faults.with_context(|| format!("cannot write {}", path.display()))?;
        let (sender, news) = mpsc::unbounded_channel();
        let mut cluster = Self {
            view: View::new(&ids),
            proxy,
            running: BTreeMap::new(),
            runs: 0,
            stopped: BTreeSet::new(),
            interrupts: Interrupts::new()?,
            news,
            sender,
            faults,
            since: Instant::now(),
            say,
            ids,
            plan,
        };
        for id in cluster.ids.clone() {
            cluster.launch(id)?;
        }
        cluster.wait(Condition::Ready(None), READY_WITHIN).await?;
        Ok(cluster)
    }

    /// Obeys every line, to the last or to `quit`.
    pub async fn obey(
        &mut self,
        orders: &mut mpsc::UnboundedReceiver<Order>,
    ) -> anyhow::Result<()> {
        let mut number = 0;
        loop {
            let order = tokio::select! {
                order = orders.recv() => order,
                Some(news) = self.news.recv() => {
                    self.hear(news).await?;
                    continue;
                }
                () = self.interrupts.next() => None,
            };
            let Some(Order { line, answer }) = order else { return Ok(()) };
            number += u64::from(answer.is_none());
            let deed = script::understand(&line).map_err(anyhow::Error::msg);
            let done = match deed {
                Ok(None) => Ok(()),
                Ok(Some(Deed::Quit | Deed::Wait(..) | Deed::Sleep(_))) if answer.is_some() => {
                    Err(anyhow::anyhow!("`{}` is for the console", line.trim()))
                }
                Ok(Some(Deed::Quit)) => return Ok(()),
                Ok(Some(deed)) => self.perform(deed).await,
                Err(error) => Err(error),
            };
            match (done, answer) {
                (Err(error), _) if error.is::<Interrupted>() => return Ok(()),
                (done, Some(answer)) => {
                    // Who asked may not wait for it any more.
                    let _ = answer.send(done.map_err(|error| format!("{error:#}")));
                }
                (Err(error), None) if self.plan.forgiving => self.tell(&format!("{error:#}")),
                (Err(error), None) => {
                    return Err(error.context(format!("line {number}: {}", line.trim())));
                }
                (Ok(()), None) => (),
            }
        }
    }

    /// Ends all processes at one moment, and judges what they did.
    pub async fn finish(mut self) -> anyhow::Result<Judged> {
        // None sees another die.
        for running in self.running.values() {
            running.signal(Signal::STOP);
        }
        for running in self.running.values_mut() {
            running.signal(Signal::KILL);
            running.end().await?;
        }
        judged::judge(std::slice::from_ref(&self.plan.traces), None, &[])
    }

    fn tell(&mut self, words: &str) {
        let moment = self.since.elapsed().as_millis();
        (self.say)(&format!("{moment:>7} ms  {words}"));
    }

    /// Starts a process, with a file of its own that says how it reaches the others.
    fn launch(&mut self, id: u64) -> anyhow::Result<()> {
        let mut group = self.plan.group.clone();
        for member in &mut group.members {
            member.reach = self.proxy.address(id, member.id).map(|way| way.to_string());
        }
        let cluster = self.plan.data.join(format!("{id}.toml"));
        fs::write(&cluster, toml::to_string(&group)?)
            .with_context(|| format!("cannot write {}", cluster.display()))?;
        self.runs += 1;
        let start = Start {
            algorithm: self.plan.entry.meta.name,
            id,
            run: self.runs,
            cluster: &cluster,
            data: &self.plan.data.join(id.to_string()),
            trace: &self.plan.traces.join(format!("{id}.jsonl")),
            seed: self.plan.seed.wrapping_mul(1_000).wrapping_add(id),
        };
        let running = start.go(&self.sender).with_context(|| format!("cannot start P{id}"))?;
        self.running.insert(id, running);
        self.view.set(id, State::Starting);
        Ok(())
    }

    async fn hear(&mut self, news: News) -> anyhow::Result<()> {
        let News { id, run, what } = news;
        if self.running.get(&id).is_none_or(|running| running.run != run) {
            return Ok(());
        }
        match what {
            Tidings::Event(event) => {
                if event["event"] == "ready"
                    && let Some(address) = event["address"].as_str().and_then(|a| a.parse().ok())
                {
                    self.proxy.found(id, Some(address));
                }
                if let Some(words) = self.view.hear(id, &event) {
                    self.tell(&words);
                }
            }
            Tidings::Remark(words) => self.tell(&format!("P{id}: {words}")),
            Tidings::Silent => {
                let status = self.bury(id).await?;
                self.tell(&format!("P{id} ended by itself ({status})"));
            }
        }
        Ok(())
    }

    /// A process that is dead, or about to be: it is down from now on.
    async fn bury(&mut self, id: u64) -> anyhow::Result<String> {
        let Some(mut running) = self.running.remove(&id) else { bail!("P{id} is not running") };
        let status = running.end().await?;
        self.stopped.remove(&id);
        self.proxy.found(id, None);
        self.view.set(id, State::Down);
        self.note(Some(id), What::Crash)?;
        Ok(status.to_string())
    }

    fn note(&mut self, node: Option<u64>, what: What) -> anyhow::Result<()> {
        let line = now_line(node, what);
        writeln!(self.faults, "{line}").context("the trace of faults")
    }

    /// How long it will be shows when it is over.
    fn note_pause(&mut self, id: u64) -> anyhow::Result<()> {
        let mut event: serde_json::Value =
            serde_json::from_str(&now_line(Some(id), What::Pause { until: Time::ZERO }))?;
        event.as_object_mut().and_then(|event| event.remove("until_ms"));
        writeln!(self.faults, "{event}").context("the trace of faults")
    }

    fn process(&mut self, id: u64) -> anyhow::Result<&mut Running> {
        let known = &self.ids;
        if !known.contains(&id) {
            bail!("no process has the uid {id}; expected one of {known:?}");
        }
        self.running.get_mut(&id).with_context(|| format!("P{id} is down"))
    }

    async fn perform(&mut self, deed: Deed) -> anyhow::Result<()> {
        match deed {
            Deed::Kill(id) => {
                self.process(id)?.signal(Signal::KILL);
                self.bury(id).await?;
                self.tell(&format!("P{id} is killed"));
            }
            Deed::Stop(id) => {
                self.process(id)?.signal(Signal::STOP);
                if !self.stopped.insert(id) {
                    bail!("P{id} is stopped");
                }
                self.note_pause(id)?;
                self.view.set(id, State::Stopped);
                self.tell(&format!("P{id} is stopped"));
            }
            Deed::Continue(id) => {
                self.process(id)?.signal(Signal::CONT);
                if !self.stopped.remove(&id) {
                    bail!("P{id} is not stopped");
                }
                self.note(Some(id), What::Resume)?;
                self.view.set(id, State::Up);
                self.tell(&format!("P{id} goes on"));
            }
            Deed::Start(id) => {
                if self.process(id).is_ok() {
                    bail!("P{id} is running");
                }
                if !self.ids.contains(&id) {
                    bail!("no process has the uid {id}; expected one of {:?}", self.ids);
                }
                self.launch(id)?;
                self.wait(Condition::Ready(Some(id)), READY_WITHIN).await?;
            }
            Deed::Tell(who, line) => self.pass_on(who, &line).await?,
            Deed::Wait(condition, within) => self.wait(condition, within).await?,
            Deed::Sleep(span) => {
                let until = Instant::now() + span;
                self.listen_until(|_| false, Some(until)).await?;
            }
            Deed::Say(words) => self.tell(&words),
            Deed::Status => (self.say)(self.view.status().trim_end()),
            Deed::Help => (self.say)(HELP),
            Deed::Judge => self.judge_so_far()?,
            Deed::Quit => (),
            other => self.weather(other)?,
        }
        Ok(())
    }

    async fn pass_on(&mut self, who: Option<u64>, line: &str) -> anyhow::Result<()> {
        let whom = line.strip_prefix("suspect ").and_then(|whom| whom.parse().ok());
        if let Some(whom) = whom.filter(|whom| !self.ids.contains(whom)) {
            bail!("no process has the uid {whom}; expected one of {:?}", self.ids);
        }
        let whom = who.map_or_else(|| self.running.keys().copied().collect(), |id| vec![id]);
        for id in whom {
            if line.starts_with("acquire") {
                self.view.asked(id);
            }
            let running = self.process(id)?;
            running.say(line).await.with_context(|| format!("P{id} does not listen"))?;
        }
        Ok(())
    }

    fn judge_so_far(&mut self) -> anyhow::Result<()> {
        let judged = judged::judge(std::slice::from_ref(&self.plan.traces), None, &[])?;
        for verdict in &judged.report.promises {
            let mark = if verdict.kept { "kept" } else { "BROKEN" };
            let detail = verdict.detail.as_ref().map_or(String::new(), |text| format!(": {text}"));
            (self.say)(&format!("  {mark:<6} {}{detail}", verdict.promise.name()));
        }
        Ok(())
    }

    /// What is done to links.
    fn weather(&mut self, deed: Deed) -> anyhow::Result<()> {
        match deed {
            Deed::Cut(link) => {
                self.change(Some(link), |fault| fault.cut = true)?;
                let Direction { from, to, both } = link;
                self.note(None, What::Cut { from, to, both })?;
            }
            Deed::Heal(link) => {
                self.change(link, |fault| fault.cut = false)?;
                let link = link.map(|Direction { from, to, both }| (from, to, both));
                self.note(None, What::Heal { link })?;
            }
            Deed::Partition(groups) => {
                let known: BTreeSet<u64> = groups.iter().flatten().copied().collect();
                if let Some(id) = known.iter().find(|id| !self.ids.contains(id)) {
                    bail!("no process has the uid {id}; expected one of {:?}", self.ids);
                }
                // Who is not named is alone.
                let side = |id: u64| groups.iter().position(|group| group.contains(&id));
                self.proxy.change_all(|from, to, fault| {
                    fault.cut = side(from).is_none() || side(from) != side(to);
                });
                self.note(None, What::Partition { groups })?;
            }
            Deed::Delay(least, most, link) => {
                self.change(link, |fault| fault.delay = least..=most)?;
            }
            Deed::Loss(loss, link) => self.change(link, |fault| fault.loss = loss)?,
            _ => (),
        }
        Ok(())
    }

    fn change(
        &mut self,
        link: Option<Direction>,
        change: impl Fn(&mut Fault),
    ) -> anyhow::Result<()> {
        let Some(Direction { from, to, both }) = link else {
            self.proxy.change_all(|_, _, fault| change(fault));
            return Ok(());
        };
        let mut found = self.proxy.change(from, to, &change);
        if both {
            found &= self.proxy.change(to, from, &change);
        }
        if found { Ok(()) } else { bail!("there is no link {from}-{to}") }
    }

    async fn wait(&mut self, condition: Condition, within: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + within;
        if self.listen_until(|view| view.holds(&condition), Some(until)).await? {
            return Ok(());
        }
        let status = self.view.status();
        bail!("{condition:?} did not come about within {within:?}:\n{}", status.trim_end())
    }

    /// Listens until it is so, or until the moment has come. Whether it is so.
    async fn listen_until(
        &mut self,
        is_so: impl Fn(&View) -> bool,
        until: Option<Instant>,
    ) -> anyhow::Result<bool> {
        while !is_so(&self.view) {
            tokio::select! {
                Some(news) = self.news.recv() => self.hear(news).await?,
                () = now_or_ever(until) => return Ok(false),
                () = self.interrupts.next() => bail!(Interrupted),
            }
        }
        Ok(true)
    }
}
