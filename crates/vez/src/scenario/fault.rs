//! What is wrong with a scenario, and where: one line for people.

use std::fmt;

/// Where in a scenario something was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Nowhere in particular.
    #[default]
    Whole,
    /// A line of the file, from 1.
    Line(usize),
    /// A flag, as typed.
    Flag(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: Option<String>,
    pub place: Place,
    pub message: String,
}

impl Fault {
    pub fn new(place: &Place, message: impl Into<String>) -> Self {
        // A message from elsewhere may span lines; a fault never does.
        let message: String = message.into();
        let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { file: None, place: place.clone(), message }
    }

    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        self.file.get_or_insert_with(|| file.to_owned());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, &self.file) {
            (Place::Line(line), Some(file)) => write!(f, "{file}:{line}: ")?,
            (Place::Line(line), None) => write!(f, "line {line}: ")?,
            (Place::Flag(flag), _) => write!(f, "{flag}: ")?,
            (Place::Whole, Some(file)) => write!(f, "{file}: ")?,
            (Place::Whole, None) => (),
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// `, did you mean …?` where a known word is near.
pub fn suggestion<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = known.into_iter().map(|word| (strsim::damerau_levenshtein(found, word), word)).min();
    match near {
        Some((distance, word)) if distance <= 1.max(found.chars().count() / 3) => {
            format!(", did you mean `{word}`?")
        }
        _ => String::new(),
    }
}

/// `a, b or c`.
pub fn alternatives(words: &[&str]) -> String {
    match words {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
