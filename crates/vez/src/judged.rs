//! What real processes wrote down, read, merged and judged.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::json;
use vez_core::Time;
use vez_net::{Group, Line, Log, LogError};
use vez_sim::{Plan, Report, TraceEvent};

use crate::registry;
use crate::scenario::Resolved;

/// The verdict on a run of real processes.
pub struct Judged {
    pub resolved: Resolved,
    pub report: Report,
    pub events: Vec<TraceEvent>,
    /// What is odd about the traces.
    pub warnings: Vec<String>,
}

/// Judges these traces: files, or directories of them. Those in `crashed` are known to be dead.
pub fn judge(
    paths: &[PathBuf],
    algorithm: Option<&str>,
    crashed: &[u64],
) -> anyhow::Result<Judged> {
    let mut whole = Log::default();
    for path in files(paths)? {
        let bytes = fs::read(&path).map_err(|error| LogError::File(path.clone(), error))?;
        let log = Log::read(&path.display().to_string(), &bytes)?;
        whole.headers.extend(log.headers);
        whole.lines.extend(log.lines);
        whole.warnings.extend(log.warnings);
    }
    let Some(header) = whole.headers.iter().max_by_key(|header| header.group.epoch) else {
        bail!("no trace says what ran: expected a line with \"event\": \"header\"");
    };
    let name = algorithm.unwrap_or(&header.algorithm).to_owned();
    if let Some(other) = whole.headers.iter().find(|header| header.algorithm != name) {
        let (node, other) = (other.node, &other.algorithm);
        bail!("these are traces of different runs: {node} ran {other}; expected {name}");
    }
    let resolved = resolved(&name, &header.group)?;
    let ids: Vec<u64> = header.group.members.iter().map(|member| member.id).collect();
    let last = whole.lines.iter().map(|line| line.at).max().unwrap_or_default();
    for &node in crashed {
        header.group.node(node).context("--crashed")?;
        let event = json!({ "event": "crash" });
        whole.lines.push(Line { at: last, node: Some(node), life: None, clock: vec![], event });
    }
    let merged = vez_net::merge(whole.lines, &ids);
    if merged.contradictions > 0 {
        let times = merged.contradictions;
        whole.warnings.push(format!(
            "{times} × no order agrees with what the processes knew; the time of day decided"
        ));
    }
    let judged = (resolved.entry.judge)(&resolved.topology, &resolved.config, &merged.lines);
    let (report, events) = judged.map_err(anyhow::Error::msg)?;
    Ok(Judged { resolved, report, events, warnings: whole.warnings })
}

fn resolved(algorithm: &str, group: &Group) -> anyhow::Result<Resolved> {
    let entry = registry::find(algorithm).map_err(anyhow::Error::msg)?;
    let topology = group.topology(entry.meta.layout)?;
    (entry.check_config)(&group.config).map_err(anyhow::Error::msg).context("config")?;
    let plan = Plan { until: Some(Time::ZERO), ..Plan::default() };
    Ok(Resolved { entry, topology, config: group.config.clone(), plan })
}

/// The files named, and those in the directories named, in order.
fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = || format!("cannot read {}", path.display());
        let mut found = Vec::new();
        for entry in fs::read_dir(path).with_context(failed)? {
            let file = entry.with_context(failed)?.path();
            if is_trace(&file) {
                found.push(file);
            }
        }
        if found.is_empty() {
            bail!("{}: no traces in it; expected files *.jsonl", path.display());
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

fn is_trace(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}
