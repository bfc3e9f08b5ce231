//! Traces as they are read back: of one process, of several, or of who put faults into them.

use std::path::PathBuf;

use serde_json::Value;
use vez_core::Time;
use vez_sim::{TraceEvent, What};

use crate::clock;
use crate::record::Header;

/// A file of a trace.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub headers: Vec<Header>,
    pub lines: Vec<Line>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

/// One event, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub at: Time,
    pub node: Option<u64>,
    /// Which life of that process wrote it; `None` if somebody else did.
    pub life: Option<u64>,
    pub clock: Vec<u64>,
    pub event: Value,
}

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot read {0}: {1}")]
    File(PathBuf, std::io::Error),
    #[error("{file}, line {line}: {why}")]
    Line { file: String, line: usize, why: String },
}

impl Log {
    /// Reads what a file holds. A process that was killed may have left half a line.
    pub fn read(file: &str, bytes: &[u8]) -> Result<Self, LogError> {
        let text = String::from_utf8_lossy(bytes);
        let mut log = Self::default();
        let mut half: Option<(usize, String)> = None;
        for (index, text) in text.lines().enumerate().filter(|(_, text)| !text.is_empty()) {
            let wrong =
                |why: String| LogError::Line { file: file.to_owned(), line: index + 1, why };
            let value: Value = match serde_json::from_str(text) {
                Ok(value) => value,
                Err(error) if half.is_none() => {
                    half = Some((index + 1, error.to_string()));
                    continue;
                }
                Err(error) => return Err(wrong(format!("no event: {error}"))),
            };
            let is_header = value["event"] == "header";
            if let Some((line, why)) = half.take() {
                // After half a line only another life can come.
                if !is_header {
                    return Err(LogError::Line { file: file.to_owned(), line, why });
                }
                log.warn(file, line);
            }
            if is_header {
                let header = serde_json::from_value(value);
                log.headers.push(header.map_err(|error| wrong(format!("header: {error}")))?);
            } else {
                log.lines.push(Line::of(value).map_err(wrong)?);
            }
        }
        if let Some((line, _)) = half {
            log.warn(file, line);
        }
        Ok(log)
    }

    fn warn(&mut self, file: &str, line: usize) {
        self.warnings.push(format!("{file}, line {line}: half a line; it is left out"));
    }
}

impl Line {
    fn of(event: Value) -> Result<Self, String> {
        let millis = event["t_ms"].as_f64().filter(|millis| (0.0..1e15).contains(millis));
        let millis = millis.ok_or("expected t_ms, the moment in milliseconds")?;
        if !event["event"].is_string() {
            return Err("expected event, what happened".to_owned());
        }
        #[expect(clippy::cast_sign_loss, reason = "it is not negative")]
        let at = Time::from_micros((millis * 1_000.0).round() as u64);
        let clock = event["clock"].as_array().map(|parts| {
            let parts = parts.iter().map(|part| part.as_u64().unwrap_or(0));
            parts.collect()
        });
        Ok(Self {
            at,
            node: event["node"].as_u64(),
            life: event["life"].as_u64(),
            clock: clock.unwrap_or_default(),
            event,
        })
    }

    pub fn kind(&self) -> &str {
        self.event["event"].as_str().unwrap_or("")
    }
}

/// Something that was done to processes or links just now, as a line of a trace.
pub fn now_line(node: Option<u64>, what: What) -> String {
    let at = Time::from_micros(clock::now().as_micros() as u64);
    let event = TraceEvent { at, node, what };
    serde_json::to_string(&event).expect("events are plain data")
}

#[cfg(test)]
mod tests {
    use super::Log;

    const BOOT: &str =
        "{\"t_ms\":5.001,\"node\":3,\"event\":\"boot\",\"life\":9,\"clock\":[0,7]}\n";

    fn read(text: &str) -> Result<Log, String> {
        Log::read("a.jsonl", text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let log = read(BOOT).unwrap();
        let line = &log.lines[0];
        assert_eq!((line.at.as_micros(), line.node, line.life), (5_001, Some(3), Some(9)));
        assert_eq!((line.kind(), &line.clock[..]), ("boot", &[0, 7][..]));
        assert!(log.warnings.is_empty());
    }

    #[test]
    fn the_last_line_may_be_half_of_one_and_no_other() {
        let log = read(&format!("{BOOT}{{\"t_ms\":6,\"no")).unwrap();
        assert_eq!((log.lines.len(), log.warnings.len()), (1, 1));
        assert_eq!(log.warnings[0], "a.jsonl, line 2: half a line; it is left out");
        let wrong = read(&format!("{BOOT}{{\"t_ms\":6,\"no\n{BOOT}")).unwrap_err();
        assert!(wrong.starts_with("a.jsonl, line 2: "), "{wrong}");
    }

    #[test]
    fn what_is_no_event_is_named_by_its_line() {
        let wrong = read(&format!("{BOOT}{{\"event\":\"boot\"}}\n")).unwrap_err();
        assert_eq!(wrong, "a.jsonl, line 2: expected t_ms, the moment in milliseconds");
        assert!(read("{\"event\":\"header\"}\n").unwrap_err().contains("header"));
    }
}
