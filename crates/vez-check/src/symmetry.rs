//! States that differ only by who is who.
//!
//! A renaming turns every process into another. If whatever happens to the renamed is what happened
//! to the others, renamed, then of all states that are each other's renamings one is enough.
//!
//! No algorithm says how its states and messages are renamed: it is found out. The unborn are
//! renamed by definition. When a process reacts, so does its namesake, to the event renamed; what
//! the one becomes, says and tells is renamed to what the other does. If that ever contradicts what
//! was found before, or if the two differ in what shows, then who is who matters, and the search
//! begins again with fewer renamings. What stands in the end commutes with every step that was
//! taken: it has been tried, not argued.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::archive::open;
use crate::code::Code;
use crate::intern::{PairMap, mix};
use crate::knowledge::{Answer, Case, Knowledge, Portrait, Ruling};
use crate::mind::{LOCALS, Mind, OF_ITEM, OF_LOCAL, OF_SPEC, OF_WEATHER, SPEC, WEATHER};
use crate::setting::Setting;

/// Who becomes whom.
type Renaming = Vec<u32>;

/// A group of renamings, and what they make of everything known.
pub(crate) struct Symmetry {
    /// The first changes nothing.
    renamings: Vec<Renaming>,
    /// What the second renaming and then the first come to.
    products: Vec<Vec<usize>>,
    images: Mutex<Images>,
    is_broken: AtomicBool,
}

#[derive(Default)]
struct Images {
    locals: Kind,
    packets: Kind,
    specs: Kind,
    testimonies: Kind,
    requests: Kind,
    /// Reactions and rulings that have been looked at.
    reactions: PairMap,
    rulings: PairMap,
}

/// What each number becomes under each renaming; nothing, if that is not known.
#[derive(Default)]
struct Kind(Vec<Vec<u32>>);

/// Two that should be the same but for names are not.
#[derive(Clone, Copy, Debug)]
struct Differ;

/// Every permutation of more processes is more than pays.
const PERMUTED_MAX: u32 = 5;

/// The groups worth trying, the largest first.
pub(crate) fn groups(setting: Setting<'_>) -> Vec<Vec<Renaming>> {
    let topology = setting.topology;
    let n = topology.n();
    if n < 2 || 0 < setting.options.partitions {
        return Vec::new();
    }
    let links: BTreeSet<(u32, u32)> = topology.links().map(|(a, b)| (a.0, b.0)).collect();
    let is_link = |a, b| links.contains(&(a, b)) || links.contains(&(b, a));
    let keeps_links = |renaming: &Renaming| {
        let moved = |node: u32| renaming[node as usize];
        let mut pairs = (0..n).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.all(|(a, b)| is_link(a, b) == is_link(moved(a), moved(b)))
    };
    let all = if n <= PERMUTED_MAX { permutations(n) } else { Vec::new() };
    let all: Vec<Renaming> = all.into_iter().filter(&keeps_links).collect();
    let rotations: Vec<Renaming> =
        (0..n).map(|by| (0..n).map(|node| (node + by) % n).collect()).collect();
    let mut groups = vec![all.clone(), rotations.into_iter().filter(keeps_links).collect()];
    // One may be another than the rest: who coordinates, who holds the token first.
    for special in [0, n - 1] {
        let keeps = |renaming: &&Renaming| renaming[special as usize] == special;
        groups.push(all.iter().filter(keeps).cloned().collect());
    }
    groups.retain(|group| 1 < group.len());
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups.dedup();
    groups
}

fn permutations(n: u32) -> Vec<Renaming> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |some: &Renaming| {
            let rest = (0..n).filter(|next| !some.contains(next));
            rest.map(|next| [&some[..], &[next]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

impl Symmetry {
    pub(crate) fn new(mut renamings: Vec<Renaming>, lore: &mut dyn Knowledge) -> Self {
        // Users may not all ask as often.
        let portraits: Vec<Portrait> =
            (0..renamings[0].len() as u32).map(|i| lore.portray(i)).collect();
        renamings.retain(|renaming| {
            let mut pairs = portraits.iter().zip(renaming);
            pairs.all(|(one, &other)| one.is_like(&portraits[other as usize]))
        });
        renamings.sort();
        let product = |then: &Renaming, first: &Renaming| {
            let both: Renaming = first.iter().map(|&node| then[node as usize]).collect();
            renamings.binary_search(&both).expect("they are a group")
        };
        let row = |then| renamings.iter().map(|first| product(then, first)).collect();
        let products = renamings.iter().map(row).collect();
        let this = Self {
            renamings,
            products,
            images: Mutex::default(),
            is_broken: AtomicBool::new(false),
        };
        let begun = this.begin(&mut open(&this.images), lore);
        this.note(begun);
        this
    }

    /// How many ways there are to rename everyone, this one included.
    pub(crate) fn order(&self) -> usize {
        self.renamings.len()
    }

    /// Whether it has turned out that who is who matters.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }

    fn note(&self, result: Result<(), Differ>) {
        if result.is_err() {
            self.is_broken.store(true, Ordering::Relaxed);
        }
    }

    /// The unborn, the first spec and silence.
    fn begin(&self, images: &mut Images, lore: &mut dyn Knowledge) -> Result<(), Differ> {
        for node in 0..self.renamings[0].len() {
            let unborn: Vec<u32> = self.renamings.iter().map(|renaming| renaming[node]).collect();
            images.locals.put(&unborn, &self.products)?;
        }
        let firsts = vec![0; self.order()];
        images.testimonies.put(&firsts, &self.products)?;
        self.put_spec(images, &firsts, lore)
    }

    /// Looks at what namesakes do about an event.
    pub(crate) fn react(&self, lore: &mut dyn Knowledge, local: u32, code: Code) {
        let images = &mut open(&self.images);
        if self.is_broken() || images.reactions.get(local, code.word()).is_some() {
            return;
        }
        images.reactions.insert(local, code.word(), 0);
        self.note(self.try_react(images, lore, local, code));
    }

    fn try_react(
        &self,
        images: &mut Images,
        lore: &mut dyn Knowledge,
        local: u32,
        code: Code,
    ) -> Result<(), Differ> {
        let locals = images.locals.of(local).ok_or(Differ)?.to_vec();
        let mut answers: Vec<Vec<Answer>> = Vec::with_capacity(self.order());
        for (index, &namesake) in locals.iter().enumerate() {
            let event = images.rename(lore, (local, namesake), code, index).ok_or(Differ)?;
            answers.push(lore.react(namesake, event, Case::Real).to_vec());
        }
        if answers.iter().any(|namesakes| namesakes.len() != answers[0].len()) {
            return Err(Differ);
        }
        for way in 0..answers[0].len() {
            let ways: Vec<&Answer> = answers.iter().map(|answers| &answers[way]).collect();
            self.put_answer(images, lore, &ways)?;
        }
        Ok(())
    }

    fn put_answer(
        &self,
        images: &mut Images,
        lore: &mut dyn Knowledge,
        ways: &[&Answer],
    ) -> Result<(), Differ> {
        let first = ways[0];
        let differs = |way: &&Answer| {
            way.sent.len() != first.sent.len() || way.unexpected != first.unexpected
        };
        if ways.iter().any(differs) {
            return Err(Differ);
        }
        let locals: Vec<u32> = ways.iter().map(|way| way.next).collect();
        let portrait = lore.portray(first.next);
        if !locals.iter().all(|&local| lore.portray(local).is_like(&portrait)) {
            return Err(Differ);
        }
        images.locals.put(&locals, &self.products)?;
        let testimonies: Vec<u32> = ways.iter().map(|way| way.testimony).collect();
        images.testimonies.put(&testimonies, &self.products)?;
        // To everyone what its namesake is told.
        let sent: Vec<Vec<u32>> =
            ways.iter().zip(&self.renamings).map(|(way, names)| sorted(lore, way, names)).collect();
        for place in 0..first.sent.len() {
            let packets: Vec<u32> = sent.iter().map(|sent| sent[place]).collect();
            let (from, to) = lore.ends(packets[0]);
            for (&packet, names) in packets.iter().zip(&self.renamings) {
                if lore.ends(packet) != (names[from as usize], names[to as usize]) {
                    return Err(Differ);
                }
            }
            images.packets.put(&packets, &self.products)?;
        }
        Ok(())
    }

    /// Looks at what the spec makes of namesakes' words.
    pub(crate) fn rule(&self, lore: &mut dyn Knowledge, spec: u32, testimony: u32) {
        let images = &mut open(&self.images);
        if self.is_broken() || images.rulings.get(spec, testimony).is_some() {
            return;
        }
        images.rulings.insert(spec, testimony, 0);
        self.note(self.try_rule(images, lore, spec, testimony));
    }

    fn try_rule(
        &self,
        images: &mut Images,
        lore: &mut dyn Knowledge,
        spec: u32,
        testimony: u32,
    ) -> Result<(), Differ> {
        let specs = images.specs.of(spec).ok_or(Differ)?;
        let testimonies = images.testimonies.of(testimony).ok_or(Differ)?;
        let pairs: Vec<(u32, u32)> =
            specs.iter().copied().zip(testimonies.iter().copied()).collect();
        let rule = |(spec, testimony)| lore.rule(spec, testimony, Case::Real);
        let rulings: Vec<Ruling> = pairs.into_iter().map(rule).collect();
        let breaches: Vec<u32> = rulings.iter().map(|ruling| ruling.breach).collect();
        are_alike(lore, &breaches)?;
        let specs: Vec<u32> = rulings.iter().map(|ruling| ruling.spec).collect();
        self.put_spec(images, &specs, lore)
    }

    fn put_spec(
        &self,
        images: &mut Images,
        specs: &[u32],
        lore: &mut dyn Knowledge,
    ) -> Result<(), Differ> {
        if images.specs.of(specs[0]).is_some_and(|known| known == specs) {
            return Ok(());
        }
        let breaches: Vec<u32> = specs.iter().map(|&spec| lore.at_rest(spec)).collect();
        are_alike(lore, &breaches)?;
        for node in 0..self.renamings[0].len() {
            let asks = specs.iter().zip(&self.renamings);
            let asks: Vec<_> = asks.map(|(&spec, names)| lore.ask(spec, names[node])).collect();
            let duty = asks[0].map(|ask| ask.duty);
            if asks.iter().any(|ask| ask.map(|ask| ask.duty) != duty) {
                return Err(Differ);
            }
            let requests: Vec<u32> = asks.iter().flatten().map(|ask| ask.request).collect();
            if !requests.is_empty() {
                images.requests.put(&requests, &self.products)?;
            }
        }
        images.specs.put(specs, &self.products)
    }
}

/// What was said, by the names those it is said to had before they were renamed.
fn sorted(lore: &dyn Knowledge, way: &Answer, names: &[u32]) -> Vec<u32> {
    let mut sent = way.sent.clone();
    sent.sort_by_key(|&packet| {
        let (_, to) = lore.ends(packet);
        names.iter().position(|&name| name == to)
    });
    sent
}

/// Whether the same promise is broken under every renaming, or none.
fn are_alike(lore: &dyn Knowledge, breaches: &[u32]) -> Result<(), Differ> {
    let promise = |&breach: &u32| (breach != 0).then(|| lore.breach(breach).promise);
    let first = promise(&breaches[0]);
    if breaches.iter().all(|breach| promise(breach) == first) { Ok(()) } else { Err(Differ) }
}

impl Kind {
    fn of(&self, id: u32) -> Option<&[u32]> {
        self.0.get(id as usize).filter(|images| !images.is_empty()).map(Vec::as_slice)
    }

    /// Notes the images of one, and with it of all its images.
    fn put(&mut self, images: &[u32], products: &[Vec<usize>]) -> Result<(), Differ> {
        if self.of(images[0]).is_some_and(|known| known == images) {
            return Ok(());
        }
        for (first, &image) in images.iter().enumerate() {
            let index = image as usize;
            if self.0.len() <= index {
                self.0.resize(index + 1, Vec::new());
            }
            let of_image: Vec<u32> = products.iter().map(|then| images[then[first]]).collect();
            if !self.0[index].is_empty() && self.0[index] != of_image {
                return Err(Differ);
            }
            self.0[index] = of_image;
        }
        Ok(())
    }
}

impl Images {
    /// What happens to a process's namesake when `code` happens to it.
    fn rename(
        &self,
        lore: &mut dyn Knowledge,
        (local, namesake): (u32, u32),
        code: Code,
        renaming: usize,
    ) -> Option<Code> {
        Some(match code {
            Code::Hear(packet) => Code::Hear(self.packets.of(packet)?[renaming]),
            Code::Ask(request) => Code::Ask(self.requests.of(request)?[renaming]),
            Code::Fire(timer) => {
                let place = lore.portray(local).timers.iter().position(|&other| other == timer)?;
                Code::Fire(lore.portray(namesake).timers[place])
            }
            Code::Unsent(word) => {
                let bare = self.rename(lore, (local, namesake), Code::of(word), renaming)?;
                Code::Unsent(bare.word())
            }
            code => code,
        })
    }
}

/// Parts of fingerprints, under each renaming.
#[derive(Default)]
pub(crate) struct Faces {
    locals: Vec<Vec<u64>>,
    items: Vec<Vec<u64>>,
    specs: Vec<Vec<u64>>,
    sums: Vec<u64>,
}

impl Mind<'_> {
    /// A fingerprint that a world has in common with its renamings, and with no other.
    pub(crate) fn likeness(&mut self, world: &[u32]) -> u64 {
        let Some(symmetry) = self.symmetry.clone() else { return self.fingerprint(world) };
        let symmetry = &*symmetry;
        let mut faces = std::mem::take(&mut self.faces);
        faces.sums.clear();
        faces.sums.resize(symmetry.order(), self.part(OF_WEATHER, world[WEATHER]));
        let add = |sums: &mut [u64], face: &[u64]| {
            sums.iter_mut().zip(face).for_each(|(sum, &part)| *sum = sum.wrapping_add(part));
        };
        let spec = face(&mut faces.specs, world[SPEC], |id| self.draw(symmetry, OF_SPEC, id));
        add(&mut faces.sums, spec);
        let (locals, items) = world[LOCALS..].split_at(self.n);
        for &local in locals {
            let local = face(&mut faces.locals, local, |id| self.draw(symmetry, OF_LOCAL, id));
            add(&mut faces.sums, local);
        }
        for &item in items {
            let item = face(&mut faces.items, item, |id| self.draw(symmetry, OF_ITEM, id));
            add(&mut faces.sums, item);
        }
        let least = faces.sums.iter().copied().min().unwrap_or(0);
        self.faces = faces;
        // The least of many is small, and the tables want all sizes alike.
        mix(least)
    }

    /// The parts of one thing's renamings; of a queue, those of what is in it, in order.
    fn draw(&self, symmetry: &Symmetry, of: u64, id: u32) -> Vec<u64> {
        let packets = match of {
            OF_ITEM if self.is_fifo => open(&self.archive.queues).get(id).clone(),
            _ => vec![id],
        };
        let images = open(&symmetry.images);
        let kind = match of {
            OF_SPEC => &images.specs,
            OF_LOCAL => &images.locals,
            _ => &images.packets,
        };
        let mut parts = vec![0; symmetry.order()];
        for id in packets {
            for (part, &image) in parts.iter_mut().zip(kind.of(id).unwrap_or_default()) {
                *part = mix(*part ^ self.part(of, image));
            }
        }
        parts
    }
}

fn face(faces: &mut Vec<Vec<u64>>, id: u32, draw: impl FnOnce(u32) -> Vec<u64>) -> &[u64] {
    let index = id as usize;
    if faces.len() <= index {
        faces.resize(index + 1, Vec::new());
    }
    if faces[index].is_empty() {
        faces[index] = draw(id);
    }
    &faces[index]
}
