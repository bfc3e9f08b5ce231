//! An algorithm in words: read from the text beside its source, shown by `explain`, the docs and
//! the lab.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::scenario::Words;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    pub title: Words,
    /// What it does, in one line.
    pub line: Words,
    pub idea: Words,
    #[serde(rename = "clause", default)]
    pub clauses: Vec<Clause>,
    #[serde(rename = "setting", default)]
    pub settings: Vec<Setting>,
    #[serde(rename = "cost", default)]
    pub costs: Vec<Words>,
    #[serde(default)]
    pub breaks: Vec<Words>,
    /// Where the lecture notes err, and what is done here.
    #[serde(default)]
    pub errata: Vec<Words>,
}

/// What a process does upon one kind of event.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clause {
    /// `request Acquire`, `message Ok`, `timer Lease` or `boot`.
    pub upon: String,
    pub en: String,
    pub pt: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    pub name: String,
    pub en: String,
    pub pt: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Language {
    #[default]
    En,
    /// Brazilian Portuguese.
    Pt,
}

impl Language {
    /// What the environment asks for.
    pub fn of_environment() -> Self {
        let asked = ["LC_ALL", "LC_MESSAGES", "LANG"]
            .iter()
            .find_map(|key| std::env::var(key).ok().filter(|value| !value.is_empty()));
        if asked.is_some_and(|value| value.starts_with("pt")) { Self::Pt } else { Self::En }
    }

    pub fn pick<'a>(self, en: &'a str, pt: &'a str) -> &'a str {
        match self {
            Self::En => en,
            Self::Pt => pt,
        }
    }
}

impl Words {
    pub fn in_language(&self, language: Language) -> &str {
        language.pick(&self.en, &self.pt).trim()
    }
}

impl Rules {
    /// The texts are part of the binary, and a test reads them all.
    pub fn read(text: &str) -> Self {
        toml::from_str(text).unwrap_or_else(|error| panic!("a rules text is broken: {error}"))
    }

    /// What is missing or too much, given the kinds of events and the settings there are.
    pub fn gaps(&self, upon: &[String], settings: &[String]) -> Vec<String> {
        let mut gaps = Vec::new();
        let mut compare = |what: &str, known: &[String], written: Vec<&str>| {
            let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
            for name in &written {
                *counts.entry(name).or_default() += 1;
            }
            for name in known {
                if !counts.contains_key(name.as_str()) {
                    gaps.push(format!("no {what} for `{name}`"));
                }
            }
            for (name, count) in counts {
                if name != "boot" && !known.iter().any(|other| other == name) {
                    gaps.push(format!("a {what} for `{name}`, which does not exist"));
                }
                if count > 1 {
                    gaps.push(format!("{count} {what}s for `{name}`"));
                }
            }
        };
        compare("clause", upon, self.clauses.iter().map(|c| c.upon.as_str()).collect());
        compare("setting", settings, self.settings.iter().map(|s| s.name.as_str()).collect());
        let texts = [&self.title, &self.line, &self.idea];
        let texts = texts.into_iter().chain(&self.costs).chain(&self.breaks).chain(&self.errata);
        let pairs = texts.map(|words| (&words.en, &words.pt));
        let pairs = pairs.chain(self.clauses.iter().map(|clause| (&clause.en, &clause.pt)));
        let pairs = pairs.chain(self.settings.iter().map(|setting| (&setting.en, &setting.pt)));
        let half = pairs.filter(|(en, pt)| en.trim().is_empty() || pt.trim().is_empty());
        gaps.extend(half.map(|(en, pt)| format!("a text in one language only: {en:?} {pt:?}")));
        for (name, list) in [("cost", &self.costs), ("breaks", &self.breaks)] {
            if list.is_empty() {
                gaps.push(format!("no `{name}`"));
            }
        }
        gaps
    }
}
