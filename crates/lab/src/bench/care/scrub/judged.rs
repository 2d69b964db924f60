//! The findings of a scrub against the damage that was done.

use server::checksums::report::{Finding, FindingKind};

use super::book::{Injected, Injury};

/// What a scrub found of the damage that was done.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Damage that a finding of the right kind covers.
    pub found: Vec<Injected>,
    /// Damage that none covers.
    pub missed: Vec<Injected>,
    /// Findings without any damage.
    pub false_alarms: u64,
}

/// Compares the present findings with the damage.
pub fn judge<'a>(
    findings: impl Iterator<Item = &'a Finding>,
    injected: impl Iterator<Item = Injected>,
) -> Judged {
    let findings: Vec<&Finding> = findings.collect();
    let injected: Vec<Injected> = injected.collect();
    let covers = |finding: &Finding, byte: u64| {
        (finding.offset_bytes..finding.offset_bytes + finding.length_bytes).contains(&byte)
    };
    let is_found = |damage: &Injected| {
        let kind = match damage.injury {
            Injury::Flip => FindingKind::Changed,
            Injury::Latent => FindingKind::Unreadable,
        };
        let mut all = findings.iter();
        all.any(|finding| finding.kind == kind && covers(finding, damage.byte))
    };
    let is_false =
        |finding: &&&Finding| !injected.iter().any(|damage| covers(finding, damage.byte));
    let false_alarms = findings.iter().filter(is_false).count() as u64;
    let (found, missed) = injected.iter().copied().partition(is_found);
    Judged {
        found,
        missed,
        false_alarms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found_by_its_kind_and_place_only() {
        let finding = |offset_bytes, kind| Finding {
            lbn: offset_bytes / 512,
            offset_bytes,
            length_bytes: 4096,
            kind,
            first_seen_s: 1,
            last_seen_s: 1,
            scrubs_total: 1,
            gone_s: None,
        };
        let damage = |byte, injury| Injected {
            injury,
            byte,
            in_doubt: false,
        };
        let findings = [
            finding(4096, FindingKind::Changed),
            finding(8192, FindingKind::Unreadable),
            finding(16_384, FindingKind::Changed),
        ];
        let done = [
            damage(4096 + 4095, Injury::Flip),
            damage(8192, Injury::Flip),
            damage(12_288, Injury::Latent),
        ];
        let judged = judge(findings.iter(), done.into_iter());
        assert_eq!(judged.found, [done[0]]);
        assert_eq!(judged.missed, [done[1], done[2]]);
        assert_eq!(judged.false_alarms, 1);
    }
}
