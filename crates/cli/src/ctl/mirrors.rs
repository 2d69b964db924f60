//! The legs of a mirror in `headtime ctl status`.

use server::status::Mirror;

/// Lines about a mirror.
pub(super) fn describe_mirror(mirror: &Mirror) -> String {
    let legs = mirror.legs.iter().enumerate();
    let mut text: String = legs
        .map(|(leg, of)| format!("  leg {leg}        {}: {}\n", of.state, of.path))
        .collect();
    if mirror.to_copy_bytes > 0 {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        text += &format!(
            "  to copy      {:.0} of {:.0} MB, of which {:.0} MB cannot be read\n",
            mb(mirror.to_copy_bytes),
            mb(mirror.data_bytes),
            mb(mirror.unreadable_bytes),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use server::status::Leg;

    use super::*;

    #[test]
    fn legs_and_what_is_left_to_copy_are_told() {
        let leg = |path: &str, state: &str| Leg {
            path: path.to_owned(),
            state: state.to_owned(),
        };
        let mut mirror = Mirror {
            legs: vec![leg("/dev/sdb", "in sync"), leg("/dev/sdc", "being filled")],
            data_bytes: 20_000_000,
            to_copy_bytes: 5_000_000,
            unreadable_bytes: 1_000_000,
            marked_bytes: 5_000_000,
        };
        assert_eq!(
            describe_mirror(&mirror),
            "  leg 0        in sync: /dev/sdb\n  leg 1        being filled: /dev/sdc\n  to copy      5 of 20 MB, \
             of which 1 MB cannot be read\n"
        );
        mirror.to_copy_bytes = 0;
        assert!(!describe_mirror(&mirror).contains("to copy"));
    }
}
