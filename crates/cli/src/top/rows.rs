//! The lines that each section gets.

/// Divides `lines` among sections that want so many rows, in their order: each gets one, then a second, and so on. The
/// first sections get the rest. A section without rows gets none.
pub(super) fn shared(lines: usize, wanted: &[usize]) -> Vec<usize> {
    let mut given = vec![0; wanted.len()];
    let mut left = lines;
    loop {
        let before = left;
        for (given, wanted) in given.iter_mut().zip(wanted) {
            if left > 0 && *given < *wanted {
                *given += 1;
                left -= 1;
            }
        }
        if left == before || left == 0 {
            return given;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_section_gets_a_line_before_any_gets_a_second() {
        for (lines, wanted, given) in [
            (0, &[3, 3][..], &[0, 0][..]),
            (1, &[3, 3], &[1, 0]),
            (5, &[3, 3], &[3, 2]),
            (9, &[3, 3], &[3, 3]),
            (4, &[1, 0, 9], &[1, 0, 3]),
            (3, &[], &[]),
        ] {
            assert_eq!(shared(lines, wanted), given, "{lines} {wanted:?}");
        }
    }
}
