//! Names at the ends of lines: as near as they may be without lying on each other.

/// Moves heights apart so that they are `gap` from each other and all between `top` and `bottom`;
/// they keep their order, and come back in the order given.
pub(super) fn apart(heights: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    // Heaps of labels that touch, each as (sum of what its members want, members).
    let mut heaps: Vec<(f64, Vec<usize>)> = Vec::new();
    let start = |heap: &(f64, Vec<usize>)| {
        let length = gap * (real(heap.1.len()) - 1.0);
        let wanted = heap.0 / real(heap.1.len()) - length / 2.0;
        wanted.min(bottom - length).max(top)
    };
    for index in order {
        let mut heap = (heights[index], vec![index]);
        while let Some(above) = heaps.last() {
            if start(above) + gap * real(above.1.len()) <= start(&heap) {
                break;
            }
            let mut above = heaps.pop().expect("there is one");
            above.0 += heap.0;
            above.1.append(&mut heap.1);
            heap = above;
        }
        heaps.push(heap);
    }
    let mut placed = vec![0.0; heights.len()];
    for heap in &heaps {
        for (rank, &index) in heap.1.iter().enumerate() {
            placed[index] = start(heap) + gap * real(rank);
        }
    }
    placed
}

/// Rows for labels beside each other, each from a left to a right end: the first row in which a
/// label meets none set before it.
pub(super) fn rows(labels: &[(f64, f64)]) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::new();
    for (index, &(left, right)) in labels.iter().enumerate() {
        let taken = |row: usize| {
            (0..index).any(|other| {
                rows[other] == row && left < labels[other].1 && labels[other].0 < right
            })
        };
        // At worst a row for every label.
        let row = (0..=index).find(|&row| !taken(row)).unwrap_or(index);
        rows.push(row);
    }
    rows
}

fn real(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::{apart, rows};

    #[test]
    fn what_has_room_stays_where_it_is() {
        assert_eq!(apart(&[80.0, 10.0, 40.0], 15.0, 0.0, 100.0), [80.0, 10.0, 40.0]);
    }

    #[test]
    fn what_collides_is_moved_apart_around_its_middle() {
        assert_eq!(apart(&[50.0, 50.0, 50.0], 10.0, 0.0, 100.0), [40.0, 50.0, 60.0]);
        assert_eq!(apart(&[1.0, 2.0], 10.0, 0.0, 100.0), [0.0, 10.0]);
        assert_eq!(apart(&[99.0, 100.0], 10.0, 0.0, 100.0), [90.0, 100.0]);
        // Moving one pair apart may push it against a third.
        let placed = apart(&[50.0, 51.0, 57.0, 95.0], 10.0, 0.0, 100.0);
        assert!(placed.windows(2).all(|pair| pair[0] + 10.0 <= pair[1] + 1e-9), "{placed:?}");
    }

    #[test]
    fn labels_that_would_meet_take_turns() {
        assert_eq!(rows(&[(0.0, 50.0), (40.0, 90.0), (60.0, 100.0), (45.0, 55.0)]), [0, 1, 0, 2]);
    }
}
