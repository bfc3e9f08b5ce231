//! The lot that decides: a hash of a process and a round, the same everywhere.

use serde::{Deserialize, Serialize};

/// Names a round of an election, and no other. The newest wins over all before it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Tag {
    /// Elections and their rounds are counted together, so that no filter is used twice.
    pub number: u64,
    pub initiator: u64,
}

/// The lot of the process `uid` under `tag`, uniform over all 64-bit numbers: three rounds of a
/// finalizer whose every output bit depends on every input bit.
pub fn lot(uid: u64, tag: Tag) -> u64 {
    mix(mix(mix(uid) ^ tag.number) ^ tag.initiator)
}

fn mix(input: u64) -> u64 {
    let mut z = input.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Whether a lot is among the lowest `wanted` out of `total`, on average.
pub fn passes(lot: u64, wanted: u32, total: u64) -> bool {
    u128::from(lot) * u128::from(total) < u128::from(wanted) << 64
}

#[cfg(test)]
mod tests {
    use super::{Tag, lot, passes};

    #[test]
    fn lots_are_spread_evenly_and_anew_for_every_tag() {
        let tags = [(1, 1), (1, 2), (2, 1), (900, 7)];
        let tags = tags.map(|(number, initiator)| Tag { number, initiator });
        for tag in tags {
            // A χ² test with 15 degrees of freedom: 37.7 is exceeded once in a thousand.
            let mut cells = [0_i64; 16];
            (1..=16_000).for_each(|uid| cells[(lot(uid, tag) >> 60) as usize] += 1);
            let squares: i64 = cells.iter().map(|count| (count - 1_000).pow(2)).sum();
            assert!(squares / 1_000 < 38, "{tag:?}: {cells:?}");
        }
        // Who passes under one tag passes under another only by chance.
        let both = |uid: &u64| tags[..2].iter().all(|&tag| passes(lot(*uid, tag), 100, 1_000));
        let both = (1..=10_000).filter(both).count();
        assert!((60..140).contains(&both), "{both}");
    }

    #[test]
    fn as_many_pass_as_wanted_and_everyone_if_all_are() {
        let tag = Tag { number: 3, initiator: 1 };
        let passing = (1..=100_000).filter(|&uid| passes(lot(uid, tag), 8, 100)).count();
        assert!((7_700..8_300).contains(&passing), "{passing}");
        assert!((1..=1_000).all(|uid| passes(lot(uid, tag), 8, 8)));
        assert!(!passes(u64::MAX, 1, 2) && passes(u64::MAX, 2, 2) && !passes(0, 0, 2));
    }
}
