//! The rules of every algorithm are complete: each kind of event has its clause, each setting its
//! line, each text both languages.

use vez::registry;

#[test]
fn every_kind_of_event_and_every_setting_is_explained() {
    let mut gaps = Vec::new();
    for entry in registry::all() {
        let kinds =
            [("request", entry.requests), ("message", entry.messages), ("timer", entry.timers)];
        let upon: Vec<String> = kinds
            .iter()
            .flat_map(|(what, kinds)| kinds().iter().map(move |kind| format!("{what} {kind}")))
            .collect();
        let settings: Vec<String> = (entry.settings)().keys().cloned().collect();
        let found = entry.rules().gaps(&upon, &settings);
        gaps.extend(found.into_iter().map(|gap| format!("{}: {gap}", entry.meta.name)));
    }
    assert!(gaps.is_empty(), "{}", gaps.join("\n"));
}

#[test]
fn gaps_are_noticed() {
    let entry = registry::find("bully").unwrap();
    let mut rules = entry.rules();
    let upon: Vec<String> = rules.clauses.iter().map(|clause| clause.upon.clone()).collect();
    let settings: Vec<String> = rules.settings.iter().map(|setting| setting.name.clone()).collect();
    assert!(rules.gaps(&upon, &settings).is_empty());
    rules.clauses.remove(2);
    rules.settings[0].pt.clear();
    let twice = rules.settings[1].clone();
    rules.settings.push(twice);
    let gaps = rules.gaps(&upon, &settings);
    assert_eq!(gaps.len(), 3, "{gaps:?}");
    let mut more = upon.clone();
    more.push("message Nothing".to_owned());
    assert!(entry.rules().gaps(&more, &settings)[0].contains("message Nothing"));
}
