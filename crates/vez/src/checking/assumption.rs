//! What an algorithm assumes of the world, one word each, so that it can be taken away.

use vez_check::Options;
use vez_core::{Channel, Crashes, Meta, Timing};

use crate::rules::Language;
use crate::scenario::{alternatives, suggestion};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assumption {
    Fifo,
    Reliable,
    Once,
    NoPartitions,
    Synchrony,
    NoCrashes,
    NoRestarts,
    Durable,
}

impl Assumption {
    const ALL: [Self; 8] = [
        Self::Fifo,
        Self::Reliable,
        Self::Once,
        Self::NoPartitions,
        Self::Synchrony,
        Self::NoCrashes,
        Self::NoRestarts,
        Self::Durable,
    ];

    /// What this algorithm assumes.
    pub fn of(meta: &Meta) -> Vec<Self> {
        Self::ALL.into_iter().filter(|assumption| assumption.is_made_by(meta)).collect()
    }

    /// The assumption of this name, if the algorithm makes it; otherwise a complaint that lists
    /// those it makes.
    pub fn named(name: &str, meta: &Meta) -> Result<Self, String> {
        let made = Self::of(meta);
        if let Some(found) = made.iter().find(|assumption| assumption.name() == name) {
            return Ok(*found);
        }
        let names: Vec<&str> = made.iter().map(|assumption| assumption.name()).collect();
        let algorithm = meta.name;
        if let Some(known) = Self::ALL.iter().find(|assumption| assumption.name() == name) {
            let why = known.meaning(Language::En);
            let names = alternatives(&names);
            return Err(format!("{algorithm} does not assume that {why}; expected {names}"));
        }
        let near = suggestion(name, names.iter().copied());
        let names =
            if near.is_empty() { format!("; expected {}", alternatives(&names)) } else { near };
        Err(format!("`{name}` is no assumption of {algorithm}{names}"))
    }

    fn is_made_by(self, meta: &Meta) -> bool {
        match self {
            Self::Fifo => meta.channel == Channel::Fifo,
            Self::Reliable | Self::Once | Self::NoPartitions => meta.channel != Channel::Lossy,
            Self::Synchrony => meta.timing == Timing::Synchronous,
            Self::NoCrashes => meta.crashes == Crashes::None,
            Self::NoRestarts => meta.crashes == Crashes::Stop,
            Self::Durable => meta.crashes == Crashes::Recover,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Reliable => "reliable",
            Self::Once => "once",
            Self::NoPartitions => "no-partitions",
            Self::Synchrony => "synchrony",
            Self::NoCrashes => "no-crashes",
            Self::NoRestarts => "no-restarts",
            Self::Durable => "durable",
        }
    }

    /// What is assumed, after "that".
    pub fn meaning(self, language: Language) -> &'static str {
        let (en, pt) = match self {
            Self::Fifo => (
                "messages of one sender to one receiver keep their order",
                "mensagens de um remetente a um destinatário mantêm a ordem",
            ),
            Self::Reliable => ("no message is lost", "nenhuma mensagem se perde"),
            Self::Once => ("no message is heard twice", "nenhuma mensagem é ouvida duas vezes"),
            Self::NoPartitions => {
                ("the network never falls in two", "a rede nunca se parte em duas")
            }
            Self::Synchrony => {
                ("silence past a timeout means a crash", "silêncio além do prazo significa falha")
            }
            Self::NoCrashes => ("nobody crashes", "ninguém falha"),
            Self::NoRestarts => ("who crashed stays down", "quem falhou não volta"),
            Self::Durable => {
                ("what was saved survives a crash", "o que foi salvo sobrevive à falha")
            }
        };
        match language {
            Language::En => en,
            Language::Pt => pt,
        }
    }

    /// Lets happen, once in a run unless more was granted, what was assumed not to.
    pub fn remove(self, options: &mut Options) {
        let once = |budget: &mut u32| *budget = 1.max(*budget);
        match self {
            Self::Fifo => options.channel = Channel::Reliable,
            Self::Reliable => once(&mut options.losses),
            Self::Once => once(&mut options.duplicates),
            Self::NoPartitions => once(&mut options.partitions),
            Self::Synchrony => options.timing = Timing::Asynchronous,
            Self::NoCrashes => once(&mut options.crashes),
            Self::NoRestarts => {
                once(&mut options.crashes);
                options.restarts = true;
            }
            Self::Durable => {
                once(&mut options.crashes);
                (options.restarts, options.amnesia) = (true, true);
            }
        }
    }
}
