//! The flags of `vez serve`, from a file: TOML, each under its name without the dashes.

use std::fs;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{ArgAction, FromArgMatches as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Serve;
use crate::scenario::suggestion;

/// What is wrong, one line each.
#[derive(Debug)]
pub(super) struct Mistakes(pub(super) Vec<String>);

impl From<String> for Mistakes {
    fn from(line: String) -> Self {
        Self(vec![line])
    }
}

/// Flags that say where the file is, and so cannot be in it.
const NOT_IN_FILES: [&str; 4] = ["config-file", "check-config", "help", "version"];

/// This process's flags, and those of the file that were said neither there nor in the
/// environment.
pub(super) fn with_file<Args: clap::CommandFactory>(path: &Path) -> Result<Serve, Mistakes> {
    let mut command = Args::command();
    command.build();
    let said = command.clone().get_matches();
    let Some(said) = said.subcommand_matches("serve") else {
        return Err(format!("{}: only vez serve reads it", path.display()).into());
    };
    let serve = command.find_subcommand("serve").cloned().unwrap_or_default();
    let mut words: Vec<_> = std::env::args_os().collect();
    for (id, word) in flags(path, &serve)? {
        let source = said.value_source(&id);
        if !matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
            words.push(word.into());
        }
    }
    let all = command.get_matches_from(words);
    let all = all.subcommand_matches("serve").ok_or_else(|| "expected vez serve".to_owned())?;
    Serve::from_arg_matches(all).map_err(|error| first_line(&error).into())
}

/// What the file says, as flags, each with the name of its argument.
fn flags(path: &Path, serve: &clap::Command) -> Result<Vec<(String, String)>, Mistakes> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let line = |offset: usize| {
        let before = text.get(..offset).unwrap_or(&text);
        format!("{}:{}", path.display(), 1 + before.matches('\n').count())
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let place = error.span().map_or(path.display().to_string(), |span| line(span.start));
        format!("{place}: {}", error.message().lines().next().unwrap_or_default())
    })?;
    let (mut found, mut mistakes) = (Vec::new(), Vec::new());
    for (key, value) in table.get_ref() {
        match flag(key.get_ref(), value, serve) {
            Ok(flag) => found.extend(flag),
            Err(why) => mistakes.push((key.span().start, why)),
        }
    }
    mistakes.sort_unstable();
    if mistakes.is_empty() {
        return Ok(found);
    }
    Err(Mistakes(mistakes.iter().map(|(at, why)| format!("{}: {why}", line(*at))).collect()))
}

/// One line of the file; nothing, if it says that a flag is not set.
fn flag(
    key: &str,
    value: &Spanned<DeValue<'_>>,
    serve: &clap::Command,
) -> Result<Option<(String, String)>, String> {
    let known = || {
        serve.get_arguments().filter(|argument| {
            argument.get_long().is_some_and(|long| !NOT_IN_FILES.contains(&long))
        })
    };
    let Some(argument) = known().find(|argument| argument.get_long() == Some(key)) else {
        let names: Vec<_> = known().filter_map(clap::Arg::get_long).collect();
        let near = suggestion(key, names.iter().copied());
        let expected =
            if near.is_empty() { format!("; expected {}", names.join(", ")) } else { near };
        return Err(format!("there is no `{key}`{expected}"));
    };
    let id = argument.get_id().to_string();
    if matches!(argument.get_action(), ArgAction::SetTrue) {
        let is_set = value.get_ref().as_bool();
        let is_set = is_set.ok_or_else(|| format!("`{key}`: expected true or false"))?;
        return Ok(is_set.then(|| (id, format!("--{key}"))));
    }
    let many = matches!(argument.get_action(), ArgAction::Append);
    let text = text(value.get_ref(), many).ok_or_else(|| {
        let list = if many { ", or a list of them" } else { "" };
        format!("`{key}`: expected a text or a whole number{list}")
    })?;
    let word = format!("--{key}={text}");
    let parsed = serve.clone().no_binary_name(true).try_get_matches_from([&word]);
    parsed.map_err(|error| format!("`{key}`: {}", first_line(&error)))?;
    Ok(Some((id, word)))
}

fn text(value: &DeValue<'_>, many: bool) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        DeValue::Array(values) if many => {
            let texts: Option<Vec<_>> =
                values.iter().map(|one| text(one.get_ref(), false)).collect();
            Some(texts?.join(","))
        }
        _ => None,
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
