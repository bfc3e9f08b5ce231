//! Writes a scenario as a file that reads back the same.

use std::fmt::{self, Display, Write as _};

use super::{Act, Members, Scenario, Weather, Whom, Wiring};

impl Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out)?;
        f.write_str(&out)
    }
}

impl Scenario {
    fn write(&self, out: &mut String) -> fmt::Result {
        if !self.about.name.is_empty() {
            writeln!(out, "name = {}", quoted(&self.about.name))?;
        }
        for (key, words) in [("title", &self.about.title), ("look", &self.about.look)] {
            if !words.en.is_empty() {
                let (en, pt) = (quoted(&words.en), quoted(&words.pt));
                writeln!(out, "{key} = {{ en = {en}, pt = {pt} }}")?;
            }
        }
        writeln!(out, "algorithm = {}", quoted(&self.algorithm.value))?;
        writeln!(out, "seed = {}", self.seed)?;
        match &self.members {
            Members::Count(count) => writeln!(out, "nodes = {}", count.value)?,
            Members::Ids(ids) => writeln!(out, "ids = {}", list(&ids.value))?,
        }
        if let Some(wiring) = &self.wiring {
            write_wiring(&wiring.value, out)?;
        }
        let pairs = |entries: &mut dyn Iterator<Item = (u64, String)>| {
            let entries: Vec<String> = entries.map(|(k, v)| format!("{k} = {v}")).collect();
            format!("{{ {} }}", entries.join(", "))
        };
        if !self.merits.is_empty() {
            let mut merits = self.merits.iter().map(|m| (m.value.0, m.value.1.to_string()));
            writeln!(out, "merit = {}", pairs(&mut merits))?;
        }
        if !self.weights.is_empty() {
            let mut weights = self.weights.iter().map(|w| (w.value.0, w.value.1.to_string()));
            writeln!(out, "weight = {}", pairs(&mut weights))?;
        }
        if !self.clocks.is_empty() {
            let mut clocks = self.clocks.iter().map(|c| (c.value.0, float(c.value.1)));
            writeln!(out, "clock = {}", pairs(&mut clocks))?;
        }
        if self.drift.value != 0.0 {
            writeln!(out, "drift = {}", float(self.drift.value))?;
        }
        if self.amnesia {
            writeln!(out, "amnesia = true")?;
        }
        if let Some(until) = self.until {
            writeln!(out, "until = \"{until}\"")?;
        }
        if !self.choices.is_empty() {
            let choices: Vec<u64> = self.choices.iter().map(|&choice| choice.into()).collect();
            writeln!(out, "choices = {}", list(&choices))?;
        }
        self.write_network(out)?;
        self.write_config(out)?;
        self.write_events(out)?;
        self.write_fates(out)?;
        self.write_expectation(out)
    }

    fn write_network(&self, out: &mut String) -> fmt::Result {
        if self.network != Weather::default() {
            let weather = &self.network;
            writeln!(out, "\n[network]\ndelay = \"{}\"", weather.delay)?;
            writeln!(out, "loss = {}", float(weather.loss.value))?;
            writeln!(out, "duplicate = {}", float(weather.duplicate.value))?;
            writeln!(out, "fifo = {}", weather.fifo)?;
        }
        for link in &self.links {
            let link = &link.value;
            writeln!(out, "\n[[link]]\nfrom = {}\nto = {}", link.from, link.to)?;
            if let Some(delay) = link.delay {
                writeln!(out, "delay = \"{delay}\"")?;
            }
            for (key, value) in [("loss", link.loss), ("duplicate", link.duplicate)] {
                if let Some(value) = value {
                    writeln!(out, "{key} = {}", float(value))?;
                }
            }
        }
        Ok(())
    }

    fn write_config(&self, out: &mut String) -> fmt::Result {
        if self.config.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n[config]")?;
        for (name, value) in &self.config {
            writeln!(out, "{} = {}", key(name), value.value)?;
        }
        Ok(())
    }

    /// Events of one moment share a table as long as their order allows: a table has each key once.
    fn write_events(&self, out: &mut String) -> fmt::Result {
        let mut events = self.events.iter().peekable();
        while let Some(event) = events.next() {
            let word = event.act.word();
            let mut items = vec![item(&event.act)];
            let joins = |next: &&super::Event| {
                next.at == event.at && next.act.word() == word && can_list(&next.act)
            };
            while can_list(&event.act)
                && let Some(next) = events.next_if(joins)
            {
                items.push(item(&next.act));
            }
            writeln!(out, "\n[[at]]\ntime = \"{}\"", event.at)?;
            match can_list(&event.act) {
                true => writeln!(out, "{word} = [{}]", items.join(", "))?,
                false => writeln!(out, "{word} = {}", items[0])?,
            }
        }
        Ok(())
    }

    fn write_fates(&self, out: &mut String) -> fmt::Result {
        for message in &self.messages {
            let arrives = message.value.arrives.iter().map(|time| format!("\"{time}\""));
            let arrives = arrives.collect::<Vec<_>>().join(", ");
            writeln!(out, "\n[[message]]\nnumber = {}", message.value.number)?;
            writeln!(out, "arrives = [{arrives}]")?;
        }
        for timer in &self.timers {
            let (number, after) = (timer.value.number, timer.value.after);
            writeln!(out, "\n[[timer]]\nnumber = {number}\nafter = \"{after}\"")?;
        }
        Ok(())
    }

    fn write_expectation(&self, out: &mut String) -> fmt::Result {
        let Some(expect) = &self.expect else { return Ok(()) };
        writeln!(out, "\n[expect]")?;
        if let Some(outcome) = &expect.outcome {
            writeln!(out, "outcome = {}", quoted(outcome))?;
        }
        match expect.leader {
            Some(Some(leader)) => writeln!(out, "leader = {leader}")?,
            Some(None) => writeln!(out, "leader = \"none\"")?,
            None => (),
        }
        let lists = [
            ("declared", &expect.declared),
            ("entered", &expect.entered),
            ("waiting", &expect.waiting),
        ];
        for (key, uids) in lists {
            if let Some(uids) = uids {
                writeln!(out, "{key} = {}", list(uids))?;
            }
        }
        let numbers = [
            ("refused_by_fence", expect.refused_by_fence),
            ("messages", expect.messages),
            ("rounds", expect.rounds),
        ];
        for (key, number) in numbers {
            if let Some(number) = number {
                writeln!(out, "{key} = {number}")?;
            }
        }
        if let Some(by_kind) = &expect.by_kind {
            let kinds: Vec<String> =
                by_kind.iter().map(|(kind, n)| format!("{} = {n}", key(kind))).collect();
            writeln!(out, "by_kind = {{ {} }}", kinds.join(", "))?;
        }
        if !expect.broken.is_empty() {
            let broken: Vec<String> = expect.broken.iter().map(|name| quoted(name)).collect();
            writeln!(out, "broken = [{}]", broken.join(", "))?;
        }
        Ok(())
    }
}

fn write_wiring(wiring: &Wiring, out: &mut String) -> fmt::Result {
    match wiring {
        Wiring::Complete => writeln!(out, "topology = \"complete\""),
        Wiring::Ring => writeln!(out, "topology = \"ring\""),
        Wiring::Star => writeln!(out, "topology = \"star\""),
        Wiring::Line => writeln!(out, "topology = \"line\""),
        Wiring::Grid => writeln!(out, "topology = \"grid\""),
        Wiring::Random(share) => writeln!(out, "topology = \"random:{share}\""),
        Wiring::Edges(edges) => {
            let edges: Vec<String> = edges.iter().map(|(a, b)| format!("[{a}, {b}]")).collect();
            writeln!(out, "edges = [{}]", edges.join(", "))
        }
    }
}

/// Whether several such acts can stand in one list.
fn can_list(act: &Act) -> bool {
    !matches!(act, Act::Start(Whom::All) | Act::Partition(_) | Act::Heal(None))
}

fn item(act: &Act) -> String {
    let wire = |from: &u64, to: &u64, both: &bool| match both {
        true => format!("[{from}, {to}]"),
        false => format!("\"{from}>{to}\""),
    };
    let whom = |whom: &Whom| match whom {
        Whom::All => "\"all\"".to_owned(),
        Whom::One(uid) => uid.to_string(),
    };
    match act {
        Act::Start(who) => whom(who),
        Act::Suspect { node, of } => format!("{{ node = {node}, of = {of} }}"),
        Act::Acquire { who, hold } => format!("{{ node = {}, hold = \"{hold}\" }}", whom(who)),
        Act::Withdraw(uid) => uid.to_string(),
        Act::Crash { node, unsent: false } | Act::Restart { node, amnesia: false } => {
            node.to_string()
        }
        Act::Crash { node, unsent: true } => format!("{{ node = {node}, unsent = true }}"),
        Act::Restart { node, amnesia: true } => format!("{{ node = {node}, amnesia = true }}"),
        Act::Pause { node, span } => format!("{{ node = {node}, for = \"{span}\" }}"),
        Act::Partition(groups) => {
            let groups: Vec<String> = groups.iter().map(|group| list(group)).collect();
            format!("[{}]", groups.join(", "))
        }
        Act::Heal(None) => "true".to_owned(),
        Act::Cut { from, to, both } | Act::Heal(Some((from, to, both))) => wire(from, to, both),
    }
}

fn list(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("[{}]", numbers.join(", "))
}

fn key(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(plain) { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn float(number: f64) -> String {
    toml::Value::Float(number).to_string()
}
