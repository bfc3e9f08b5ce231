//! Chance: the system's, or that of a simulation, which has all of it from one seed.

use std::cell::RefCell;
use std::convert::Infallible;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _, TryRng};

thread_local! {
    static SEEDED: RefCell<Option<StdRng>> = const { RefCell::new(None) };
}

/// From now on all chance on this thread comes from the seed.
pub fn seed(seed: u64) {
    SEEDED.set(Some(StdRng::seed_from_u64(seed)));
}

/// A name that nobody else has, and that is not 0.
pub(crate) fn id() -> u64 {
    Chance.next_u64().max(1)
}

#[derive(Clone, Copy, Debug)]
pub struct Chance;

impl TryRng for Chance {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(SEEDED.with_borrow_mut(|seeded| match seeded {
            Some(seeded) => seeded.next_u32(),
            None => rand::rng().next_u32(),
        }))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(SEEDED.with_borrow_mut(|seeded| match seeded {
            Some(seeded) => seeded.next_u64(),
            None => rand::rng().next_u64(),
        }))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        SEEDED.with_borrow_mut(|seeded| match seeded {
            Some(seeded) => seeded.fill_bytes(bytes),
            None => rand::rng().fill_bytes(bytes),
        });
        Ok(())
    }
}
