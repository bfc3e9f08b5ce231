//! Real processes for a quarter of an hour, while they are killed, stopped, cut off and slowed
//! down at random; and judged at the end.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::Value;
use vez_core::{Chance as _, Seeded};

use crate::programs;
use crate::sim::Scale;
use crate::table::{Table, Target};

/// What an algorithm is put through: no more than its assumptions allow, and all of that.
struct Ordeal {
    algorithm: &'static str,
    settings: &'static [&'static str],
    /// Whether processes may be killed; all are stopped, cut off and slowed down.
    kills: bool,
    /// What its users do.
    wish: &'static str,
    /// How it must stand when all is whole again.
    end: &'static str,
}

const ORDEALS: [Ordeal; 3] = [
    Ordeal {
        algorithm: "weighted-majority",
        settings: &["check_quorum=true", "heartbeat_every=100ms", "election_after=400ms"],
        kills: true,
        wish: "elect",
        end: "wait leader",
    },
    Ordeal {
        algorithm: "quorum",
        settings: &["durable=true", "order=timestamp", "retry_after=300ms"],
        kills: true,
        wish: "acquire",
        end: "",
    },
    Ordeal {
        algorithm: "ricart-agrawala",
        settings: &[],
        kills: false,
        wish: "acquire",
        end: "wait idle",
    },
];
const NODES: u64 = 5;
/// On average there is something new this often.
const PACE_MS: u32 = 300;

pub(super) fn soak(table: &mut Table, scale: Scale) -> anyhow::Result<()> {
    let vez = programs::vez()?;
    let seconds = scale.pick(300, 8);
    for (seed, ordeal) in ORDEALS.iter().enumerate() {
        let script = Script::write(ordeal, seconds, seed as u64);
        let result = endure(&vez, ordeal, &script.text)?;
        let promises = result["promises"].as_array().context("promises")?.iter();
        let is_broken = |promise: &&Value| promise["claimed"] == true && promise["kept"] == false;
        let broken = promises.filter(is_broken).count() as f64;
        let Script { kills, stops, cuts, .. } = script;
        let did = match &result["election"]["declarations"] {
            Value::Array(declared) => format!("{} × a leader", declared.len()),
            _ => {
                let entries = result["mutex"]["entries"].as_array().map_or(0, Vec::len);
                format!("{entries} × inside")
            }
        };
        let name = format!(
            "soak, {}, {seconds} s: {kills} kills, {stops} stops, {cuts} cuts; {did}",
            ordeal.algorithm
        );
        let none = Some(Target::AtMost(0.0));
        table.compare(name, (broken, "promises broken"), ("allowed", 0.0), broken, none);
    }
    Ok(())
}

fn endure(vez: &Path, ordeal: &Ordeal, script: &str) -> anyhow::Result<Value> {
    let mut command = Command::new(vez);
    command.args(["cluster", ordeal.algorithm, "--format", "json"]);
    command.args(["--nodes", &NODES.to_string()]);
    for setting in ordeal.settings {
        command.args(["--set", setting]);
    }
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn()?;
    let mut stdin = child.stdin.take().context("its input")?;
    stdin.write_all(script.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        let told = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = told.lines().rev().take(3).collect();
        format!("{}: {}", ordeal.algorithm, last.join(" / "))
    })
}

/// What is done to the processes, and how they stand.
struct Script {
    text: String,
    kills: u32,
    stops: u32,
    cuts: u32,
    chance: Seeded,
    down: Vec<u64>,
    stopped: Vec<u64>,
}

impl Script {
    fn write(ordeal: &Ordeal, seconds: u32, seed: u64) -> Self {
        let mut script = Self {
            text: String::new(),
            kills: 0,
            stops: 0,
            cuts: 0,
            chance: Seeded(seed),
            down: Vec::new(),
            stopped: Vec::new(),
        };
        let mut passed = 0;
        while passed < seconds * 1_000 {
            script.do_something(ordeal);
            let pause = script.chance.below(2 * PACE_MS);
            script.say(&format!("sleep {pause}ms"));
            passed += pause;
        }
        script.say("heal\nloss 0\ndelay 0ms");
        for id in std::mem::take(&mut script.stopped) {
            script.say(&format!("cont {id}"));
        }
        for id in std::mem::take(&mut script.down) {
            script.say(&format!("start {id}"));
        }
        script.say(ordeal.end);
        script
    }

    fn say(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    fn do_something(&mut self, ordeal: &Ordeal) {
        let id = 1 + u64::from(self.chance.below(NODES as u32));
        let other = 1 + (id + u64::from(self.chance.below(NODES as u32 - 1))) % NODES;
        let is_idle = self.down.len() + self.stopped.len() < 2;
        let is_up = !self.down.contains(&id) && !self.stopped.contains(&id);
        match self.chance.below(20) {
            0..2 if ordeal.kills && is_up && is_idle => {
                self.kills += 1;
                self.down.push(id);
                self.say(&format!("kill {id}"));
            }
            2..4 if is_up && is_idle => {
                self.stops += 1;
                self.stopped.push(id);
                self.say(&format!("stop {id}"));
            }
            4..6 => {
                if let Some(id) = self.down.pop() {
                    self.say(&format!("start {id}"));
                }
            }
            6..8 => {
                if let Some(id) = self.stopped.pop() {
                    self.say(&format!("cont {id}"));
                }
            }
            8 => {
                self.cuts += 1;
                self.say(&format!("cut {id}-{other}"));
            }
            9 => {
                self.cuts += 1;
                let rest: Vec<String> = (1..=NODES)
                    .filter(|one| *one != id && *one != other)
                    .map(|one| one.to_string())
                    .collect();
                self.say(&format!("partition {id},{other}/{}", rest.join(",")));
            }
            10..12 => self.say("heal"),
            12 => self.say("delay 0ms..20ms"),
            13 => self.say("delay 0ms"),
            14 => self.say("loss 0.02"),
            15 => self.say("loss 0"),
            _ if is_up && ordeal.wish == "acquire" => self.say(&format!("acquire {id} 2ms")),
            _ if is_up => self.say(&format!("{} {id}", ordeal.wish)),
            _ => (),
        }
    }
}
