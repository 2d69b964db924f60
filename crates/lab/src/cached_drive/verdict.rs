//! The verdict on a run with caches, in two sentences: what each cache answers, and what is unusual, with a hint.

use super::CacheLevelFigures;

/// The part of blocks fetched ahead in vain that is worth a hint: half. A choice: more is lost than gained.
const WASTE: f64 = 0.5;

/// The hit ratio below which a lower cache hardly helps. A choice.
const FEW_HITS: f64 = 0.1;

/// The busy share of a drive, in percent, from which waits are steep, as in the verdict of a drive alone.
const BUSY_PERCENT: f64 = 80.0;

/// The sentences.
pub(super) fn sentences(levels: &[CacheLevelFigures], busy_percent: f64) -> Vec<String> {
    let answers = levels.iter().enumerate().map(|(place, level)| {
        let of = match place {
            0 => "of the demanded blocks",
            _ => "of those that reach it",
        };
        let (name, percent) = (&level.cache, level.hit_ratio * 100.0);
        format!("{name} answers {percent:.1} % {of}")
    });
    let answers = answers.collect::<Vec<_>>().join(", ");
    let first = format!("{answers}; the disk is busy {busy_percent:.1} % of the time.");
    vec![first, unusual(levels, busy_percent)]
}

/// The first of these findings that holds.
fn unusual(levels: &[CacheLevelFigures], busy_percent: f64) -> String {
    let wasteful = levels.iter().find(|level| waste(level) >= WASTE);
    if let Some(level) = wasteful {
        return format!(
            "{} fetches {:.0} % of its {} prefetched blocks in vain; try a shorter prefetcher, or none.",
            level.cache,
            waste(level) * 100.0,
            level.prefetched
        );
    }
    let idle = levels
        .iter()
        .skip(1)
        .find(|level| level.hit_ratio < FEW_HITS);
    if let Some(level) = idle {
        return format!(
            "{} hardly has a block that the cache above it lacks; try another coordinator, or a larger first cache.",
            level.cache
        );
    }
    match busy_percent >= BUSY_PERCENT {
        true => "The disk is nearly always busy, so each hit shortens waits; try `headtime cache` for what more \
                 memory brings."
            .to_owned(),
        false => "Nothing is unusual; try `headtime cache` for what other sizes bring.".to_owned(),
    }
}

/// The part of the blocks fetched ahead that nobody asked for.
fn waste(level: &CacheLevelFigures) -> f64 {
    level.unused as f64 / level.prefetched.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(hit_ratio: f64, prefetched: u64, unused: u64) -> CacheLevelFigures {
        CacheLevelFigures {
            cache: "lru, ra".to_owned(),
            hits: 10,
            misses: 10,
            prefetched,
            readmore: 0,
            unused,
            hit_ratio,
        }
    }

    #[test]
    fn each_finding_has_its_own_condition() {
        for (levels, busy, part) in [
            (
                vec![level(0.5, 100, 60)],
                10.0,
                "60 % of its 100 prefetched",
            ),
            (
                vec![level(0.5, 0, 0), level(0.05, 0, 0)],
                10.0,
                "another coordinator",
            ),
            (vec![level(0.5, 100, 40)], 90.0, "nearly always busy"),
            (vec![level(0.05, 0, 0)], 10.0, "Nothing is unusual"),
        ] {
            let said = sentences(&levels, busy);
            assert!(said[0].starts_with("lru, ra answers "), "{said:?}");
            assert!(said[1].contains(part), "{said:?}");
        }
    }
}
