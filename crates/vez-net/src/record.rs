//! The trace of one real process: the same events as in a simulation, a line each, with what the
//! process knew of the others at that moment.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use vez_core::Time;
use vez_sim::{TraceEvent, What};

use crate::{Group, VectorClock, clock};

pub struct Record {
    out: Box<dyn Write + Send>,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    event: TraceEvent,
    life: u64,
    /// In index order: for each process, the last of its steps this one can have heard of.
    clock: &'a [u64],
}

/// The first line of every life: what ran, and among whom.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub algorithm: String,
    pub node: u64,
    pub life: u64,
    pub group: Group,
}

#[derive(Serialize)]
struct Head {
    event: &'static str,
    #[serde(flatten)]
    header: Header,
}

impl Record {
    /// Each line is written at once, so that a process that is killed loses none.
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self { out: Box::new(out) }
    }

    pub(crate) fn head(
        &mut self,
        algorithm: &str,
        node: u64,
        life: u64,
        group: &Group,
    ) -> io::Result<()> {
        let header = Header { algorithm: algorithm.to_owned(), node, life, group: group.clone() };
        let head = Head { event: "header", header };
        let text = serde_json::to_string(&head).map_err(io::Error::other)?;
        self.out.write_all(format!("{text}\n").as_bytes())?;
        self.out.flush()
    }

    pub(crate) fn write(
        &mut self,
        uid: u64,
        life: u64,
        clock: &VectorClock,
        events: impl IntoIterator<Item = What>,
    ) -> io::Result<()> {
        let at = Time::from_micros(clock::now().as_micros() as u64);
        let mut text = Vec::new();
        for what in events {
            let event = TraceEvent { at, node: Some(uid), what };
            let written = Line { event, life, clock: clock.parts() };
            serde_json::to_writer(&mut text, &written).map_err(io::Error::other)?;
            text.push(b'\n');
        }
        self.out.write_all(&text)?;
        self.out.flush()
    }
}
