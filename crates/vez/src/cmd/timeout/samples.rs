//! Measured answers from a file: a number a line, a column of a table, a field of JSON lines, or
//! the trace of a real process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

/// What a file has.
pub(super) struct Samples {
    pub(super) times: Vec<f64>,
    /// JSON lines that have no such field: logs say other things too.
    pub(super) skipped: usize,
}

/// The field of JSON lines that is read if none is titled.
const FIELD: &str = "rtt_ms";
const EXPECTED_JSON: &str = "expected an object on every line, as on the first";

pub(super) fn read(path: &Path, column: Option<&str>) -> anyhow::Result<Samples> {
    let (name, text) = if path == Path::new("-") {
        let mut text = String::new();
        let read = io::stdin().read_to_string(&mut text);
        ("standard input".to_owned(), read.map(|_| text))
    } else {
        (path.display().to_string(), fs::read_to_string(path))
    };
    let text = text.with_context(|| format!("cannot read {name}"))?;
    parse(&text, column).map_err(|fault| anyhow::anyhow!("{name}{fault}"))
}

/// Complaints begin with `: ` or with the line, `:7: `.
fn parse(text: &str, column: Option<&str>) -> Result<Samples, String> {
    // Some programs begin a file with this mark.
    let text = text.trim_start_matches('\u{feff}');
    let first = text.lines().map(uncommented).find(|line| !line.is_empty());
    let Some(first) = first else { return Err(": no samples; expected at least one".to_owned()) };
    if column.is_none() && first.starts_with('{') && is_trace(first) {
        return round_trips(text);
    }
    if first.starts_with('{') {
        return json_lines(text, column.unwrap_or(FIELD));
    }
    if column.is_some() || first.contains([',', ';', '\t']) || first.parse::<f64>().is_err() {
        let separator =
            [b'\t', b';', b','].into_iter().find(|&one| first.contains(char::from(one)));
        return table(text, column, separator.unwrap_or(b','));
    }
    let mut times = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = uncommented(line);
        if !line.is_empty() {
            times.push(time(line).map_err(|fault| format!(":{}: {fault}", index + 1))?);
        }
    }
    Ok(Samples { times, skipped: 0 })
}

fn uncommented(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

fn time(text: &str) -> Result<f64, String> {
    let expected = "expected a time, 0 or more";
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && 0.0 <= value => Ok(value),
        _ if text.is_empty() => Err(format!("nothing; {expected}")),
        Ok(value) if value < 0.0 => Err(format!("{text} is negative; {expected}")),
        _ => Err(format!("`{text}`; {expected}")),
    }
}

fn json_lines(text: &str, field: &str) -> Result<Samples, String> {
    let (mut times, mut skipped) = (Vec::new(), 0);
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = |fault: String| format!(":{}: {fault}", index + 1);
        let value: Value =
            serde_json::from_str(line).map_err(|_| at(format!("not JSON; {EXPECTED_JSON}")))?;
        match &value[field] {
            Value::Null => skipped += 1,
            Value::Number(number) => times.push(time(&number.to_string()).map_err(at)?),
            other => return Err(at(format!("`{field}` is {other}; expected a time, 0 or more"))),
        }
    }
    if times.is_empty() {
        return Err(format!(": no line has a field `{field}`; --column names another"));
    }
    Ok(Samples { times, skipped })
}

fn is_trace(line: &str) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|value| value["event"].is_string())
}

/// From what a process says to another until it next hears from it, in milliseconds.
fn round_trips(text: &str) -> Result<Samples, String> {
    let mut times = Vec::new();
    let mut asked: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    let count = text.lines().count();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            // A process that was killed may have left half a line.
            Err(_) if index + 1 == count => break,
            Err(_) => return Err(format!(":{}: not JSON; {EXPECTED_JSON}", index + 1)),
        };
        let (node, at) = (value["node"].as_u64(), value["t_ms"].as_f64());
        match (value["event"].as_str(), node.zip(at)) {
            (Some("send"), Some((node, at))) => {
                if let Some(to) = value["to"].as_u64() {
                    asked.entry((node, to)).or_insert(at);
                }
            }
            (Some("receive"), Some((node, at))) => {
                let from = value["from"].as_u64();
                let begun = from.and_then(|from| asked.remove(&(node, from)));
                times.extend(begun.map(|begun| (at - begun).max(0.0)));
            }
            // Who comes back waits for nothing that was said before.
            (Some("boot" | "restart" | "crash"), Some((node, _))) => {
                asked.retain(|&(asker, _), _| asker != node);
            }
            _ => (),
        }
    }
    if times.is_empty() {
        return Err(": a trace in which nothing that was said was answered".to_owned());
    }
    Ok(Samples { times, skipped: 0 })
}

fn table(text: &str, column: Option<&str>, separator: u8) -> Result<Samples, String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|fault| format!(": {fault}"))?;
        let line = row.position().map_or(0, csv::Position::line);
        rows.push((line, row));
    }
    let Some((_, head)) = rows.first() else { return Err(": no samples".to_owned()) };
    let names: Vec<&str> = head.iter().collect();
    // A first row without any number names the columns.
    let titled = names.iter().all(|name| name.parse::<f64>().is_err());
    let index = match column {
        None if names.len() == 1 => 0,
        None => return Err(format!(": {}; --column says which", columns(&names, titled))),
        Some(wanted) => {
            match (names.iter().position(|&name| titled && name == wanted), wanted.parse()) {
                (Some(index), _) => index,
                (None, Ok(number)) if (1..=names.len()).contains(&number) => number - 1,
                _ => return Err(format!(": no column `{wanted}`; {}", columns(&names, titled))),
            }
        }
    };
    let mut times = Vec::new();
    for (line, row) in rows.iter().skip(usize::from(titled)) {
        let cell = row.get(index).unwrap_or_default();
        times.push(time(cell).map_err(|fault| format!(":{line}: {fault}"))?);
    }
    if times.is_empty() {
        return Err(": no samples below the names of the columns; expected at least one".to_owned());
    }
    Ok(Samples { times, skipped: 0 })
}

fn columns(names: &[&str], titled: bool) -> String {
    match titled {
        true => format!("the columns are {}", names.join(", ")),
        false => format!("there are {} columns", names.len()),
    }
}
