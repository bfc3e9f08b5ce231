//! Reads a scenario file.

use std::collections::BTreeMap;

use vez_core::Time;

use super::doc::{Node, Read, Table, parse};
use super::expect::read_expectation;
use super::{
    About, Act, Arming, Event, Flight, Link, Members, Place, Placed, Scenario, Weather, Whom,
    Wiring, Words,
};

/// Reads the text of a scenario file. Never panics, whatever the text.
pub fn read(text: &str) -> Read<Scenario> {
    let document = parse(text)?;
    let root = Table::new(text, "", document.get_ref());
    let scenario = Scenario {
        about: about(&root)?,
        algorithm: word(&root.need("algorithm", &Place::Whole)?)?,
        seed: root.get("seed").map_or(Ok(0), |node| node.u64())?,
        members: members(&root)?,
        wiring: wiring(&root)?,
        merits: by_uid(&root, "merit", Node::u64)?,
        weights: by_uid(&root, "weight", Node::u32)?,
        until: root.get("until").map(|node| node.time()).transpose()?,
        network: root.get("network").map_or_else(|| Ok(Weather::default()), weather)?,
        links: each(&root, "link", link)?,
        clocks: by_uid(&root, "clock", Node::f64)?,
        drift: root.get("drift").map_or_else(|| Ok(Placed::default()), number)?,
        amnesia: root.get("amnesia").map_or(Ok(false), |node| node.bool())?,
        config: config(&root)?,
        events: each(&root, "at", moment)?.into_iter().flatten().collect(),
        messages: each(&root, "message", flight)?,
        timers: each(&root, "timer", arming)?,
        choices: root.get("choices").map_or_else(|| Ok(Vec::new()), choices)?,
        expect: root.get("expect").map(read_expectation).transpose()?,
    };
    root.done()?;
    Ok(scenario)
}

fn about(root: &Table<'_>) -> Read<About> {
    let words = |key| root.get(key).map_or_else(|| Ok(Words::default()), both_languages);
    let name = root.get("name").map_or(Ok(""), |node| node.str())?.to_owned();
    Ok(About { name, title: words("title")?, look: words("look")? })
}

fn both_languages(node: Node<'_>) -> Read<Words> {
    let table = node.table()?;
    let text = |key| -> Read<String> { Ok(table.need(key, &node.place())?.str()?.to_owned()) };
    let words = Words { en: text("en")?, pt: text("pt")? };
    table.done()?;
    Ok(words)
}

fn word(node: &Node<'_>) -> Read<Placed<String>> {
    Ok(Placed::new(node.str()?.to_owned(), node.place()))
}

fn number(node: Node<'_>) -> Read<Placed<f64>> {
    Ok(Placed::new(node.f64()?, node.place()))
}

fn members(root: &Table<'_>) -> Read<Members> {
    match (root.get("ids"), root.get("nodes")) {
        (Some(ids), None) => {
            let list: Read<Vec<u64>> = ids.list()?.iter().map(Node::u64).collect();
            Ok(Members::Ids(Placed::new(list?, ids.place())))
        }
        (None, Some(nodes)) => Ok(Members::Count(Placed::new(nodes.u64()?, nodes.place()))),
        (None, None) => Ok(Members::default()),
        (Some(_), Some(nodes)) => Err(nodes.fault("`nodes` and `ids` are given; expected one")),
    }
}

fn wiring(root: &Table<'_>) -> Read<Option<Placed<Wiring>>> {
    match (root.get("topology"), root.get("edges")) {
        (Some(node), None) => {
            let text = node.str()?;
            let wiring = text.parse().map_err(|message: String| node.fault(message))?;
            Ok(Some(Placed::new(wiring, node.place())))
        }
        (None, Some(node)) => {
            let edges: Read<Vec<(u64, u64)>> = node.list()?.iter().map(pair).collect();
            Ok(Some(Placed::new(Wiring::Edges(edges?), node.place())))
        }
        (None, None) => Ok(None),
        (Some(_), Some(node)) => Err(node.fault("`edges` and `topology` are given; expected one")),
    }
}

fn pair(node: &Node<'_>) -> Read<(u64, u64)> {
    match node.list()?.as_slice() {
        [a, b] => Ok((a.u64()?, b.u64()?)),
        other => Err(node.fault(format!("a list of {}; expected two uids", other.len()))),
    }
}

/// A table from uids to values, such as `merit = { 1 = 4, 2 = 6 }`.
fn by_uid<'a, T>(
    root: &Table<'a>,
    key: &'static str,
    value: impl Fn(&Node<'a>) -> Read<T>,
) -> Read<Vec<Placed<(u64, T)>>> {
    let Some(node) = root.get(key) else { return Ok(Vec::new()) };
    let mut entries = Vec::new();
    for (uid, node) in node.table()?.entries() {
        let bad = |_| node.fault(format!("`{uid}` in `{key}`; expected a uid, a whole number"));
        entries.push(Placed::new((uid.parse().map_err(bad)?, value(&node)?), node.place()));
    }
    Ok(entries)
}

fn each<'a, T>(
    root: &Table<'a>,
    key: &'static str,
    item: impl Fn(Node<'a>) -> Read<T>,
) -> Read<Vec<T>> {
    let Some(node) = root.get(key) else { return Ok(Vec::new()) };
    let items = node.list().map_err(|_| node.wrong(&format!("tables headed [[{key}]]")))?;
    items.into_iter().map(item).collect()
}

fn weather(node: Node<'_>) -> Read<Weather> {
    let table = node.table()?;
    let normal = Weather::default();
    let weather = Weather {
        delay: table.get("delay").map_or(Ok(normal.delay), |node| node.parsed())?,
        loss: table.get("loss").map_or(Ok(normal.loss), number)?,
        duplicate: table.get("duplicate").map_or(Ok(normal.duplicate), number)?,
        fifo: table.get("fifo").map_or(Ok(normal.fifo), |node| node.bool())?,
    };
    table.done()?;
    Ok(weather)
}

fn link(node: Node<'_>) -> Read<Placed<Link>> {
    let table = node.table()?;
    let place = node.place();
    let link = Link {
        from: table.need("from", &place)?.u64()?,
        to: table.need("to", &place)?.u64()?,
        delay: table.get("delay").map(|node| node.parsed()).transpose()?,
        loss: table.get("loss").map(|node| node.f64()).transpose()?,
        duplicate: table.get("duplicate").map(|node| node.f64()).transpose()?,
    };
    table.done()?;
    Ok(Placed::new(link, place))
}

fn config(root: &Table<'_>) -> Read<BTreeMap<String, Placed<toml::Value>>> {
    let Some(node) = root.get("config") else { return Ok(BTreeMap::new()) };
    let entries = node.table()?.entries();
    entries
        .into_iter()
        .map(|(key, node)| Ok((key.to_owned(), Placed::new(node.plain()?, node.place()))))
        .collect()
}

fn flight(node: Node<'_>) -> Read<Placed<Flight>> {
    let table = node.table()?;
    let number = table.need("number", &node.place())?;
    let arrives = table.need("arrives", &node.place())?;
    let arrives = arrives.list().map_err(|_| arrives.wrong("a list of times, [] for lost"))?;
    let arrives = arrives.iter().map(arrival).collect::<Read<_>>()?;
    table.done()?;
    Ok(Placed::new(Flight { number: number.u64()?, arrives }, number.place()))
}

fn arrival(node: &Node<'_>) -> Read<Time> {
    match node.time()? {
        Time::ZERO => Err(node.wrong("at least \"1us\": no message is instant")),
        time => Ok(time),
    }
}

fn arming(node: Node<'_>) -> Read<Placed<Arming>> {
    let table = node.table()?;
    let number = table.need("number", &node.place())?;
    let after = table.need("after", &node.place())?.time()?;
    table.done()?;
    Ok(Placed::new(Arming { number: number.u64()?, after }, number.place()))
}

fn choices(node: Node<'_>) -> Read<Vec<u32>> {
    node.list()?.iter().map(Node::u32).collect()
}

const ACTS: [&str; 10] = [
    "start",
    "suspect",
    "acquire",
    "withdraw",
    "crash",
    "restart",
    "pause",
    "partition",
    "cut",
    "heal",
];

fn moment(node: Node<'_>) -> Read<Vec<Event>> {
    let table = node.table()?;
    let at = table.need("time", &node.place())?.time()?;
    let mut events = Vec::new();
    // The order of the keys is the order of what happens at this moment.
    for (key, node) in table.entries() {
        if key == "time" {
            continue;
        }
        if !ACTS.contains(&key) {
            let known: Vec<&'static str> = std::iter::once("time").chain(ACTS).collect();
            return Err(table.unknown(key, &node, &known));
        }
        for (act, place) in acts(key, node)? {
            events.push(Event { at, act, place });
        }
    }
    Ok(events)
}

fn acts(key: &str, node: Node<'_>) -> Read<Vec<(Act, Place)>> {
    let several = |read: fn(&Node<'_>) -> Read<Act>| -> Read<Vec<(Act, Place)>> {
        node.list()?.iter().map(|node| Ok((read(node)?, node.place()))).collect()
    };
    match key {
        "start" if node.is_str() => Ok(vec![(Act::Start(whom(&node)?), node.place())]),
        "start" => several(|node| Ok(Act::Start(Whom::One(node.u64()?)))),
        "suspect" => several(suspect),
        "acquire" => several(acquire),
        "withdraw" => several(|node| Ok(Act::Withdraw(node.u64()?))),
        "crash" => {
            several(|node| flagged(node, "unsent", |node, unsent| Act::Crash { node, unsent }))
        }
        "restart" => {
            several(|node| flagged(node, "amnesia", |node, amnesia| Act::Restart { node, amnesia }))
        }
        "pause" => several(pause),
        "partition" => {
            let group = |node: &Node<'_>| node.list()?.iter().map(Node::u64).collect();
            let groups: Read<Vec<Vec<u64>>> = node.list()?.iter().map(group).collect();
            Ok(vec![(Act::Partition(groups?), node.place())])
        }
        "cut" => several(|node| {
            let (from, to, both) = wire(node)?;
            Ok(Act::Cut { from, to, both })
        }),
        _ if node.list().is_ok() => several(|node| Ok(Act::Heal(Some(wire(node)?)))),
        _ => match node.bool() {
            Ok(true) => Ok(vec![(Act::Heal(None), node.place())]),
            _ => Err(node.wrong("true, or a list of links")),
        },
    }
}

fn whom(node: &Node<'_>) -> Read<Whom> {
    match node.is_str() {
        true if node.str()? == "all" => Ok(Whom::All),
        true => Err(node.wrong("\"all\" or a uid")),
        false => Ok(Whom::One(node.u64()?)),
    }
}

fn suspect(node: &Node<'_>) -> Read<Act> {
    let table = node.table()?;
    let uid = |key| table.need(key, &node.place())?.u64();
    let act = Act::Suspect { node: uid("node")?, of: uid("of")? };
    table.done()?;
    Ok(act)
}

fn acquire(node: &Node<'_>) -> Read<Act> {
    let default = Time::from_millis(1);
    if !node.is_table() {
        return Ok(Act::Acquire { who: whom(node)?, hold: default });
    }
    let table = node.table()?;
    let who = whom(&table.need("node", &node.place())?)?;
    let hold = table.get("hold").map_or(Ok(default), |node| node.time())?;
    table.done()?;
    Ok(Act::Acquire { who, hold })
}

/// A uid, or a table of a uid and a switch.
fn flagged(node: &Node<'_>, switch: &'static str, act: fn(u64, bool) -> Act) -> Read<Act> {
    if !node.is_table() {
        return Ok(act(node.u64()?, false));
    }
    let table = node.table()?;
    let uid = table.need("node", &node.place())?.u64()?;
    let on = table.get(switch).map_or(Ok(false), |node| node.bool())?;
    table.done()?;
    Ok(act(uid, on))
}

fn pause(node: &Node<'_>) -> Read<Act> {
    let table = node.table()?;
    let uid = table.need("node", &node.place())?.u64()?;
    let span = table.need("for", &node.place())?.time()?;
    table.done()?;
    Ok(Act::Pause { node: uid, span })
}

/// `[1, 2]` or `"1-2"` for both directions of a link, `"1>2"` for one.
fn wire(node: &Node<'_>) -> Read<(u64, u64, bool)> {
    if node.is_str() {
        return super::flags::parse_wire(node.str()?).map_err(|message| node.fault(message));
    }
    let (a, b) = pair(node)?;
    Ok((a, b, true))
}
