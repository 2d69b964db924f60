//! Scrubs in `headtime ctl status`.

use server::checksums::report::ScrubState;
use server::status::ScrubStatus;

/// A line for a volume with checksums: the answer first.
pub(super) fn describe_scrub(scrub: &ScrubStatus) -> String {
    let damaged = scrub.changed + scrub.unreadable;
    let mut parts = vec![match damaged {
        0 => String::from("no damage"),
        count => format!(
            "{count} places damaged ({} changed, {} unreadable)",
            scrub.changed, scrub.unreadable
        ),
    }];
    if scrub.late_by_s > 0 {
        parts.push(format!("late by {}", span(scrub.late_by_s)));
    }
    match scrub.oldest_age_s {
        Some(age) => parts.push(format!("all verified within {}", span(age))),
        None => parts.push(String::from("not yet verified as a whole")),
    }
    if scrub.state == ScrubState::Running {
        let percent = scrub.verified_bytes as f64 * 100.0 / scrub.asked_bytes.max(1) as f64;
        parts.push(format!("verifying, {percent:.1} %"));
    }
    if let Some(every) = scrub.every_s {
        parts.push(format!("every {}", span(every)));
    }
    parts.extend(scrub.problem.clone());
    format!("  scrub        {}: {}\n", scrub.volume, parts.join(", "))
}

/// A time in its largest fitting unit.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_and_lateness_come_first() {
        let mut scrub = ScrubStatus {
            volume: String::from("data"),
            every_s: Some(2_592_000),
            ..ScrubStatus::default()
        };
        assert_eq!(
            describe_scrub(&scrub),
            "  scrub        data: no damage, not yet verified as a whole, every 30 days\n"
        );
        scrub.changed = 1;
        scrub.unreadable = 2;
        scrub.late_by_s = 10_800;
        scrub.oldest_age_s = Some(2_602_800);
        scrub.state = ScrubState::Running;
        scrub.asked_bytes = 200;
        scrub.verified_bytes = 50;
        assert_eq!(
            describe_scrub(&scrub),
            "  scrub        data: 3 places damaged (1 changed, 2 unreadable), late by 3 h, all verified within \
             30 days, verifying, 25.0 %, every 30 days\n"
        );
    }
}
