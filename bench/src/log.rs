//! What keeps a replicated log: engines beside the bare file they all end in. Appends that are
//! durable when they return, one `fdatasync` a batch.

mod engines;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use self::engines::{Bare, Fjall, Log, Ours, RaftEngine, Redb};
use crate::measure::{Rates, Sample, in_turns};
use crate::sim::Scale;
use crate::table::Table;

/// What a lock's command weighs, about.
const ENTRY_BYTES: usize = 200;

const NAMES: [&str; 5] = ["bare", "ours", "raft-engine", "fjall", "redb"];

pub(crate) fn measure(scale: Scale) -> Table {
    let mut table = Table::default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/logs");
    if let Err(error) = run(&mut table, scale, &root) {
        table.leave_out(format!("the logs: {error:#}"));
    }
    let _ = fs::remove_dir_all(&root);
    table
}

/// One engine with its directory and where it stands.
struct Contestant {
    log: Option<Box<dyn Log>>,
    open: fn(&Path) -> anyhow::Result<Box<dyn Log>>,
    directory: PathBuf,
    next: u64,
}

impl Contestant {
    fn new<L: Log + 'static>(root: &Path, name: &str) -> anyhow::Result<Self> {
        let open = |directory: &Path| -> anyhow::Result<Box<dyn Log>> {
            Ok(Box::new(L::open(directory)?))
        };
        let directory = root.join(name);
        fs::create_dir_all(&directory)?;
        Ok(Self { log: Some(open(&directory)?), open, directory, next: 1 })
    }

    fn log(&mut self) -> &mut dyn Log {
        self.log.as_deref_mut().expect("it is open")
    }

    /// Appends so many batches, each of so many entries.
    fn append(&mut self, batches: u32, size: usize) -> u64 {
        let batch = vec![vec![7; ENTRY_BYTES]; size];
        for _ in 0..batches {
            let next = self.next;
            self.log().append(next, &batch).expect("there is room");
            self.next += size as u64;
        }
        u64::from(batches)
    }

    fn vote(&mut self, times: u32) -> u64 {
        for time in 0..times {
            self.log().vote(&time.to_be_bytes()).expect("there is room");
        }
        u64::from(times)
    }

    /// Cuts the last ten entries off and appends others.
    fn cut(&mut self, times: u32) -> u64 {
        for _ in 0..times {
            self.append(1, 10);
            self.next -= 10;
            let (after, last) = (self.next - 1, self.next + 9);
            self.log().truncate(after, last).expect("there is room");
        }
        u64::from(times)
    }

    fn purge(&mut self, keep: u64) -> u64 {
        let upto = self.next - 1 - keep;
        self.log().purge(upto).expect("there is room");
        1
    }

    fn reopen(&mut self) -> u64 {
        self.log = None;
        self.log = Some((self.open)(&self.directory).expect("it was just there"));
        let found = self.log().entries().expect("all can be read");
        assert_eq!(found, self.next - 1, "an acknowledged entry is lost");
        1
    }

    fn kilobytes(&self) -> anyhow::Result<f64> {
        Ok(used(&self.directory)? as f64 / 1e3)
    }
}

fn used(directory: &Path) -> anyhow::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut sum = 0;
    for entry in fs::read_dir(directory).context("the log's directory")? {
        let (path, metadata) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        sum += if metadata.is_dir() { used(&path)? } else { metadata.blocks() * 512 };
    }
    Ok(sum)
}

fn run(table: &mut Table, scale: Scale, root: &Path) -> anyhow::Result<()> {
    let _ = fs::remove_dir_all(root);
    let mut all = [
        Contestant::new::<Bare>(root, NAMES[0])?,
        Contestant::new::<Ours>(root, NAMES[1])?,
        Contestant::new::<RaftEngine>(root, NAMES[2])?,
        Contestant::new::<Fjall>(root, NAMES[3])?,
        Contestant::new::<Redb>(root, NAMES[4])?,
    ];
    let rounds = scale.pick(9, 3) as usize;
    let times = scale.pick(50, 20);
    for size in [1, 64] {
        let rates = turns(rounds, &mut all, |log| log.append(times, size));
        rows(table, &format!("batches of {size} appended"), "/s", &rates);
    }
    rows(table, "votes saved", "/s", &turns(rounds, &mut all, |log| log.vote(times)));
    rows(table, "tails of 10 cut", "/s", &turns(rounds, &mut all, |log| log.cut(times / 5)));
    // As many as may lie between two snapshots.
    for log in &mut all {
        log.append(100, 500);
    }
    let opened = turns(3, &mut all, Contestant::reopen);
    rows(table, "opened with some 50,000 entries", "/s", &opened);
    sizes(table, "disk, some 50,000 entries", &all)?;
    rows(table, "all but 1,000 purged", "/s", &turns(0, &mut all, |log| log.purge(1_000)));
    sizes(table, "disk, once purged", &all)
}

/// Lets all do the same, one after the other. With no rounds the one turn there is counts.
fn turns(
    rounds: usize,
    all: &mut [Contestant; 5],
    work: impl Fn(&mut Contestant) -> u64,
) -> [Rates; 5] {
    let work = &work;
    let mut turns = all.each_mut().map(|log| move || Sample::on_the_wall(|| work(log)));
    match rounds {
        0 => turns.map(|mut turn| Rates::once(turn())),
        _ => {
            let [bare, first, second, third, fourth] = &mut turns;
            in_turns(rounds, [bare, first, second, third, fourth])
        }
    }
}

fn rows(table: &mut Table, what: &str, unit: &'static str, rates: &[Rates; 5]) {
    let bare = &rates[0];
    for (name, rates) in NAMES.iter().zip(rates).skip(1) {
        let against = ("bare file", bare.median());
        let name = format!("{what}, {name}");
        table.compare(name, (rates.median(), unit), against, rates.over(bare), None);
    }
}

fn sizes(table: &mut Table, what: &str, all: &[Contestant; 5]) -> anyhow::Result<()> {
    let bare = all[0].kilobytes()?;
    for (name, log) in NAMES.iter().zip(all).skip(1) {
        let (name, figure) = (format!("{what}, {name}"), log.kilobytes()?);
        table.compare(name, (figure, "kB"), ("bare file", bare), figure / bare, None);
    }
    Ok(())
}
