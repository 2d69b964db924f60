//! The `[confidence]` table: the trust in a profile that was found from timings.

use block::{Extent, Lba, Sectors};

use document::{DocumentError, Field, Section};

/// A part of a profile that can be right while others are wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfilePart {
    /// The period of a revolution.
    Spindle,
    /// The blocks of each track, and their angles.
    Map,
    /// The cylinder and surface of each track.
    Layout,
    /// The seek times.
    Seek,
    /// The overheads of the electronics.
    Overhead,
    /// The host bus.
    Bus,
    /// Segments and look-ahead.
    Buffer,
    /// The writes that end early.
    WriteBack,
    /// The drive's own queue.
    Queue,
    /// Whether a read of a track begins with any of its sectors.
    ZeroLatency,
}

impl ProfilePart {
    /// All parts, with their keys in profile files.
    pub const ALL: [(&'static str, ProfilePart); 10] = [
        ("spindle", ProfilePart::Spindle),
        ("map", ProfilePart::Map),
        ("layout", ProfilePart::Layout),
        ("seek", ProfilePart::Seek),
        ("overhead", ProfilePart::Overhead),
        ("bus", ProfilePart::Bus),
        ("buffer", ProfilePart::Buffer),
        ("write_back", ProfilePart::WriteBack),
        ("queue", ProfilePart::Queue),
        ("zero_latency", ProfilePart::ZeroLatency),
    ];

    /// The key of the part.
    pub fn name(self) -> &'static str {
        ProfilePart::ALL[self as usize].0
    }
}

/// The trust in each part, and the exactly known tracks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Confidence {
    parts: [Option<f64>; ProfilePart::ALL.len()],
    /// `None` if the profile does not state them.
    known: Option<Box<[Extent]>>,
}

/// Whether the positions of blocks were measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Certainty {
    /// They were, or the profile does not distinguish.
    #[default]
    Known,
    /// The profile fills a gap between measured tracks: angle and track are wrong in general, the
    /// cylinder is near.
    Guessed,
}

impl Certainty {
    /// Known if both are.
    #[must_use]
    #[inline]
    pub fn and(self, other: Certainty) -> Certainty {
        match self {
            Certainty::Known => other,
            Certainty::Guessed => Certainty::Guessed,
        }
    }
}

impl Confidence {
    /// The share, 0 to 1, of fresh measurements that a part should predict; `None` if the profile
    /// does not state it.
    pub fn of(&self, part: ProfilePart) -> Option<f64> {
        self.parts[part as usize]
    }

    /// The least confidence of all parts, if the profile states one.
    pub fn least(&self) -> Option<f64> {
        self.parts.iter().copied().flatten().reduce(f64::min)
    }

    /// The blocks whose tracks are exactly known: ascending, disjoint.
    pub fn known(&self) -> &[Extent] {
        self.known.as_deref().unwrap_or(&[])
    }

    /// Whether the track of a block is exactly known.
    pub fn is_known(&self, lba: Lba) -> bool {
        self.known_from(lba).is_some()
    }

    /// Whether the positions of all blocks of `extent` were measured. A profile that does not state
    /// its known blocks distinguishes none.
    pub fn certainty(&self, extent: Extent) -> Certainty {
        if self.known.is_none() {
            return Certainty::Known;
        }
        let mut next = extent.start();
        while next < extent.end() {
            match self.known_from(next) {
                Some(known) => next = known.end(),
                None => return Certainty::Guessed,
            }
        }
        Certainty::Known
    }

    /// The same confidence with other known blocks.
    ///
    /// # Panics
    /// If the extents are not ascending and disjoint.
    #[must_use]
    pub fn with_known(self, known: Vec<Extent>) -> Self {
        let mut pairs = known.windows(2);
        assert!(
            pairs.all(|pair| pair[0].end() <= pair[1].start()),
            "known blocks are ascending and disjoint"
        );
        Confidence {
            known: Some(known.into()),
            ..self
        }
    }

    /// The confidence in the blocks of `share`, numbered from 0.
    pub(super) fn of_share(mut self, share: Extent) -> Self {
        if let Some(known) = &mut self.known {
            let inside = known.iter().filter_map(|extent| extent.intersection(share));
            let moved = inside.map(|extent| {
                let first = Lba(extent.start().0 - share.start().0);
                Extent::new(first, extent.length()).expect("a part of a share")
            });
            *known = moved.collect();
        }
        self
    }

    /// The confidence in a drive of two parts with so many blocks, one after the other: of each part of the
    /// profile the lesser one.
    pub(super) fn joined(&self, other: &Confidence, blocks: [Sectors; 2]) -> Self {
        let known_of = |confidence: &Confidence, first: u64, blocks: Sectors| -> Vec<Extent> {
            let whole = Extent::new(Lba(0), blocks).expect("a part has blocks");
            let known = confidence.known.clone().unwrap_or_else(|| [whole].into());
            let moved = known.iter().map(|extent| {
                let start = Lba(first + extent.start().0);
                Extent::new(start, extent.length()).expect("blocks of the drive")
            });
            moved.collect()
        };
        let mut known = known_of(self, 0, blocks[0]);
        known.extend(known_of(other, blocks[0].0, blocks[1]));
        let least =
            |(one, other): (&Option<f64>, &Option<f64>)| Some(one.as_ref()?.min(*other.as_ref()?));
        let mut joined = Confidence {
            known: Some(known.into()),
            ..Confidence::default()
        };
        for (part, both) in joined
            .parts
            .iter_mut()
            .zip(self.parts.iter().zip(&other.parts))
        {
            *part = least(both);
        }
        joined
    }

    /// The extent of known blocks that has this one.
    fn known_from(&self, lba: Lba) -> Option<Extent> {
        let known = self.known();
        let after = known.partition_point(|extent| extent.start() <= lba);
        let extent = known[after.checked_sub(1)?];
        (lba < extent.end()).then_some(extent)
    }
}

/// The parts that predict the head: a belief without them cannot be scheduled by. Nor can it be without the times of the
/// electronics, if it says that they were not found: slow ones are assumed then, and half of the predicted head times
/// are a revolution off.
const PREDICTING: [ProfilePart; 3] = [ProfilePart::Spindle, ProfilePart::Map, ProfilePart::Seek];

/// The least confidence of a part that is believed. A choice: where fewer than half of the fresh
/// predictions came true, the part predicts nothing.
const LEAST_BELIEVED: f64 = 0.5;

impl Confidence {
    /// Why the head cannot be predicted by this profile, for people; `None` if it can: at least half of
    /// the fresh predictions of its spindle, its map and its seeks came true, and the times of its electronics were found.
    pub fn doubt(&self) -> Option<String> {
        let share = |part| self.of(part).unwrap_or(0.0);
        let doubted = PREDICTING
            .into_iter()
            .filter(|part| share(*part) < LEAST_BELIEVED);
        let doubted: Vec<String> = doubted
            .map(|part| format!("{} {:.1} %", part.name(), share(part) * 100.0))
            .collect();
        if !doubted.is_empty() {
            let least = LEAST_BELIEVED * 100.0;
            return Some(format!(
                "too little confidence ({}): expected at least {least} % in spindle, map and seek",
                doubted.join(", ")
            ));
        }
        (self.of(ProfilePart::Overhead) == Some(0.0)).then(|| {
            "the times of the electronics were not found: expected a confidence in overhead"
                .to_owned()
        })
    }
}

/// Reads the table, for a drive of so many blocks.
pub(super) fn read(field: &Field, blocks: u64) -> Result<Confidence, DocumentError> {
    let mut keys = vec!["origin", "known"];
    keys.extend(ProfilePart::ALL.map(|(key, _)| key));
    let section = field.section(&keys)?;
    let mut confidence = Confidence::default();
    for (key, part) in ProfilePart::ALL {
        if let Some(field) = section.get(key) {
            confidence.parts[part as usize] = Some(field.number_within(0.0..=1.0)?);
        }
    }
    confidence.known = read_known(&section, blocks)?;
    Ok(confidence)
}

/// `[[first, blocks], ...]`
fn read_known(section: &Section, blocks: u64) -> Result<Option<Box<[Extent]>>, DocumentError> {
    let Some(field) = section.get("known") else {
        return Ok(None);
    };
    let mut end = 0;
    let known = field.list_of(|extent| {
        let [first, length] = extent.array("[first, blocks]")?;
        let (first, length) = (first.u64()?, length.u64()?);
        let known = Extent::new(Lba(first), Sectors(length));
        match known {
            Ok(known) if first >= end && known.end().0 <= blocks => {
                end = known.end().0;
                Ok(known)
            }
            _ => Err(extent.error(format!(
                "{length} blocks from {first}: expected at least one, after the extent before, \
                 all on the drive"
            ))),
        }
    })?;
    Ok(Some(known.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_without_a_part_that_predicts_the_head_is_doubted_with_its_reason() {
        let all = [
            (ProfilePart::Spindle, 0.9),
            (ProfilePart::Map, 0.8),
            (ProfilePart::Seek, 0.6),
            (ProfilePart::Overhead, 0.3),
        ];
        let with = |part: ProfilePart, share: f64| {
            let mut confidence = Confidence::default();
            for (part, share) in all {
                confidence.parts[part as usize] = Some(share);
            }
            confidence.parts[part as usize] = Some(share);
            confidence.doubt()
        };
        assert_eq!(with(ProfilePart::Spindle, 0.9), None);
        let doubt = with(ProfilePart::Seek, 0.4).expect("a doubt");
        assert!(doubt.contains("seek 40.0 %"), "{doubt}");
        let doubt = with(ProfilePart::Overhead, 0.0).expect("a doubt");
        assert!(doubt.contains("electronics were not found"), "{doubt}");
        // Profiles of old files do not say it.
        let mut silent = Confidence::default();
        for (part, share) in &all[..3] {
            silent.parts[*part as usize] = Some(*share);
        }
        assert_eq!(silent.doubt(), None);
    }
}
