//! What comes of an action: the fingerprint of the world after it, and, where that is new, the
//! world itself.

use crate::code::Code;
use crate::mind::{Action, LOCALS, Mind, NONE, OF_ITEM, OF_LOCAL, SPEC, WEATHER};

impl Mind<'_> {
    /// Has `code` happen to `node`, which uses up `item` unless that is `NONE`.
    #[inline]
    pub(crate) fn happen(
        &mut self,
        world: &[u32],
        fingerprint: u64,
        node: u32,
        code: Code,
        item: u32,
        actions: &mut Vec<Action>,
    ) {
        let local = world[LOCALS + node as usize];
        let code = code.word();
        let (first, end) = self.answers(local, code);
        let uses_up = item != NONE && !self.is_lossy;
        let mut before = fingerprint;
        if uses_up && !self.is_plain {
            before = before.wrapping_add(self.used_up(world[LOCALS + self.n + item as usize]));
        }
        for branch in first..end {
            let flat = self.flats[branch as usize];
            let mut after = if self.is_plain {
                before.wrapping_add(flat.whole)
            } else {
                before.wrapping_add(flat.delta).wrapping_add(self.sends(world, flat.sent))
            };
            let (mut spec, mut breach) = (world[SPEC], 0);
            if flat.testimony != 0 {
                let (ruling, change) = self.ruling(spec, flat.testimony);
                after = after.wrapping_add(change);
                (spec, breach) = (ruling.spec, ruling.breach);
            }
            actions.push(Action {
                fingerprint: after,
                code,
                node,
                item,
                uses_up,
                is_due: true,
                is_unexpected: flat.unexpected,
                branch,
                spec,
                weather: world[WEATHER],
                breach,
            });
        }
    }

    /// Has everything in flight be heard, on a plain network that does nothing else: what is done
    /// most, and so by itself.
    pub(crate) fn hear(&mut self, world: &[u32], fingerprint: u64, actions: &mut Vec<Action>) {
        let (locals, net) = world[LOCALS..].split_at(self.n);
        let (spec, weather) = (world[SPEC], world[WEATHER]);
        let mut last = NONE;
        for (item, &packet) in (0..).zip(net) {
            if packet == last {
                continue; // Of equal messages one is as good as another.
            }
            last = packet;
            let (_, node) = self.packet(packet);
            let code = Code::Hear(packet).word();
            let (first, end) = self.answers(locals[node as usize], code);
            for branch in first..end {
                let flat = &self.flats[branch as usize];
                let mut action = Action {
                    fingerprint: fingerprint.wrapping_add(flat.whole),
                    code,
                    node,
                    item,
                    uses_up: true,
                    is_due: true,
                    is_unexpected: flat.unexpected,
                    branch,
                    spec,
                    weather,
                    breach: 0,
                };
                let testimony = flat.testimony;
                if testimony != 0 {
                    let (ruling, change) = self.ruling(spec, testimony);
                    action.fingerprint = action.fingerprint.wrapping_add(change);
                    (action.spec, action.breach) = (ruling.spec, ruling.breach);
                }
                actions.push(action);
            }
        }
    }

    /// By how much these sends change the fingerprint.
    #[inline]
    fn sends(&mut self, world: &[u32], sent: (u32, u32)) -> u64 {
        if sent.0 == sent.1 {
            return 0;
        }
        let side = self.weather(world[WEATHER]).side;
        if self.is_fifo && side == 0 && sent.1 - sent.0 == 1 {
            let packet = self.sent[sent.0 as usize];
            let ends = self.packet(packet);
            for &id in &world[LOCALS + self.n..] {
                let queue = self.queue(id);
                if queue.ends == ends {
                    let longer = self.push(id, packet);
                    return self.part(OF_ITEM, longer).wrapping_sub(queue.part);
                }
            }
            let queue = self.push(NONE, packet);
            return self.part(OF_ITEM, queue);
        }
        let mut change = 0_u64;
        let mut net = std::mem::take(&mut self.scratch);
        net.clear();
        net.extend_from_slice(&world[LOCALS + self.n..]);
        self.send_into(&mut net, side, sent);
        for &item in &net {
            change = change.wrapping_add(self.part(OF_ITEM, item));
        }
        for &item in &world[LOCALS + self.n..] {
            change = change.wrapping_sub(self.part(OF_ITEM, item));
        }
        self.scratch = net;
        change
    }

    /// Puts what was sent in flight, unless it is cut off from where it should go.
    fn send_into(&mut self, net: &mut Vec<u32>, side: u64, sent: (u32, u32)) {
        for index in sent.0..sent.1 {
            let packet = self.sent[index as usize];
            let (from, to) = self.packet(packet);
            if (side >> from ^ side >> to) & 1 == 1 {
                continue;
            }
            if self.is_fifo {
                match (0..net.len()).find(|&at| self.queue(net[at]).ends == (from, to)) {
                    Some(at) => net[at] = self.push(net[at], packet),
                    None => net.push(self.push(NONE, packet)),
                }
            } else if !self.is_lossy || !net.contains(&packet) {
                net.push(packet);
            }
        }
    }

    /// Puts together the world after `action`.
    pub(crate) fn build(&mut self, world: &[u32], action: &Action, after: &mut Vec<u32>) {
        after.clear();
        after.extend_from_slice(&world[..LOCALS + self.n]);
        (after[SPEC], after[WEATHER]) = (action.spec, action.weather);
        let mut net = std::mem::take(&mut self.scratch);
        net.clear();
        net.extend_from_slice(&world[LOCALS + self.n..]);
        if action.uses_up {
            let index = action.item as usize;
            let rest = if self.is_fifo { self.queue(net[index]).rest } else { NONE };
            if rest == NONE {
                net.remove(index);
            } else {
                net[index] = rest;
            }
        }
        if action.branch != NONE {
            let flat = self.flats[action.branch as usize];
            after[LOCALS + action.node as usize] = flat.next;
            let side = self.weather(world[WEATHER]).side;
            self.send_into(&mut net, side, flat.sent);
        }
        if let Code::Pass(_) = Code::of(action.code) {
            for local in &mut after[LOCALS..] {
                let (flat, _) = self.answers(*local, action.code);
                *local = self.flats[flat as usize].next;
            }
        }
        net.sort_unstable();
        after.extend_from_slice(&net);
        self.scratch = net;
        debug_assert_eq!(self.fingerprint(after), action.fingerprint);
    }

    /// By how much a process that becomes another changes the fingerprint.
    pub(crate) fn becoming(&self, local: u32, next: u32) -> u64 {
        self.part(OF_LOCAL, next).wrapping_sub(self.part(OF_LOCAL, local))
    }
}
