//! A TOML text whose every value knows its line, read with errors for people.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use vez_core::Time;

use super::fault::{Fault, Place, alternatives, suggestion};

pub(super) type Read<T> = Result<T, Fault>;

/// A text of more than this is no scenario anybody wrote.
const SIZE_MAX: usize = 64 << 20;

pub(super) fn parse(text: &str) -> Read<Spanned<DeTable<'_>>> {
    if text.len() > SIZE_MAX {
        return Err(Fault::new(&Place::Whole, "larger than 64 MiB; expected a scenario"));
    }
    DeTable::parse(text).map_err(|error| {
        let place = error.span().map_or(Place::Whole, |span| line_at(text, span.start));
        Fault::new(&place, error.message())
    })
}

fn line_at(text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    Place::Line(1 + before.matches('\n').count())
}

/// A value somewhere in the text.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    text: &'a str,
    name: &'a str,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Node<'a> {
    pub(super) fn place(&self) -> Place {
        line_at(self.text, self.value.span().start)
    }

    /// Complains about this value.
    pub(super) fn wrong(&self, expected: &str) -> Fault {
        let found = match self.value.get_ref() {
            DeValue::String(text) => format!("\"{text}\""),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Datetime(_) => "a date".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        };
        Fault::new(&self.place(), format!("`{}` is {found}; expected {expected}", self.name))
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(&self.place(), message)
    }

    pub(super) fn u64(&self) -> Read<u64> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong("a whole number, 0 or more"))
    }

    pub(super) fn u32(&self) -> Read<u32> {
        let number = u32::try_from(self.u64()?);
        number.map_err(|_| self.wrong("a whole number below 4294967296"))
    }

    pub(super) fn f64(&self) -> Read<f64> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        number.filter(|number: &f64| number.is_finite()).ok_or_else(|| self.wrong("a number"))
    }

    pub(super) fn bool(&self) -> Read<bool> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    pub(super) fn str(&self) -> Read<&'a str> {
        self.value.get_ref().as_str().ok_or_else(|| self.wrong("a text in quotes"))
    }

    pub(super) fn is_str(&self) -> bool {
        self.value.get_ref().is_str()
    }

    pub(super) fn is_table(&self) -> bool {
        self.value.get_ref().is_table()
    }

    /// Parses a text, with that type's own complaint.
    pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(&self) -> Read<T> {
        let text = self.str()?;
        text.parse().map_err(|error| self.fault(format!("`{}`: {error}", self.name)))
    }

    pub(super) fn time(&self) -> Read<Time> {
        if !self.is_str() {
            return Err(self.wrong("a time like \"250ms\" or \"2s\""));
        }
        self.parsed()
    }

    pub(super) fn list(&self) -> Read<Vec<Node<'a>>> {
        let items = self.value.get_ref().as_array().ok_or_else(|| self.wrong("a list"))?;
        Ok(items.iter().map(|value| Node { value, ..*self }).collect())
    }

    pub(super) fn table(&self) -> Read<Table<'a>> {
        let table = self.value.get_ref().as_table().ok_or_else(|| self.wrong("a table"))?;
        Ok(Table::new(self.text, self.name, table))
    }

    /// As a plain value, for the settings of an algorithm.
    pub(super) fn plain(&self) -> Read<toml::Value> {
        let value = toml::Value::deserialize(ValueDeserializer::from(self.value.clone()));
        value.map_err(|error| self.fault(error.message()))
    }
}

/// A table, which remembers what was asked of it.
pub(super) struct Table<'a> {
    text: &'a str,
    name: &'a str,
    entries: &'a DeTable<'a>,
    known: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(text: &'a str, name: &'a str, entries: &'a DeTable<'a>) -> Self {
        Self { text, name, entries, known: RefCell::default() }
    }

    pub(super) fn get(&self, key: &'static str) -> Option<Node<'a>> {
        self.known.borrow_mut().insert(key);
        let value = self.entries.get(key)?;
        Some(Node { text: self.text, name: key, value })
    }

    pub(super) fn need(&self, key: &'static str, place: &Place) -> Read<Node<'a>> {
        let missing = || Fault::new(place, format!("`{key}` is missing from {}", self.home()));
        self.get(key).ok_or_else(missing)
    }

    /// All entries, in the order written.
    pub(super) fn entries(&self) -> Vec<(&'a str, Node<'a>)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let node = |key: &'a str, value| Node { text: self.text, name: key, value };
        entries
            .into_iter()
            .map(|(key, value)| (&**key.get_ref(), node(key.get_ref(), value)))
            .collect()
    }

    /// Complains of anything that was never asked for.
    pub(super) fn done(&self) -> Read<()> {
        let known = self.known.borrow();
        for (key, node) in self.entries() {
            if !known.contains(key) {
                return Err(self.unknown(key, &node, &known.iter().copied().collect::<Vec<_>>()));
            }
        }
        Ok(())
    }

    pub(super) fn unknown(&self, key: &str, node: &Node<'_>, known: &[&'static str]) -> Fault {
        let near = suggestion(key, known.iter().copied());
        let near =
            if near.is_empty() { format!("; expected {}", alternatives(known)) } else { near };
        node.fault(format!("`{key}` is unknown in {}{near}", self.home()))
    }

    fn home(&self) -> String {
        if self.name.is_empty() { "the scenario".to_owned() } else { format!("`{}`", self.name) }
    }
}
