//! What happens to a turn, told to people or to programs.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use vez_client::{Entry, Lost, Waiting};

use super::Holder;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// What the turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Lock,
    Election,
}

impl What {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lock => "lock",
            Self::Election => "election",
        }
    }
}

/// Clones share the line that is being written.
#[derive(Clone)]
pub(crate) struct Teller {
    what: What,
    name: String,
    format: Format,
    /// Standard output belongs to the command, if there is one.
    has_command: bool,
    /// Whether a line waits to be overwritten.
    is_open: Arc<Mutex<bool>>,
}

impl Teller {
    pub(crate) fn new(what: What, name: &str, format: Format, has_command: bool) -> Self {
        let is_open = Arc::default();
        Self { what, name: name.to_owned(), format, has_command, is_open }
    }

    pub(crate) fn waiting(&self, waiting: &Waiting) {
        let Waiting { ahead, holder } = waiting;
        let held = if self.what == What::Lock { "held by" } else { "led by" };
        match self.format {
            Format::Json => {
                self.event("waiting", &json!({ "ahead": ahead, "holder": described(holder) }));
            }
            Format::Text => {
                self.line(&format!("waiting for {}: {ahead} ahead, {held} {holder}", self.name));
            }
        }
    }

    pub(crate) fn acquired(&self, fence: i64, lease: i64) {
        self.close_line();
        match (self.format, self.has_command) {
            (Format::Json, _) => {
                let word = if self.what == What::Lock { "acquired" } else { "elected" };
                self.event(word, &json!({ "fence": fence, "lease": format!("{lease:x}") }));
            }
            // A command speaks for itself.
            (Format::Text, true) => (),
            (Format::Text, false) => {
                print(&fence.to_string());
                let holds = if self.what == What::Lock { "holding" } else { "leading" };
                eprintln!("vez: {holds} {}; Ctrl-C ends it", self.name);
            }
        }
    }

    pub(crate) fn lost(&self, lost: Lost) {
        match self.format {
            Format::Json => self.event("lost", &json!({ "why": lost.name() })),
            Format::Text => {
                let ending = if self.has_command { "; ending the command" } else { "" };
                eprintln!("vez: lost {}: {lost}{ending}", self.name);
            }
        }
    }

    pub(crate) fn released(&self, fence: i64) {
        if self.format == Format::Json {
            let word = if self.what == What::Lock { "released" } else { "resigned" };
            self.event(word, &json!({ "fence": fence }));
        }
    }

    /// One's turn did not come.
    pub(crate) fn refused(&self, why: &str, holder: Option<&Entry>) {
        self.close_line();
        match (self.format, holder) {
            (Format::Json, _) => {
                let holder = holder.map(described);
                self.event("refused", &json!({ "why": why, "holder": holder }));
            }
            (Format::Text, Some(holder)) => {
                eprintln!("vez: {} is held by {holder}", self.name);
            }
            (Format::Text, None) => eprintln!("vez: {}: {why}", self.name),
        }
    }

    /// Of others who lead.
    pub(crate) fn leader(&self, leader: Option<&vez_client::Leader>) {
        let value = leader.map(|leader| String::from_utf8_lossy(&leader.value).into_owned());
        match (self.format, leader) {
            (Format::Json, Some(leader)) => {
                let lease = format!("{:x}", leader.lease);
                let facts = json!({ "value": value, "fence": leader.fence, "lease": lease });
                self.event("leader", &facts);
            }
            (Format::Json, None) => self.event("no-leader", &json!({})),
            (Format::Text, Some(leader)) => {
                print(&format!("{}\t{}", leader.fence, value.unwrap_or_default()));
            }
            (Format::Text, None) => print("-\tnobody"),
        }
    }

    pub(crate) fn note(&self, note: &str) {
        self.close_line();
        if self.format == Format::Text {
            eprintln!("vez: {note}");
        }
    }

    /// Gives up a line that is being overwritten.
    pub(crate) fn close_line(&self) {
        let mut is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *is_open) {
            eprint!("\r\x1b[K");
        }
    }

    fn line(&self, text: &str) {
        if std::io::stderr().is_terminal() {
            let mut is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
            *is_open = true;
            eprint!("\r\x1b[Kvez: {text}");
        } else {
            eprintln!("vez: {text}");
        }
    }

    fn event(&self, event: &str, facts: &Value) {
        let mut line = json!({ "event": event });
        line[self.what.name()] = json!(self.name);
        if let (Some(line), Some(facts)) = (line.as_object_mut(), facts.as_object()) {
            line.extend(facts.clone());
        }
        if self.has_command {
            eprintln!("{line}");
        } else {
            print(&line.to_string());
        }
    }
}

fn print(line: &str) {
    let mut stdout = std::io::stdout().lock();
    // Whoever stopped reading does not end a turn by it.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// Who holds, with what can be read of what it wrote.
fn described(entry: &Entry) -> Value {
    let holder = Holder::parse(&entry.value);
    let value = String::from_utf8_lossy(&entry.value);
    json!({
        "who": holder.as_ref().map_or(&*value, |holder| &holder.who),
        "since": holder.as_ref().map(|holder| &holder.since),
        "fence": entry.fence,
        "lease": format!("{:x}", entry.lease),
    })
}
