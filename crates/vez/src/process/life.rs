//! A process from start to end: one life after the other, each in the group as it then is.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use vez_core::{Crashes, Wish};
use vez_net::{Group, Node, NodeError, Order, Record, Settings, Tls, TlsFiles, Told};

use super::console::{Console, HELP, Said, understand};
use super::hooks::{HookCommands, Hooks};
use super::read_group;
use crate::registry::Entry;

/// How one process is run.
pub(crate) struct Process {
    pub(crate) entry: Entry,
    pub(crate) id: u64,
    pub(crate) cluster: PathBuf,
    pub(crate) data: Option<PathBuf>,
    pub(crate) trace: Option<PathBuf>,
    pub(crate) control: Option<PathBuf>,
    pub(crate) hooks: HookCommands,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) insecure: bool,
    pub(crate) seed: u64,
    /// Whether to end when standard input does.
    pub(crate) until_eof: bool,
}

/// How a life ended.
enum End {
    Over,
    /// The next is lived in this group.
    Next(Group),
}

struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

/// A life under way.
struct Life {
    orders: mpsc::Sender<Order>,
    told: mpsc::UnboundedReceiver<Told>,
    task: JoinHandle<Result<(), NodeError>>,
}

impl Process {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut group = read_group(&self.cluster, &self.entry)?;
        group.node(self.id)?;
        if self.data.is_none() && self.entry.meta.crashes == Crashes::Recover {
            eprintln!("vez: without --data this process forgets what must survive a crash");
        }
        let mut signals = Signals {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        };
        let mut console = Console::open(self.control.as_deref())?;
        let mut hooks = Hooks::new(self.hooks.clone(), self.id);
        loop {
            let ended = self.live(&group, &mut console, &mut hooks, &mut signals).await;
            hooks.end_all();
            match ended? {
                End::Over => break,
                End::Next(next) => group = next,
            }
        }
        console.tell(&json!({ "event": "ended", "node": self.id }));
        Ok(())
    }

    async fn begin(&self, group: &Group) -> anyhow::Result<Life> {
        let topology = Arc::new(group.topology(self.entry.meta.layout)?);
        let me = group.node(self.id)?;
        let tls = self.tls.as_ref().map(Tls::load).transpose()?;
        let record = self.trace.as_deref().map(record).transpose()?;
        let machine = (self.entry.process)(me, topology, &group.config, self.seed);
        let settings = Settings {
            group: group.clone(),
            id: self.id,
            data: self.data.clone(),
            record,
            tls,
            insecure: self.insecure,
            seed: self.seed,
        };
        let node = Node::open(machine, settings).await?;
        let (orders, taken) = mpsc::channel(64);
        let (say, told) = mpsc::unbounded_channel();
        Ok(Life { orders, told, task: tokio::spawn(node.run(taken, say)) })
    }

    async fn live(
        &self,
        group: &Group,
        console: &mut Console,
        hooks: &mut Hooks,
        signals: &mut Signals,
    ) -> anyhow::Result<End> {
        let mut life = self.begin(group).await?;
        let mut is_typing = true;
        let end = loop {
            let said = tokio::select! {
                Some(told) = life.told.recv() => {
                    self.pass_on(told, &life, console, hooks, group).await;
                    continue;
                }
                ended = &mut life.task => {
                    while let Ok(told) = life.told.try_recv() {
                        self.pass_on(told, &life, console, hooks, group).await;
                    }
                    return Ok(ended.context("the driver broke")?.map(|()| End::Over)?);
                }
                typed = console.next(), if is_typing => match typed {
                    None if self.until_eof => Ok(Some(Said::Quit)),
                    None => {
                        is_typing = self.control.is_some();
                        continue;
                    }
                    Some(typed) => understand(&typed, group),
                },
                () = hooks.left() => Ok(Some(Said::Order(Order::Wish(Wish::Release)))),
                _ = signals.hangup.recv() => Ok(Some(Said::Reload)),
                _ = signals.terminate.recv() => Ok(Some(Said::Quit)),
                _ = signals.interrupt.recv() => Ok(Some(Said::Quit)),
            };
            match said {
                Ok(None) => (),
                Err(why) => console.tell(&self.event("refused", &json!({ "why": why }))),
                Ok(Some(Said::Help)) => {
                    console.tell(&self.event("help", &json!({ "commands": HELP })));
                }
                Ok(Some(Said::Quit)) => break End::Over,
                Ok(Some(Said::Reload)) => {
                    if let Some(next) = self.reload(group, console) {
                        break next;
                    }
                }
                Ok(Some(Said::Order(Order::Visit(_)))) if hooks.hold() => {
                    let why = "with --on-enter it stays inside while the command runs";
                    console.tell(&self.event("refused", &json!({ "why": why })));
                }
                // A life that is over says so by itself.
                Ok(Some(Said::Order(order))) => {
                    let _ = life.orders.send(order).await;
                }
            }
        };
        // It may have ended by itself.
        let _ = life.orders.send(Order::Stop).await;
        while let Some(told) = life.told.recv().await {
            console.tell(&self.told(&told, group));
        }
        life.task.await.context("the driver broke")??;
        Ok(end)
    }

    /// The group to live in next, if it may take this one's place.
    fn reload(&self, group: &Group, console: &Console) -> Option<End> {
        let found = read_group(&self.cluster, &self.entry)
            .and_then(|next| Ok(next.may_replace(group).map(|()| next)?));
        match found {
            Ok(next) if next == *group => {
                console.tell(&self.event("reloaded", &json!({ "changed": false })));
                None
            }
            Ok(next) => {
                let mine = next.members.iter().find(|member| member.id == self.id);
                let epoch = next.epoch;
                console.tell(&self.event("reloaded", &json!({ "changed": true, "epoch": epoch })));
                Some(if mine.is_none_or(|mine| mine.left) { End::Over } else { End::Next(next) })
            }
            Err(error) => {
                let why = format!("{error:#}");
                console.tell(&self.event("refused", &json!({ "why": why })));
                None
            }
        }
    }

    async fn pass_on(
        &self,
        told: Told,
        life: &Life,
        console: &Console,
        hooks: &mut Hooks,
        group: &Group,
    ) {
        console.tell(&self.told(&told, group));
        if let Told::Notice { kind, value, .. } = &told
            && let Err(error) = hooks.hear(kind, value)
        {
            let text = format!("cannot run the command: {error}");
            console.tell(&self.event("warning", &json!({ "text": text })));
            if *kind == "Entered" {
                let _ = life.orders.send(Order::Wish(Wish::Release)).await;
            }
        }
    }

    fn event(&self, event: &str, rest: &Value) -> Value {
        let mut whole = json!({ "event": event, "node": self.id });
        if let (Some(whole), Some(rest)) = (whole.as_object_mut(), rest.as_object()) {
            whole.extend(rest.clone());
        }
        whole
    }

    fn told(&self, told: &Told, group: &Group) -> Value {
        match told {
            Told::Ready { address, life, again } => {
                let epoch = group.epoch;
                let rest =
                    json!({ "address": address, "life": life, "again": again, "epoch": epoch });
                self.event("ready", &rest)
            }
            Told::Notice { kind, text, value } => {
                self.event("notice", &json!({ "kind": kind, "text": text, "notice": value }))
            }
            Told::Asked(wish) => self.event("asked", &json!({ "wish": asked(*wish, group) })),
            Told::Refused(why) => self.event("refused", &json!({ "why": why })),
            Told::Unexpected(text) => self.event("unexpected", &json!({ "text": text })),
            Told::Warning(text) => self.event("warning", &json!({ "text": text })),
            Told::Counted(counts) => {
                let counts: serde_json::Map<String, Value> =
                    counts.iter().map(|&(name, count)| (name.to_owned(), count.into())).collect();
                self.event("counted", &json!({ "counts": counts }))
            }
        }
    }
}

fn asked(wish: Wish, group: &Group) -> String {
    match wish {
        Wish::Start => "start".to_owned(),
        Wish::Suspect(node) => format!("suspect {}", group.member(node).id),
        Wish::Acquire => "acquire".to_owned(),
        Wish::Release => "release".to_owned(),
        Wish::Withdraw => "withdraw".to_owned(),
    }
}

/// Goes on where the last life stopped; after half a line, on a new one.
fn record(path: &Path) -> anyhow::Result<Record> {
    let failed = || format!("cannot write {}", path.display());
    let mut file: File =
        OpenOptions::new().create(true).read(true).append(true).open(path).with_context(failed)?;
    if file.metadata().with_context(failed)?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1)).with_context(failed)?;
        file.read_exact(&mut last).with_context(failed)?;
        if last != *b"\n" {
            file.write_all(b"\n").with_context(failed)?;
        }
    }
    Ok(Record::new(file))
}

/// At this moment, or never if there is none.
pub(crate) async fn now_or_ever(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
