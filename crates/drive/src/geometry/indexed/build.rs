//! Checks the groups of a description and puts them into the form that is searched.

use super::{
    Child, Description, Group, GroupDescription, GroupRun, Indexed, Lowest, PatternRun, TrackRun,
};
use super::{Remaps, Slips};
use crate::angle::Angle;
use crate::geometry::{LayoutError, MAX_CYLINDERS, MAX_SECTORS_PER_TRACK, MAX_SURFACES};

/// At most how deep groups lie in groups; the drives that are known have two levels.
const MAX_DEPTH: u32 = 8;

/// At most how many places; 2^56 sectors of 512 bytes are more than all drives ever made.
const MAX_PLACES: u64 = 1 << 56;

/// The layout of a description.
pub(super) fn indexed(description: &Description) -> Result<Indexed, LayoutError> {
    crate::geometry::check_drive(
        description.surfaces,
        description.cylinders,
        description.blocks,
    )?;
    if description.groups.is_empty() {
        let reason = "no groups: expected at least one".to_owned();
        return Err(LayoutError::of_drive("group", reason));
    }
    let mut builder = Builder {
        description,
        groups: Vec::new(),
        depths: Vec::new(),
        runs: Vec::new(),
        lowest: Vec::new(),
    };
    for (item, group) in description.groups.iter().enumerate() {
        builder.group(item, group)?;
    }
    let slips = Slips::new(&description.slips).map_err(|entry| LayoutError {
        item: None,
        entry: Some(entry),
        key: "slips",
        reason: "a slip that does not follow the one before: expected [place, count] in \
                 ascending order without overlap, each count at least 1"
            .into(),
    })?;
    let root = &builder.groups[builder.groups.len() - 1];
    if root.cylinders > description.cylinders {
        return Err(LayoutError::of_drive(
            "cylinders",
            format!(
                "{} cylinders, but the groups reach over {}: expected at least that many",
                description.cylinders, root.cylinders
            ),
        ));
    }
    let holds = root.places.saturating_sub(slips.total());
    if description.blocks > holds {
        return Err(LayoutError::of_drive(
            "blocks",
            format!(
                "{} blocks, but the tracks hold {holds} without slips: expected not more",
                description.blocks
            ),
        ));
    }
    let layout = Indexed {
        surfaces: description.surfaces,
        cylinders: description.cylinders,
        blocks: description.blocks,
        firsts: builder.runs.iter().map(|run| run.first).collect(),
        groups: builder.groups.into(),
        runs: builder.runs.into(),
        lowest: builder.lowest.into(),
        slips,
        remaps: Remaps::default(),
    };
    let remaps = checked_remaps(description, &layout)?;
    Ok(Indexed { remaps, ..layout })
}

/// What the groups become.
struct Builder<'a> {
    description: &'a Description,
    groups: Vec<Group>,
    depths: Vec<u32>,
    runs: Vec<PatternRun>,
    lowest: Vec<Lowest>,
}

impl Builder<'_> {
    /// Adds a group.
    fn group(&mut self, item: usize, group: &GroupDescription) -> Result<(), LayoutError> {
        let begin = self.runs.len();
        let mut places = 0;
        let mut depth = 1;
        let (key, entries) = match group {
            GroupDescription::Tracks(runs) => ("tracks", runs.len()),
            GroupDescription::Groups(runs) => ("groups", runs.len()),
        };
        for entry in 0..entries {
            let run = match group {
                GroupDescription::Tracks(runs) => self.tracks(&runs[entry], places),
                GroupDescription::Groups(runs) => {
                    let run = self.repeated(item, &runs[entry], places);
                    if run.is_ok() {
                        depth = depth.max(1 + self.depths[runs[entry].group as usize]);
                    }
                    run
                }
            };
            let wrong = |(key, reason)| LayoutError {
                item: Some(item),
                entry: Some(entry),
                key,
                reason,
            };
            let run = run.map_err(wrong)?;
            let size = u128::from(run.places) * u128::from(run.repeats) + u128::from(places);
            if size > u128::from(MAX_PLACES) {
                return Err(wrong(("groups", format!("{size} sectors: expected fewer"))));
            }
            places = size as u64;
            self.runs.push(run);
        }
        if entries == 0 || depth > MAX_DEPTH {
            return Err(LayoutError {
                item: Some(item),
                entry: None,
                key,
                reason: format!(
                    "{entries} runs, {depth} deep: expected 1 run at least, {MAX_DEPTH} deep at most"
                ),
            });
        }
        self.finish(item, begin, places, depth)
    }

    /// A run of tracks.
    fn tracks(&self, run: &TrackRun, first: u64) -> Result<PatternRun, (&'static str, String)> {
        let surfaces = self.description.surfaces;
        if run.head >= surfaces {
            return Err((
                "tracks",
                format!(
                    "head {}: expected below {surfaces}, the number of surfaces",
                    run.head
                ),
            ));
        }
        if run.sectors == 0 || run.sectors > MAX_SECTORS_PER_TRACK {
            return Err((
                "tracks",
                format!(
                    "{} sectors per track: expected 1 to {MAX_SECTORS_PER_TRACK}",
                    run.sectors
                ),
            ));
        }
        if run.blocks == 0 || run.blocks > run.sectors {
            return Err((
                "tracks",
                format!(
                    "{} blocks on a track of {} sectors: expected at least one, not more than \
                     sectors",
                    run.blocks, run.sectors
                ),
            ));
        }
        let repeats = run.tracks.unsigned_abs();
        let last = i64::from(run.cylinder) + i64::from(run.tracks) - i64::from(run.tracks.signum());
        if repeats == 0 || !(0..i64::from(MAX_CYLINDERS)).contains(&last) {
            return Err((
                "tracks",
                format!(
                    "{} tracks from cylinder {}: expected at least one, inside the group",
                    run.tracks, run.cylinder
                ),
            ));
        }
        Ok(PatternRun {
            first,
            places: u64::from(run.blocks),
            repeats,
            cylinder: run.cylinder,
            pitch: run.tracks.signum(),
            span: 1,
            start: run.start,
            step: run.step,
            child: Child::Track {
                // Below `MAX_SURFACES`.
                head: run.head as u8,
                sectors: run.sectors,
                width: Angle::fraction(1, u64::from(run.sectors)),
            },
        })
    }

    /// A run of groups.
    fn repeated(
        &self,
        item: usize,
        run: &GroupRun,
        first: u64,
    ) -> Result<PatternRun, (&'static str, String)> {
        let Some(group) = self.groups.get(run.group as usize) else {
            return Err((
                "groups",
                format!(
                    "group {}: expected one before this, below {item}",
                    run.group
                ),
            ));
        };
        if run.repeats == 0 || (run.repeats > 1 && run.cylinders < group.cylinders) {
            return Err((
                "groups",
                format!(
                    "{} repetitions every {} cylinders: expected at least one, every {} \
                     cylinders at least, the group's size",
                    run.repeats, run.cylinders, group.cylinders
                ),
            ));
        }
        let pitch = u64::from(run.cylinders) * u64::from(run.repeats - 1);
        let end = u64::from(run.cylinder) + pitch + u64::from(group.cylinders);
        if end > u64::from(MAX_CYLINDERS) {
            return Err((
                "groups",
                format!("{end} cylinders: expected at most {MAX_CYLINDERS}"),
            ));
        }
        Ok(PatternRun {
            first,
            places: group.places,
            repeats: run.repeats,
            cylinder: run.cylinder,
            pitch: if run.repeats > 1 {
                run.cylinders as i32
            } else {
                0
            },
            span: group.cylinders,
            start: run.start,
            step: run.step,
            child: Child::Group(run.group),
        })
    }

    /// Sums up a group whose runs are the last ones, and checks that no track is there twice.
    fn finish(
        &mut self,
        item: usize,
        begin: usize,
        places: u64,
        depth: u32,
    ) -> Result<(), LayoutError> {
        let runs = &self.runs[begin..];
        let heads_of = |run: &PatternRun| match run.child {
            Child::Track { head, .. } => 1u64 << head,
            Child::Group(group) => self.groups[group as usize].heads,
        };
        let tracks_of = |run: &PatternRun| match run.child {
            Child::Track { .. } => 1,
            Child::Group(group) => self.groups[group as usize].tracks,
        };
        let mut lowest: Vec<Lowest> = (begin as u32..)
            .zip(runs)
            .map(|(index, run)| Lowest {
                cylinder: run.lowest(),
                reach: run.reach(),
                run: index,
            })
            .collect();
        lowest.sort_by_key(|low| (low.cylinder, low.run));
        check_once(&lowest, |run| heads_of(&self.runs[run as usize])).map_err(
            |(run, head, cylinder)| LayoutError {
                item: Some(item),
                entry: Some(run as usize - begin),
                key: match runs[0].child {
                    Child::Track { .. } => "tracks",
                    Child::Group(_) => "groups",
                },
                reason: format!(
                    "cylinder {cylinder} of head {head} is in another run as well: expected \
                     each track once"
                ),
            },
        )?;
        let mut reach = 0;
        for low in &mut lowest {
            reach = reach.max(low.reach);
            low.reach = reach;
        }
        let group = Group {
            runs: begin as u32..self.runs.len() as u32,
            places,
            cylinders: reach,
            tracks: runs
                .iter()
                .map(|run| tracks_of(run) * u64::from(run.repeats))
                .sum(),
            heads: runs.iter().map(heads_of).fold(0, |all, heads| all | heads),
        };
        self.lowest.extend(lowest);
        self.groups.push(group);
        self.depths.push(depth);
        Ok(())
    }
}

/// Checks that no cylinder of a surface is in two of the runs, which are in the order of their
/// lowest cylinders. The error is the run, the surface and the cylinder.
fn check_once(lowest: &[Lowest], heads_of: impl Fn(u32) -> u64) -> Result<(), (u32, usize, u32)> {
    // How far each surface is taken, from run to run.
    let mut taken = [0; MAX_SURFACES as usize];
    for low in lowest {
        let heads = heads_of(low.run);
        for (head, taken) in taken.iter_mut().enumerate() {
            if heads & (1 << head) == 0 {
                continue;
            }
            if low.cylinder < *taken {
                return Err((low.run, head, low.cylinder));
            }
            *taken = low.reach;
        }
    }
    Ok(())
}

/// The remaps, if each moves blocks of the drive to sectors that hold none.
fn checked_remaps(description: &Description, layout: &Indexed) -> Result<Remaps, LayoutError> {
    for (entry, remap) in description.remaps.iter().enumerate() {
        let wrong = |reason| {
            Err(LayoutError {
                item: None,
                entry: Some(entry),
                key: "remaps",
                reason,
            })
        };
        let end = remap.first.checked_add(u64::from(remap.blocks));
        if remap.blocks == 0 || end.is_none_or(|end| end > layout.blocks) {
            return wrong(format!(
                "{} blocks from {}: expected at least one, all on the drive",
                remap.blocks, remap.first
            ));
        }
        let fits = layout
            .track_under(remap.cylinder, remap.head)
            .is_some_and(|track| {
                u64::from(remap.sector) + u64::from(remap.blocks) <= u64::from(track.sectors)
            });
        if !fits {
            return wrong(format!(
                "to cylinder {} head {} sector {}: expected sectors of one track",
                remap.cylinder, remap.head, remap.sector
            ));
        }
        let sectors = remap.sector..remap.sector + remap.blocks;
        let held = |sector| layout.lba_at(remap.cylinder, remap.head, sector);
        if let Some(lba) = sectors.clone().find_map(held) {
            return wrong(format!(
                "to a sector that holds block {lba}: expected sectors without blocks"
            ));
        }
    }
    Remaps::new(description.remaps.clone())
}
