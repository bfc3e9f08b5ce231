//! The flags that say what runs: shared by every command that runs something.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::registry;
use crate::scenario::{self, Fault, Members, Place, Placed, Scenario, Wiring, parse_uid};

/// An algorithm and who takes part in it.
#[derive(clap::Args)]
pub(super) struct System {
    /// The name of an algorithm, or a scenario file (its name ends in .toml).
    target: String,
    /// How many processes; their uids are 1 to N.
    #[arg(long, value_name = "N", conflicts_with = "ids")]
    nodes: Option<u64>,
    /// The uids of the processes, in index (ring) order: 3,1,2.
    #[arg(long, value_name = "UID,…")]
    ids: Option<String>,
    /// complete, ring, star, line, grid, random:P or edges:1-4,4-8; by default the algorithm's.
    #[arg(long, value_name = "SHAPE")]
    topology: Option<String>,
    /// What makes a process fit to lead: UID:MERIT. Repeatable.
    #[arg(long, value_name = "UID:MERIT")]
    merit: Vec<String>,
    /// How much a process's vote weighs: UID:WEIGHT. Repeatable.
    #[arg(long, value_name = "UID:WEIGHT")]
    weight: Vec<String>,
    /// A setting of the algorithm; `vez explain` lists them. Repeatable.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl System {
    pub(super) fn file(&self) -> Option<&Path> {
        let path = Path::new(&self.target);
        path.extension().is_some_and(|extension| extension == "toml").then_some(path)
    }

    /// The file, or an empty scenario for the algorithm, with these flags on top.
    pub(super) fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = match self.file() {
            Some(path) => {
                let text = fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                scenario::read(&text).map_err(|fault| fault.in_file(&self.target))?
            }
            None => {
                registry::find(&self.target).map_err(anyhow::Error::msg)?;
                let algorithm = Placed::new(self.target.clone(), Place::Whole);
                Scenario { algorithm, ..Scenario::default() }
            }
        };
        self.apply(&mut scenario)?;
        Ok(scenario)
    }

    /// Whether any of these flags changes what the file says.
    pub(super) fn overrides(&self) -> bool {
        let lists = [&self.merit, &self.weight, &self.set];
        self.says_who() || self.topology.is_some() || lists.iter().any(|list| !list.is_empty())
    }

    /// Whether the flags say how many processes there are.
    pub(super) fn says_who(&self) -> bool {
        self.nodes.is_some() || self.ids.is_some()
    }

    /// A fault, with the file it is in.
    pub(super) fn located(&self, fault: Fault) -> Fault {
        match self.file() {
            Some(_) => fault.in_file(&self.target),
            None => fault,
        }
    }

    fn apply(&self, scenario: &mut Scenario) -> Result<(), Fault> {
        if let Some(nodes) = self.nodes {
            let place = Place::Flag(format!("--nodes {nodes}"));
            scenario.members = Members::Count(Placed::new(nodes, place));
        }
        if let Some(ids) = &self.ids {
            let place = Place::Flag(format!("--ids {ids}"));
            let list: Result<Vec<u64>, String> =
                ids.split(',').map(|id| parse_uid(id.trim())).collect();
            let list = list.map_err(|why| Fault::new(&place, why))?;
            scenario.members = Members::Ids(Placed::new(list, place));
        }
        if let Some(topology) = &self.topology {
            let wiring: Placed<Wiring> = parsed("topology", topology)?;
            scenario.wiring = Some(wiring);
        }
        replace(&mut scenario.merits, "merit", &self.merit)?;
        replace(&mut scenario.weights, "weight", &self.weight)?;
        for setting in &self.set {
            let (key, value) = parse_setting(setting)?;
            scenario.config.insert(key, value);
        }
        Ok(())
    }
}

/// Reads the value of a flag, with that type's own complaint.
pub(super) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    flag: &str,
    text: &str,
) -> Result<Placed<T>, Fault> {
    let place = Place::Flag(format!("--{flag} {text}"));
    match text.parse() {
        Ok(value) => Ok(Placed::new(value, place)),
        Err(why) => Err(Fault::new(&place, why.to_string())),
    }
}

/// Takes `UID:VALUE` flags in place of what was there.
pub(super) fn replace<T: std::str::FromStr>(
    entries: &mut Vec<Placed<(u64, T)>>,
    flag: &str,
    values: &[String],
) -> Result<(), Fault> {
    if !values.is_empty() {
        entries.clear();
    }
    for text in values {
        let place = Place::Flag(format!("--{flag} {text}"));
        let pair = text
            .split_once(':')
            .and_then(|(uid, value)| Some((uid.parse().ok()?, value.parse().ok()?)));
        let pair = pair.ok_or_else(|| Fault::new(&place, "expected UID:NUMBER"))?;
        entries.push(Placed::new(pair, place));
    }
    Ok(())
}

/// `KEY=VALUE`, the value as in a file; what is no TOML value is taken as text.
pub(super) fn parse_setting(setting: &str) -> Result<(String, Placed<toml::Value>), Fault> {
    let place = Place::Flag(format!("--set {setting}"));
    let (key, text) =
        setting.split_once('=').ok_or_else(|| Fault::new(&place, "expected KEY=VALUE"))?;
    let (key, text) = (key.trim(), text.trim());
    let value = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let value =
        value.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    let value = value.unwrap_or_else(|| toml::Value::String(text.to_owned()));
    Ok((key.to_owned(), Placed::new(value, place)))
}
