//! What a step changed in the state of its process, told no longer than it must be: of a part
//! with parts, only those that changed.

use std::collections::BTreeMap;

use serde_json::Value;
use vez_sim::What;

use crate::steps::Step;

/// For every step, what it changed, as `name: value`.
pub(crate) fn changes(steps: &[Step<'_>]) -> Vec<Vec<String>> {
    let mut known: BTreeMap<u64, &Value> = BTreeMap::new();
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let mut told = Vec::new();
        for event in step.events {
            let (What::State { state, changed }, Some(uid)) = (&event.what, event.node) else {
                continue;
            };
            let before = known.insert(uid, state);
            for change in changed {
                told.extend(thinned(change, before.unwrap_or(&Value::Null), state));
            }
        }
        all.push(told);
    }
    all
}

/// `desk: holder=P2, queue=[P3]` as `desk.queue: [P3]` if the holder is the same as before.
fn thinned(change: &str, before: &Value, after: &Value) -> Vec<String> {
    let whole = || vec![change.to_owned()];
    let Some((name, value)) = change.split_once(": ") else { return whole() };
    let (Value::Object(before), Value::Object(after)) = (&before[name], &after[name]) else {
        return whole();
    };
    let parts: Option<Vec<(&str, &str)>> =
        parts(value).into_iter().map(|part| part.split_once('=')).collect();
    let Some(parts) = parts else { return whole() };
    if parts.len() != after.len() || parts.iter().any(|(key, _)| !after.contains_key(*key)) {
        return whole();
    }
    let news = parts.into_iter().filter(|(key, _)| before.get(*key) != after.get(*key));
    news.map(|(key, value)| format!("{name}.{key}: {value}")).collect()
}

/// Splits at the commas that are in no brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let commas = text.split(move |c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => (),
        }
        c == ',' && depth == 0
    });
    commas.map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::thinned;

    #[test]
    fn of_a_part_with_parts_only_the_changed_are_told() {
        let before = json!({"desk": {"holder": 2, "queue": [], "grants": 1}});
        let after = json!({"desk": {"holder": 2, "queue": [[3, 1]], "grants": 1}});
        let change = "desk: holder=P2, queue=[node=P3, request=1], grants=1";
        assert_eq!(thinned(change, &before, &after), ["desk.queue: [node=P3, request=1]"]);
        assert_eq!(thinned("state: Idle", &before, &after), ["state: Idle"]);
        assert_eq!(thinned("no name", &before, &after), ["no name"]);
        assert_eq!(thinned("desk: other", &before, &after), ["desk: other"]);
    }
}
