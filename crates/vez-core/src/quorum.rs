//! Quorum systems: for every process a set of processes it is in, any two of which meet.
//!
//! Who has the permission of a whole such set is alone in having one: any other set lacks the
//! member they share.

use crate::{NodeId, NodeSet};

/// The row and the column of `node` when `n` processes fill a square in index order. About 2√n
/// members, for any `n`: two sets meet where the row of one crosses the column of the other, and
/// of the two crossings at least one lies above a last row that is not full.
pub fn grid(n: u32, node: NodeId) -> NodeSet {
    assert!(node.0 < n);
    let side = n.isqrt();
    let width = if side * side < n { side + 1 } else { side };
    let row = node.0 / width * width;
    let rows = row..n.min(row + width);
    let columns = (node.0 % width..n).step_by(width as usize);
    rows.chain(columns).map(NodeId).collect()
}

/// A line of the finite projective plane of `n` points, about √n members: any two lines meet in
/// exactly one point, and every process is in as many lines as a line has points, so that all
/// carry the same load. `None` where no plane is listed; see [`plane_sizes`].
pub fn plane(n: u32, node: NodeId) -> Option<NodeSet> {
    assert!(node.0 < n);
    let (_, differences) = PLANES.iter().find(|(points, _)| *points == n)?;
    Some(differences.iter().map(|difference| NodeId((node.0 + difference) % n)).collect())
}

/// The numbers of processes that [`plane`] knows.
pub fn plane_sizes() -> impl Iterator<Item = u32> {
    PLANES.iter().map(|&(points, _)| points)
}

/// Cyclic difference sets: every number below `n` but 0 is the difference of exactly one pair.
const PLANES: [(u32, &[u32]); 6] = [
    (3, &[0, 1]),
    (7, &[0, 1, 3]),
    (13, &[0, 1, 3, 9]),
    (21, &[0, 1, 4, 14, 16]),
    (31, &[0, 1, 3, 8, 12, 18]),
    (57, &[0, 1, 3, 13, 32, 36, 43, 52]),
];

#[cfg(test)]
mod tests {
    use super::{grid, plane, plane_sizes};
    use crate::{NodeId, NodeSet};

    fn all(n: u32, of: impl Fn(u32, NodeId) -> NodeSet) -> Vec<NodeSet> {
        (0..n).map(|i| of(n, NodeId(i))).collect()
    }

    #[test]
    fn any_two_sets_of_a_grid_meet_and_everyone_is_in_its_own() {
        for n in 1..=64 {
            let sets = all(n, grid);
            for (i, set) in sets.iter().enumerate() {
                assert!(set.contains(&NodeId(i as u32)), "{n}: {i}");
                assert!(set.iter().all(|member| member.0 < n), "{n}: {i}");
                assert!(sets.iter().all(|other| !set.is_disjoint(other)), "{n}: {i}");
            }
        }
    }

    #[test]
    fn a_full_square_gives_two_sides_less_the_corner() {
        for side in 1..=8_u32 {
            let sets = all(side * side, grid);
            assert!(sets.iter().all(|set| set.len() as u32 == 2 * side - 1), "{side}");
        }
        let middle: Vec<u32> = grid(9, NodeId(4)).iter().map(|member| member.0).collect();
        assert_eq!(middle, [1, 3, 4, 5, 7]);
    }

    #[test]
    fn a_last_row_that_is_not_full_leaves_columns_short_and_nobody_out() {
        let sets: Vec<Vec<u32>> =
            all(5, grid).iter().map(|set| set.iter().map(|member| member.0).collect()).collect();
        // 0 1 2
        // 3 4
        let expected: [&[u32]; 5] =
            [&[0, 1, 2, 3], &[0, 1, 2, 4], &[0, 1, 2], &[0, 3, 4], &[1, 3, 4]];
        assert_eq!(sets, expected);
    }

    #[test]
    fn any_two_lines_of_a_plane_meet_in_one_point_and_all_bear_the_same_load() {
        assert_eq!(plane_sizes().collect::<Vec<_>>(), [3, 7, 13, 21, 31, 57]);
        for n in plane_sizes() {
            let lines = all(n, |n, node| plane(n, node).unwrap());
            let size = lines[0].len();
            assert_eq!(size * (size - 1) + 1, n as usize, "q² + q + 1 points, q + 1 on a line");
            for (i, line) in lines.iter().enumerate() {
                assert!(line.contains(&NodeId(i as u32)), "{n}: {i}");
                for other in &lines[i + 1..] {
                    assert_eq!(line.intersection(other).count(), 1, "{n}: {i}");
                }
                let load = lines.iter().filter(|line| line.contains(&NodeId(i as u32))).count();
                assert_eq!(load, size, "{n}: {i}");
            }
        }
        for n in (1..=64).filter(|n| plane_sizes().all(|size| size != *n)) {
            assert_eq!(plane(n, NodeId(0)), None);
        }
    }
}
