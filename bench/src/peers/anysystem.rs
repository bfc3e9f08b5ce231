//! anysystem: deterministic simulation of processes that exchange strings.

use anysystem::{Context, Message, Process, System};

use crate::measure::Sample;

#[expect(clippy::unnecessary_wraps, reason = "others may fail")]
pub(super) fn run(uids: &[u64]) -> anyhow::Result<Sample> {
    let n = uids.len();
    let mut system = System::new(1);
    system.network().set_delay(1.0);
    for (index, &uid) in uids.iter().enumerate() {
        let (node, name) = (format!("n{index}"), index.to_string());
        system.add_node(&node);
        let next = ((index + 1) % n).to_string();
        system.add_process(&name, Box::new(Candidate { uid, next }), &node);
    }
    Ok(Sample::of(|| {
        for index in 0..n {
            system.send_local_message(&index.to_string(), Message::new("START", ""));
        }
        system.step_until_no_events();
        system.network().network_message_count()
    }))
}

#[derive(Clone)]
struct Candidate {
    uid: u64,
    next: String,
}

impl Process for Candidate {
    fn on_message(&mut self, msg: Message, _: String, ctx: &mut Context) -> Result<(), String> {
        let uid: u64 = msg.data.parse().map_err(|_| "not a uid".to_owned())?;
        match msg.tip.as_str() {
            "ELECTION" if uid == self.uid => {
                ctx.send(Message::new("ELECTED".to_owned(), msg.data), self.next.clone());
            }
            "ELECTION" if uid < self.uid => (),
            "ELECTED" if uid == self.uid => (),
            _ => ctx.send(msg, self.next.clone()),
        }
        Ok(())
    }

    fn on_local_message(&mut self, _: Message, ctx: &mut Context) -> Result<(), String> {
        ctx.send(Message::new("ELECTION".to_owned(), self.uid.to_string()), self.next.clone());
        Ok(())
    }

    fn on_timer(&mut self, _: String, _: &mut Context) -> Result<(), String> {
        Ok(())
    }
}
