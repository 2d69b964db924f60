//! The legs of a mirror in `headtime ctl status`.

use server::status::{Mirror, Rebuild, RebuildMeans};

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
    if let Some(rebuild) = &mirror.rebuild {
        text += &describe_rebuild(rebuild);
    }
    text
}

/// A line about the filling of a leg.
fn describe_rebuild(rebuild: &Rebuild) -> String {
    let means = match rebuild.means {
        RebuildMeans::Gaps => "in gaps",
        RebuildMeans::Share => "in a share of the time, because gaps bring too little",
        RebuildMeans::Deadline => "in gaps and a paid share of the time, for the deadline",
    };
    let minutes = |seconds: f64| format!("{:.0} min", (seconds / 60.0).ceil());
    let left = rebuild.eta_s.map_or("unknown".to_owned(), minutes);
    let deadline = rebuild.deadline_s.map(|left| match left > 0.0 {
        true => format!(", the deadline in {}", minutes(left)),
        false => ", the deadline has passed".to_owned(),
    });
    format!(
        "  rebuild      {means}: {:.1} MB/s, time left {left}{}\n  \
         copied       {:.0} MB from gaps, {:.0} MB in {:.1} % of the time\n",
        rebuild.mb_per_s,
        deadline.unwrap_or_default(),
        rebuild.gap_bytes as f64 / 1e6,
        rebuild.paid_bytes as f64 / 1e6,
        rebuild.paid_percent,
    )
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
            rebuild: None,
        };
        assert_eq!(
            describe_mirror(&mirror),
            "  leg 0        in sync: /dev/sdb\n  leg 1        being filled: /dev/sdc\n  to copy      5 of 20 MB, \
             of which 1 MB cannot be read\n"
        );
        mirror.to_copy_bytes = 0;
        assert!(!describe_mirror(&mirror).contains("to copy"));
        assert!(!describe_mirror(&mirror).contains("rebuild"));
    }

    #[test]
    fn the_pace_of_a_copy_is_told_with_what_was_paid_for_it() {
        let rebuild = Rebuild {
            means: RebuildMeans::Deadline,
            gap_bytes: 4_000_000,
            paid_bytes: 1_000_000,
            paid_percent: 2.25,
            mb_per_s: 3.0,
            eta_s: Some(61.0),
            deadline_s: Some(3_600.0),
        };
        assert_eq!(
            describe_rebuild(&rebuild),
            "  rebuild      in gaps and a paid share of the time, for the deadline: 3.0 MB/s, time left 2 min, the \
             deadline in 60 min\n  copied       4 MB from gaps, 1 MB in 2.2 % of the time\n"
        );
        let late = Rebuild {
            eta_s: None,
            deadline_s: Some(0.0),
            ..rebuild
        };
        let told = describe_rebuild(&late);
        assert!(
            told.contains("time left unknown, the deadline has passed"),
            "{told}"
        );
    }
}
