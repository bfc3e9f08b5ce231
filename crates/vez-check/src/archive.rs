//! All that has been learnt so far, shared by all who explore.
//!
//! **Invariant:** what a number stands for never changes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::intern::Intern;
use crate::knowledge::Knowledge;
use crate::setting::Setting;

/// What is left of the budgets for faults, and how the system is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Weather {
    pub(crate) crashes: u32,
    pub(crate) losses: u32,
    pub(crate) duplicates: u32,
    pub(crate) partitions: u32,
    /// Who is on the other side, a bit each; 0 while whole.
    pub(crate) side: u64,
}

impl Weather {
    pub(crate) fn separates(self, from: u32, to: u32) -> bool {
        (self.side >> from ^ self.side >> to) & 1 == 1
    }
}

pub(crate) struct Archive<'a> {
    pub(crate) setting: Setting<'a>,
    pub(crate) lore: Mutex<&'a mut (dyn Knowledge + 'a)>,
    /// What is in flight from one process to another, in order.
    pub(crate) queues: Mutex<Intern<Vec<u32>>>,
    pub(crate) weathers: Mutex<Intern<Weather>>,
}

impl<'a> Archive<'a> {
    pub(crate) fn new(setting: Setting<'a>, lore: &'a mut (dyn Knowledge + 'a)) -> Self {
        let options = setting.options;
        let mut weathers = Intern::default();
        weathers.id(Weather {
            crashes: options.crashes,
            losses: options.losses,
            duplicates: options.duplicates,
            partitions: options.partitions,
            side: 0,
        });
        Self {
            setting,
            lore: Mutex::new(lore),
            queues: Mutex::default(),
            weathers: Mutex::new(weathers),
        }
    }
}

pub(crate) fn open<T: ?Sized>(shelf: &Mutex<T>) -> MutexGuard<'_, T> {
    // A thread that panicked takes the whole search down with it; its lock tells nobody anything.
    shelf.lock().unwrap_or_else(PoisonError::into_inner)
}
