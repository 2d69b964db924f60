//! The profile file of a drive of two actuators whose ranges were profiled separately.

/// The profile file of a drive, from the profile files of its two ranges in the order of their blocks.
/// `name` is a file name without extension, in kebab case.
pub fn of_ranges(name: &str, ranges: &[String; 2]) -> String {
    let top = format!(
        "name = \"{name}\"\nmodel = \"{name}\"\nprovenance = \"profiled\"\norigin = \"profiled by Headtime: the \
         range of each actuator as a drive of its own\"\nactuators = 2\n"
    );
    ranges
        .iter()
        .fold(top, |text, range| text + "\n[[range]]\n" + &inside(range))
}

/// A profile file as a table `[[range]]`: headings begin their lines, values do not.
fn inside(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let heading = |rest| format!("{rest}\n");
        match (line.strip_prefix("[["), line.strip_prefix('[')) {
            (Some(rest), _) => heading(format!("[[range.{rest}")),
            (_, Some(rest)) => heading(format!("[range.{rest}")),
            _ => heading(line.to_owned()),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use drive::Profile;

    use super::*;
    use crate::{DriveIdentity, Findings, Offers, WritePermission};

    #[test]
    fn two_ranges_are_a_profile_of_two_actuators() {
        let text = |blocks, name: &str| {
            let device = DriveIdentity {
                blocks,
                block_bytes: 4096,
                physical_block_bytes: 4096,
                depth: 8,
                offers: Offers::Nothing,
                writes: WritePermission::Forbidden,
            };
            super::super::text(&Findings::default(), &device, name)
        };
        let ranges = [text(1000, "sdb-range-0"), text(1200, "sdb-range-1")];
        let profile = Profile::parse(&of_ranges("sdb", &ranges), "sdb.toml").expect("a profile");
        assert_eq!((profile.name.as_str(), profile.actuators), ("sdb", 2));
        assert_eq!(profile.geometry.sectors().0, 2200);
        assert_eq!(profile.share_end(0), 1000);
        assert!(
            profile
                .confidence
                .is_some_and(|found| found.doubt().is_some())
        );
    }
}
