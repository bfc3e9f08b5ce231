//! `vez cluster`: many real processes on this machine.

use std::io::{BufRead as _, IsTerminal as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use vez_core::Time;
use vez_net::{Group, Member};

use super::summary::summary;
use super::system::parse_setting;
use super::{Outcome, output};
use crate::cluster::{self, Plan};
use crate::lab::{self, Limits, Live, Order};
use crate::registry::{self, Entry};
use crate::result::RunResult;
use crate::scenario::parse_uid;

/// Run an algorithm as real processes on this machine, break them, and judge what they did.
///
/// Every process is this program (vez node), and reaches the others through a proxy that can cut,
/// slow down and lose. Commands come from standard input, a line each; `help` lists them. A
/// script can wait for what it needs, and never has to guess:
///
///   vez cluster bully --nodes 5 <<'END'
///   elect 1
///   wait leader 5
///   kill 5
///   suspect 2 5
///   wait leader 4
///   END
///
/// With --lab a page shows it all live, and its menus do what the commands do; then the end of the
/// commands ends nothing, but Ctrl-C and `quit` do.
///
/// When the commands end, all processes are ended, and their traces are judged: exits 1 if a
/// promise was broken.
///
/// Defaults made for a simulated network, where a message takes 1 ms, are made longer in
/// proportion, so that the shortest wait is 40 ms; --set fixes a setting as it is.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Cluster {
    /// The name of an algorithm.
    algorithm: String,
    /// How many processes; their uids are 1 to N.
    #[arg(long, value_name = "N", conflicts_with = "ids", default_value_t = 5)]
    nodes: u64,
    /// The uids of the processes, in index (ring) order: 3,1,2.
    #[arg(long, value_name = "UID,…", value_delimiter = ',')]
    ids: Vec<String>,
    /// complete, ring, star, line or grid, or edges:1-4,4-8; by default the algorithm's.
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// A setting of the algorithm; `vez explain` lists them. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Where processes keep what must survive a crash; forgotten at the end if not said.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to leave the traces, for vez judge.
    #[arg(long, value_name = "DIR")]
    trace: Option<PathBuf>,
    /// Show it live on the lab's page, at the address that is printed.
    #[arg(long)]
    lab: bool,
    /// Where the page listens; port 0 takes any that is free.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:2382", requires = "lab")]
    listen: SocketAddr,
    /// What chance depends on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// What happens, as it happens, and the result.
    Text,
    /// The result, for scripts; what happens goes to standard error.
    Json,
}

/// The shortest wait that makes sense between processes that share a processor.
const SHORTEST: Time = Time::from_millis(40);
/// Instead of no pause at all: a real process that never pauses spins.
const PAUSE: &str = "5ms";
const PROCESSES_MAX: u64 = 100;

impl Cluster {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let entry = registry::find(&self.algorithm).map_err(anyhow::Error::msg)?;
        let group = self.group(&entry)?;
        let scratch = std::env::temp_dir().join(format!("vez-cluster-{}", std::process::id()));
        let plan = Plan {
            entry,
            group,
            traces: self.trace.clone().unwrap_or_else(|| scratch.join("traces")),
            data: self.data.clone().unwrap_or_else(|| scratch.join("data")),
            seed: self.seed,
            forgiving: std::io::stdin().is_terminal(),
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let outcome = runtime.block_on(self.perform(plan));
        // Nothing of it is wanted any more; what cannot be removed stays.
        let _ = std::fs::remove_dir_all(&scratch);
        outcome
    }

    async fn perform(&self, plan: Plan) -> anyhow::Result<Outcome> {
        let is_json = self.format == Format::Json;
        let mut say = |words: &str| {
            if is_json {
                eprintln!("{words}");
            } else if output::write(None, words).is_err() {
                // Whoever read it has read enough; the processes go on.
            }
        };
        let (said, mut orders) = mpsc::unbounded_channel();
        let page = match self.lab {
            true => Some(self.page(&plan, said.clone()).await?),
            false => None,
        };
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if said.send(Order { line, answer: None }).is_err() {
                    return;
                }
            }
        });
        let mut cluster = cluster::Cluster::start(plan, &mut say).await?;
        let obeyed = cluster.obey(&mut orders).await;
        drop(page);
        let judged = cluster.finish().await;
        obeyed?;
        let judged = judged?;
        for warning in &judged.warnings {
            eprintln!("vez: {warning}");
        }
        let text = match self.format {
            Format::Text => format!("\n{}", summary(&judged.resolved, &judged.report)),
            Format::Json => {
                serde_json::to_string_pretty(&RunResult::judged(&judged.resolved, &judged.report))?
            }
        };
        output::write(None, &text)?;
        Ok(if judged.report.claims_kept() { Outcome::Kept } else { Outcome::Broken })
    }

    /// Serves the page, until what is returned is dropped.
    async fn page(
        &self,
        plan: &Plan,
        orders: mpsc::UnboundedSender<Order>,
    ) -> anyhow::Result<JoinSet<()>> {
        let live = Live::new(plan.entry, plan.group.clone(), &plan.traces, orders)?;
        let listener = TcpListener::bind(self.listen)
            .await
            .with_context(|| format!("cannot listen on {}", self.listen))?;
        let address = format!("http://{}/", listener.local_addr()?);
        if self.format == Format::Json {
            eprintln!("{address}");
        } else {
            output::write(None, &address)?;
        }
        let mut page = JoinSet::new();
        page.spawn(async {
            if let Err(error) = lab::show(listener, Limits::default(), live).await {
                eprintln!("vez: the page broke off: {error}");
            }
        });
        Ok(page)
    }

    fn group(&self, entry: &Entry) -> anyhow::Result<Group> {
        anyhow::ensure!(
            (1..=PROCESSES_MAX).contains(&self.nodes),
            "--nodes {}: expected 1 to {PROCESSES_MAX}",
            self.nodes
        );
        let listed: Result<Vec<u64>, String> = self.ids.iter().map(|id| parse_uid(id)).collect();
        let mut ids = listed.map_err(|why| anyhow::anyhow!("--ids: {why}"))?;
        if ids.is_empty() {
            ids = (1..=self.nodes).collect();
        }
        let member = |id| Member {
            id,
            address: "127.0.0.1:0".to_owned(),
            reach: None,
            merit: None,
            weight: None,
            left: false,
        };
        let (topology, edges) = match self.topology.as_deref() {
            Some(text) if text.starts_with("edges:") => (None, edges(&text["edges:".len()..])?),
            shape => (shape.map(str::to_owned), Vec::new()),
        };
        let mut config = toml::Table::new();
        for setting in &self.set {
            let (key, value) = parse_setting(setting)?;
            config.insert(key, value.value);
        }
        slow_down(&mut config, entry);
        let members = ids.into_iter().map(member).collect();
        let group = Group { name: "vez".to_owned(), epoch: 0, topology, edges, config, members };
        let group = Group::read(&toml::to_string(&group)?)?;
        (entry.check_config)(&group.config).map_err(|why| anyhow::anyhow!("--set: {why}"))?;
        let topology = group.topology(entry.meta.layout)?;
        (entry.validate)(&group.config, &topology).map_err(anyhow::Error::msg)?;
        Ok(group)
    }
}

fn edges(text: &str) -> anyhow::Result<Vec<(u64, u64)>> {
    let edge = |edge: &str| {
        let ends = edge.split_once('-');
        let ends = ends.and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
        ends.ok_or_else(|| anyhow::anyhow!("--topology: `{edge}` is no link; expected 1-4"))
    };
    text.split(',').map(edge).collect()
}

/// Makes the defaults that are times longer, in proportion, unless they are long already.
fn slow_down(config: &mut toml::Table, entry: &Entry) {
    let defaults = (entry.settings)();
    let mut spans = Vec::new();
    defaults.values().for_each(|value| times(value, &mut spans));
    let shortest = spans.into_iter().filter(|&span| Time::ZERO < span).min();
    let factor = shortest.map_or(1, |span| SHORTEST.as_micros().div_ceil(span.as_micros()));
    for (key, value) in defaults {
        let slower = longer(&value, factor);
        if slower != value
            && !config.contains_key(&key)
            && let Ok(slower) = toml::Value::try_from(slower)
        {
            config.insert(key, slower);
        }
    }
}

fn times(value: &Value, found: &mut Vec<Time>) {
    match value {
        Value::String(text) => found.extend(text.parse::<Time>().ok()),
        Value::Object(parts) => parts.values().for_each(|part| times(part, found)),
        _ => (),
    }
}

fn longer(value: &Value, factor: u64) -> Value {
    match value {
        Value::String(text) => match text.parse::<Time>() {
            Ok(Time::ZERO) => PAUSE.into(),
            Ok(span) => (span * factor).to_string().into(),
            Err(_) => value.clone(),
        },
        Value::Object(parts) => {
            let part = |(name, part): (&String, &Value)| (name.clone(), longer(part, factor));
            let some = parts.iter().filter(|(_, part)| !part.is_null());
            Value::Object(some.map(part).collect())
        }
        _ => value.clone(),
    }
}
