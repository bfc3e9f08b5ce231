//! Whether there is a way round.

/// Whether some number leads back to itself.
pub(crate) fn goes_round(leads_to: &[Vec<u32>]) -> bool {
    let mut ways_in = vec![0_u32; leads_to.len()];
    for &next in leads_to.iter().flatten() {
        ways_in[next as usize] += 1;
    }
    let mut ready: Vec<u32> =
        (0..leads_to.len() as u32).filter(|&number| ways_in[number as usize] == 0).collect();
    let mut done = 0;
    while let Some(number) = ready.pop() {
        done += 1;
        for &next in &leads_to[number as usize] {
            ways_in[next as usize] -= 1;
            if ways_in[next as usize] == 0 {
                ready.push(next);
            }
        }
    }
    done < leads_to.len()
}

#[cfg(test)]
mod tests {
    use super::goes_round;

    #[test]
    fn a_way_round_is_found_however_long() {
        assert!(!goes_round(&[vec![1, 2, 2], vec![2], vec![]]));
        assert!(goes_round(&[vec![1], vec![2], vec![1]]));
        assert!(goes_round(&[vec![], vec![1]]));
    }
}
