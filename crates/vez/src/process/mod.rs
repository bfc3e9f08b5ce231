//! One process of an algorithm, as the operating system runs it: its user at a console, its
//! hooks, and one life after the other.

mod console;
mod hooks;
mod life;

use std::path::Path;

use anyhow::{Context as _, anyhow};
use vez_net::Group;

use crate::registry::Entry;

pub(crate) use hooks::HookCommands;
pub(crate) use life::{Process, now_or_ever};

/// Reads who takes part, and whether the algorithm can run there. Complaints name file and line.
pub fn read_group(path: &Path, entry: &Entry) -> anyhow::Result<Group> {
    let file = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
    let group = Group::read(&text).map_err(|error| anyhow!("{file}, {error}"))?;
    let config = |why: String| {
        let line = config_line(&text, &why);
        anyhow!("{file}, line {line}: config: {why}")
    };
    (entry.check_config)(&group.config).map_err(config)?;
    let topology = group.topology(entry.meta.layout).map_err(|error| anyhow!("{file}, {error}"))?;
    (entry.validate)(&group.config, &topology).map_err(config)?;
    Ok(group)
}

/// The line that sets what the complaint names, or else where settings begin.
fn config_line(text: &str, why: &str) -> usize {
    let key = |line: &str| line.split_once('=').map(|(key, _)| key.trim().to_owned());
    let named = |line: &str| key(line).is_some_and(|key| !key.is_empty() && why.contains(&key));
    let mut within = false;
    let mut start = 1;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with('[') {
            within = line.trim_start().starts_with("[config");
            start = if within { index + 1 } else { start };
        } else if within && named(line) {
            return index + 1;
        }
    }
    start
}
