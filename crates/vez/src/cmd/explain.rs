//! `vez explain`: an algorithm in words.

use std::fmt::Write as _;

use serde_json::Value;
use vez_core::{Channel, Crashes, Layout, Promise, Timing};

use super::{Outcome, output};
use crate::checking::Assumption;
use crate::registry::{self, Entry};
use crate::rules::{Language, Rules};

/// Explain an algorithm: model, rules, promises, costs, settings, what breaks it.
///
/// Example: vez explain bully --lang pt
#[derive(clap::Args)]
pub struct Explain {
    /// Its name, as `vez algorithms` lists it.
    algorithm: String,
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// English or Brazilian Portuguese; by default what the environment asks for.
    #[arg(long, value_enum)]
    lang: Option<Language>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Markdown,
    Json,
}

impl Explain {
    pub(super) fn run(self) -> anyhow::Result<Outcome> {
        let entry = registry::find(&self.algorithm).map_err(anyhow::Error::msg)?;
        let language = self.lang.unwrap_or_else(Language::of_environment);
        let text = match self.format {
            Format::Text => page(&entry, language, &Plain),
            Format::Markdown => markdown(&entry, language),
            Format::Json => serde_json::to_string_pretty(&entry.rules())?,
        };
        output::write(None, &text)?;
        Ok(Outcome::Kept)
    }
}

/// The page of an algorithm in the docs.
pub fn markdown(entry: &Entry, language: Language) -> String {
    page(entry, language, &Markdown)
}

/// How a page is set.
trait Style {
    fn title(&self, text: &str) -> String;
    fn heading(&self, text: &str) -> String;
    fn paragraph(&self, text: &str) -> String;
    fn item(&self, text: &str) -> String;
    fn code(&self, text: &str) -> String;
    fn name(&self, text: &str) -> String;
}

struct Plain;

impl Style for Plain {
    fn title(&self, text: &str) -> String {
        format!("{text}\n{}\n\n", "=".repeat(text.chars().count()))
    }
    fn heading(&self, text: &str) -> String {
        format!("\n{text}\n{}\n", "-".repeat(text.chars().count()))
    }
    fn paragraph(&self, text: &str) -> String {
        format!("{}\n", wrapped(text, "", ""))
    }
    fn item(&self, text: &str) -> String {
        format!("{}\n", wrapped(text, "* ", "  "))
    }
    fn code(&self, text: &str) -> String {
        let lines = text.trim_end().lines().map(|line| format!("  {line}\n"));
        lines.collect::<String>() + "\n"
    }
    fn name(&self, text: &str) -> String {
        text.to_owned()
    }
}

struct Markdown;

impl Style for Markdown {
    fn title(&self, text: &str) -> String {
        format!("# {text}\n\n")
    }
    fn heading(&self, text: &str) -> String {
        format!("\n## {text}\n\n")
    }
    fn paragraph(&self, text: &str) -> String {
        format!("{}\n", text.trim())
    }
    fn item(&self, text: &str) -> String {
        format!("- {text}\n")
    }
    fn code(&self, text: &str) -> String {
        format!("```text\n{}\n```\n\n", text.trim_end())
    }
    fn name(&self, text: &str) -> String {
        format!("`{text}`")
    }
}

const WIDTH: usize = 100;

fn wrapped(text: &str, first: &str, rest: &str) -> String {
    let mut lines = vec![first.to_owned()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always one");
        let blank =
            line.chars().count() == if lines.len() == 1 { first } else { rest }.chars().count();
        let line = lines.last_mut().expect("there is always one");
        if !blank && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{rest}{word}"));
        } else {
            line.push_str(if blank { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

fn page(entry: &Entry, language: Language, style: &impl Style) -> String {
    let rules = entry.rules();
    let say = |en, pt| language.pick(en, pt);
    let mut out = style.title(rules.title.in_language(language));
    out += &style.paragraph(rules.idea.in_language(language));
    out += &style.heading(say("Model", "Modelo"));
    for line in model(entry, language) {
        out += &style.item(&line);
    }
    out += &style.heading(say("What it assumes", "O que supõe"));
    for assumption in Assumption::of(&entry.meta) {
        let meaning = assumption.meaning(language);
        out += &style.item(&format!("{}: {meaning}", style.name(assumption.name())));
    }
    out += &without(entry, language, style);
    out += &style.heading(say("Rules", "Regras"));
    for clause in &rules.clauses {
        out += &style.code(language.pick(&clause.en, &clause.pt));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out += &style.heading(say("Promises", "Promessas"));
    for promise in entry.promises {
        out += &style.item(&promised(entry, *promise, language, style));
    }
    let lists = [
        (say("Cost", "Custo"), &rules.costs),
        (say("What breaks it", "O que o quebra"), &rules.breaks),
        (
            say(
                "Where the lecture notes err, and what we do",
                "Onde as notas erram, e o que fazemos",
            ),
            &rules.errata,
        ),
    ];
    for (heading, items) in lists {
        if !items.is_empty() {
            out += &style.heading(heading);
            for words in items {
                out += &style.item(words.in_language(language));
            }
        }
    }
    out += &settings(entry, &rules, language, style);
    out
}

/// How to see what an assumption is for.
fn without(entry: &Entry, language: Language, style: &impl Style) -> String {
    let Some(first) = Assumption::of(&entry.meta).first().copied() else { return String::new() };
    let command = format!("vez check {} --without {}", entry.meta.name, first.name());
    let line = language.pick("What one of them is for:", "Para que serve uma delas:");
    format!("\n{}", style.paragraph(&format!("{line} {}", style.name(&command))))
}

fn model(entry: &Entry, language: Language) -> Vec<String> {
    let say = |en: &str, pt: &str| language.pick(en, pt).to_owned();
    let meta = entry.meta;
    let layout = match meta.layout {
        Layout::Complete => say("everyone can talk to everyone", "todos falam com todos"),
        Layout::Star => {
            say("everyone can talk to the first process", "todos falam com o primeiro processo")
        }
        Layout::Ring => say("a ring, one way round", "um anel, em um só sentido"),
        Layout::RingBoth => say("a ring, both ways round", "um anel, nos dois sentidos"),
        Layout::Tree => say("a tree", "uma árvore"),
        Layout::Connected => say("any connected graph", "qualquer grafo conexo"),
    };
    let channel = match meta.channel {
        Channel::Lossy => say(
            "messages may be lost, repeated and reordered",
            "mensagens podem se perder, repetir-se e trocar de ordem",
        ),
        Channel::Reliable => say(
            "every message arrives once, in any order",
            "toda mensagem chega uma vez, em qualquer ordem",
        ),
        Channel::Fifo => say(
            "every message arrives once, in the order sent (FIFO)",
            "toda mensagem chega uma vez, na ordem de envio (FIFO)",
        ),
    };
    let timing = match meta.timing {
        Timing::Asynchronous => {
            say("asynchronous: no timeout proves anything", "assíncrono: nenhum prazo prova nada")
        }
        Timing::Synchronous => say(
            "synchronous: delays are bounded, so silence past a timeout means a crash",
            "síncrono: atrasos têm limite, logo silêncio além do prazo significa falha",
        ),
    };
    let crashes = match meta.crashes {
        Crashes::None => say("nobody crashes", "ninguém falha"),
        Crashes::Stop => {
            say("processes may crash and stay down", "processos podem falhar e não voltar")
        }
        Crashes::Recover => say(
            "processes may crash, and come back with what they saved",
            "processos podem falhar e voltar com o que salvaram",
        ),
    };
    let source = format!("{}: {}", language.pick("source", "fonte"), meta.source);
    vec![layout, channel, timing, crashes, source]
}

fn promised(entry: &Entry, promise: Promise, language: Language, style: &impl Style) -> String {
    let claimed = match entry.meta.promises.contains(&promise) {
        true => language.pick("yes", "sim"),
        false => language.pick("not promised", "não promete"),
    };
    let say = |en: &'static str, pt: &'static str| language.pick(en, pt);
    let meaning = match promise {
        Promise::MutualExclusion => say("at most one inside", "no máximo um dentro"),
        Promise::NoDeadlock => {
            say("if someone waits, someone enters", "se alguém espera, alguém entra")
        }
        Promise::NoStarvation => {
            say("whoever waits enters in the end", "quem espera acaba entrando")
        }
        Promise::BoundedWait => say(
            "a bound on how often others enter first",
            "um limite de quantas vezes outros entram antes",
        ),
        Promise::Fencing => say(
            "each grant's fence is larger than those before",
            "a cerca de cada permissão é maior que as anteriores",
        ),
        Promise::Termination => {
            say("who asks for an election gets a leader", "quem pede eleição obtém um líder")
        }
        Promise::Uniqueness => say(
            "never two leaders at once, or in one term",
            "nunca dois líderes ao mesmo tempo, nem no mesmo mandato",
        ),
        Promise::Agreement => {
            say("in the end all follow the same one", "no fim todos seguem o mesmo")
        }
        Promise::Validity => {
            say("the leader is the one the rules say", "o líder é quem as regras dizem")
        }
        Promise::Stability => {
            say("nobody is deposed who has not failed", "ninguém que não falhou é deposto")
        }
    };
    format!("{} ({meaning}): {claimed}", style.name(promise.name()))
}

fn settings(entry: &Entry, rules: &Rules, language: Language, style: &impl Style) -> String {
    let defaults = (entry.settings)();
    if defaults.is_empty() {
        return String::new();
    }
    let mut out = style.heading(language.pick("Settings", "Opções"));
    for setting in &rules.settings {
        let text = language.pick(&setting.en, &setting.pt);
        let default = match defaults.get(&setting.name) {
            None | Some(Value::Null) => language.pick("none", "nenhum").to_owned(),
            Some(value) => style.name(&value.to_string()),
        };
        let word = language.pick("default", "padrão");
        let mut line = String::new();
        write!(line, "{}: {text} ({word}: {default})", style.name(&setting.name)).unwrap();
        out += &style.item(&line);
    }
    out
}
