//! One description of a system: the configuration of `headtime serve`, and what its clients do.
//!
//! ```text
//!   system.toml   [[drive]] with volumes, caches, exports, preemption, streams    served and simulated
//!                 [[nbd]] [fuse] [ublk] [control] [log] [hooks] [limits]          served only
//!                 [[load]] [[stream]] [[task]]                                    simulated only
//! ```
//!
//! `headtime simulate FILE` runs the clients on the drives in virtual time; `headtime serve FILE` serves the same
//! drives. Both parse the whole file, so that neither passes over a mistake, and both name the tables of the other.

mod caches;
mod parse;

use std::path::Path;
use std::sync::Arc;

use block::{Extent, Instant, Lba, Sectors};
use document::DocumentError;
use scheduler::freeblock::WantedBlocks;
use scheduler::policy::NamedPolicy;
use server::config::{Belief, Config, DriveConfig, Places, Volume};
use server::service::{VirtualBelief, VirtualParts, in_virtual_time};
use simulator::run::PastEnd;
use simulator::scenario::Background;

use crate::comparison::load::{LoadSettings, LoadSource, PlacedLoad};
use crate::comparison::scan::ScanPlan;
use crate::comparison::streams::StreamsBeside;
use crate::comparison::truth::Truth;
use crate::comparison::{ComparisonSettings, ComparisonSetup};
use crate::stream_plan::StreamGroup;
use crate::{Failure, text_file};

/// A system and its clients.
#[derive(Clone, Debug)]
pub struct SystemFile {
    /// The name of the file.
    pub file: String,
    /// What is served.
    pub config: Config,
    /// The clients that read and write.
    pub loads: Vec<SystemLoad>,
    /// The players and recorders.
    pub streams: Vec<SystemStream>,
    /// The background tasks.
    pub tasks: Vec<SystemTask>,
    /// Tables and keys that only a service uses, as they stand in the file.
    pub served_only: Vec<String>,
}

/// A client of an export.
#[derive(Clone, Debug)]
pub struct SystemLoad {
    /// The name; that of the load, if the file has none.
    pub name: String,
    /// The export.
    pub export: String,
    /// The load or trace.
    pub load: LoadSettings,
    /// The caches of the client, from the one that its programs reach: `SIZE,REPLACEMENT,PREFETCHER,COORDINATOR`.
    pub caches: Vec<String>,
    /// What a reply to the client costs: `none` or `lan`.
    pub link: String,
}

/// Equal streams on an export.
#[derive(Clone, Debug)]
pub struct SystemStream {
    /// The export.
    pub export: String,
    /// The streams.
    pub group: StreamGroup,
}

/// A background task on a volume.
#[derive(Clone, Debug)]
pub struct SystemTask {
    /// The volume, all of which is read.
    pub volume: String,
    /// The deadline, in seconds.
    pub deadline_s: Option<f64>,
}

/// The setup of a run: of the system of the settings, or of their drive and load.
///
/// # Errors
/// If a setting is invalid, or a name is unknown.
pub fn setup(settings: &ComparisonSettings) -> Result<ComparisonSetup, Failure> {
    match &settings.system {
        Some(path) => SystemFile::read(path)?.setup(settings),
        None => settings.setup(),
    }
}

impl SystemFile {
    /// Reads a file. Its paths are relative to its folder.
    ///
    /// # Errors
    /// If it cannot be read, or a key is missing, unknown or invalid.
    pub fn read(path: &Path) -> Result<SystemFile, Failure> {
        let text = text_file::read(path)?;
        let base = path.parent().unwrap_or(Path::new("."));
        let name = path.display().to_string();
        SystemFile::parse(&name, &text, &Places::of_this_user(base)).map_err(Failure::input)
    }

    /// Parses a text; `file` is its name in errors.
    ///
    /// # Errors
    /// The first error, with its line and key.
    pub fn parse(file: &str, text: &str, places: &Places) -> Result<SystemFile, DocumentError> {
        parse::parse(file, text, places)
    }

    /// The tables that only a simulation uses, as `[[load]]`.
    pub fn simulated_only(&self) -> Vec<&'static str> {
        let tables = [
            ("[[load]]", self.loads.len()),
            ("[[stream]]", self.streams.len()),
            ("[[task]]", self.tasks.len()),
        ];
        let used = tables.iter().filter(|(_, count)| *count > 0);
        used.map(|(table, _)| *table).collect()
    }

    /// The drive whose exports have clients.
    ///
    /// # Errors
    /// If nothing uses a drive, or several drives are used.
    fn drive(&self) -> Result<&DriveConfig, Failure> {
        let exports = self.loads.iter().map(|load| &load.export);
        let exports = exports.chain(self.streams.iter().map(|stream| &stream.export));
        let exports: Vec<&String> = exports.collect();
        let is_used = |drive: &&DriveConfig| {
            let serves = |name: &&String| drive.exports.iter().any(|export| export.name == **name);
            exports.iter().any(serves)
        };
        let used: Vec<&DriveConfig> = self.config.drives.iter().filter(is_used).collect();
        match used[..] {
            [drive] => Ok(drive),
            [] => Err(self.input("no client: expected a table [[load]]")),
            [first, second, ..] => Err(self.input(&format!(
                "clients of the drives {} and {}: expected those of one drive, which share nothing with others",
                first.name, second.name
            ))),
        }
    }

    fn input(&self, problem: &str) -> Failure {
        Failure::input(format!("{}: {problem}", self.file))
    }

    /// The setup of a run in virtual time. `flags` has policies, depth, bounds and the number of explained requests;
    /// without policies there, the drive's own is run.
    ///
    /// # Errors
    /// If the drive cannot be simulated, a load does not fit, or the file has what only a run on caches does.
    pub fn setup(&self, flags: &ComparisonSettings) -> Result<ComparisonSetup, Failure> {
        let config = self.drive()?;
        if self.has_caches()? {
            return Err(self.input(
                "caches: expected no experiment, and a run without other policies, seconds or accounts of requests",
            ));
        }
        let parts = in_virtual_time(config).map_err(|problem| self.input(&problem))?;
        let mut truth = Truth::of_emulation(config, &parts);
        let seed = flags.load.seed;
        if let Some(seed) = seed {
            truth = truth.seeded(seed);
        }
        let belief = match &parts.belief {
            VirtualBelief::Nothing => {
                self.plain(config)?;
                None
            }
            VirtualBelief::Truth => None,
            VirtualBelief::File(path) => Some(truth.believing(path, &parts.truth)?),
        };
        let believed = belief.as_ref().unwrap_or(&parts.truth);
        let until = flags.end()?;
        let scan = self.scan(config, &parts, believed)?;
        let source = LoadSource::Placed(self.placed(config, &parts, seed)?);
        let is_endless = self.loads.iter().any(|load| load.load.trace.is_none());
        let requests = match (flags.requests, until) {
            (None, None) if is_endless && scan.is_none() => {
                Some(ComparisonSettings::USUAL_REQUESTS)
            }
            (requests, _) => requests,
        };
        let policies = match flags.policies.is_empty() {
            true => vec![config.policy],
            false => flags.named_policies()?,
        };
        let skips = self.loads.iter().any(|load| load.load.skip_bad);
        let setup = ComparisonSetup {
            preemption: config.preemption.map(|rules| rules.rules(believed)),
            drive: Arc::clone(&parts.truth),
            belief,
            truth,
            source,
            phases: config.phases,
            grace: match config.belief {
                Belief::Nothing => config.grace.without_belief(),
                Belief::Emulated | Belief::Profile(_) => config.grace.with_belief(),
            },
            depth: flags.depth,
            requests,
            until,
            past_end: match skips {
                true => PastEnd::Skip,
                false => PastEnd::Stop,
            },
            scan,
            slowest: flags.slowest,
            mirror: parts.mirror,
            streams: self.promised(config, &parts, &policies, until)?,
            policies,
        };
        if parts.mirror.is_some() && parts.truth.actuators > 1 {
            return Err(self.input("a mirror of drives with two actuators: expected drives of one"));
        }
        for policy in &setup.policies {
            setup.limits(*policy)?;
        }
        Ok(setup)
    }

    /// Checks that nothing needs a belief about the drive. A configuration without one has no streams.
    fn plain(&self, config: &DriveConfig) -> Result<(), Failure> {
        match self.tasks.is_empty() {
            true => Ok(()),
            false => Err(self.input(&format!(
                "[[task]] on drive {} with belief = \"nothing\", where a service has none: expected another belief",
                config.name
            ))),
        }
    }

    /// The loads on their volumes. With a seed, each workload has one of its own that follows from it.
    fn placed(
        &self,
        config: &DriveConfig,
        parts: &VirtualParts,
        seed: Option<u64>,
    ) -> Result<Vec<PlacedLoad>, Failure> {
        let placed = |(place, load): (u64, &SystemLoad)| {
            let settings = LoadSettings {
                seed: match &load.load.trace {
                    Some(_) => None,
                    None => seed.map(|seed| seed.wrapping_add(place)).or(load.load.seed),
                },
                ..load.load.clone()
            };
            let (volume, length) = self.volume_of(config, parts, &load.export)?;
            let export = config
                .exports
                .iter()
                .find(|export| export.name == load.export);
            let class = export.map(|export| export.class.of_requests());
            let bytes = u64::from(parts.truth.block_bytes);
            Ok(PlacedLoad {
                name: load.name.clone(),
                source: settings.source()?,
                class: class.unwrap_or_default(),
                first: volume.offset / bytes,
                blocks: length / bytes,
            })
        };
        (0..).zip(&self.loads).map(placed).collect()
    }

    /// The volume of an export, with its first byte on the drive, and its length in bytes.
    fn volume_of<'p>(
        &self,
        config: &DriveConfig,
        parts: &'p VirtualParts,
        export: &str,
    ) -> Result<&'p (Volume, u64), Failure> {
        let export = config.exports.iter().find(|known| known.name == export);
        let volume = export.and_then(|export| {
            let mut volumes = parts.volumes.iter();
            volumes.find(|(volume, _)| volume.name == export.volume)
        });
        volume.ok_or_else(|| self.input("an export without a volume"))
    }

    /// The background task.
    fn scan(
        &self,
        config: &DriveConfig,
        parts: &VirtualParts,
        believed: &Arc<drive::Profile>,
    ) -> Result<Option<ScanPlan>, Failure> {
        let of_drive = |task: &&SystemTask| {
            let mut volumes = config.volumes.iter();
            volumes.any(|volume| volume.name == task.volume)
        };
        let tasks: Vec<&SystemTask> = self.tasks.iter().filter(of_drive).collect();
        let task = match tasks[..] {
            [] => return Ok(None),
            [task] => task,
            _ => return Err(self.input("several tables [[task]] on a drive: expected one")),
        };
        let volume = parts
            .volumes
            .iter()
            .find(|(volume, _)| volume.name == task.volume);
        let (volume, length) = volume.ok_or_else(|| self.input("a task without a volume"))?;
        let bytes = u64::from(parts.truth.block_bytes);
        let extent = Extent::new(Lba(volume.offset / bytes), Sectors(length / bytes));
        let mut wanted = WantedBlocks::none(&believed.geometry);
        wanted
            .add(extent.map_err(Failure::input)?)
            .map_err(Failure::input)?;
        Ok(Some(ScanPlan::of(Background {
            deadline: task
                .deadline_s
                .map(|seconds| Instant::from_nanos((seconds * 1e9) as u64)),
            ..Background::new(config.background(believed), wanted)
        })))
    }

    /// The streams.
    fn promised(
        &self,
        config: &DriveConfig,
        parts: &VirtualParts,
        policies: &[NamedPolicy],
        until: Option<Instant>,
    ) -> Result<Option<Arc<StreamsBeside>>, Failure> {
        if self.streams.is_empty() {
            return Ok(None);
        }
        let Some(promise) = &config.streams else {
            return Err(self.input(&format!(
                "[[stream]] on drive {}, which promises nothing: expected a table [drive.streams]",
                config.name
            )));
        };
        let Some(until) = until else {
            return Err(self.input("[[stream]]: expected --seconds, for which they play"));
        };
        let refused = |why: &str| Err(self.input(&format!("[[stream]]: {why}")));
        if parts.mirror.is_some() || parts.truth.actuators > 1 {
            return refused("expected a drive of one actuator, and no mirror");
        }
        if let Some(policy) = policies
            .iter()
            .find(|policy| policy.depth() == scheduler::policy::Depth::DriveQueue)
        {
            let name = policy.name();
            return refused(&format!(
                "policy {name} leaves the order to the drive: expected another"
            ));
        }
        let placed = self.streams.iter().map(|stream| {
            let (volume, length) = self.volume_of(config, parts, &stream.export)?;
            let bytes = u64::from(parts.truth.block_bytes);
            let first = volume.offset / bytes;
            let group = StreamGroup {
                blocks: Some(first..first + length / bytes),
                ..stream.group.clone()
            };
            Ok(group)
        });
        let groups = placed.collect::<Result<Vec<_>, Failure>>()?;
        Ok(Some(Arc::new(StreamsBeside::new(
            promise,
            parts.truth.block_bytes,
            groups,
            until,
        ))))
    }
}

#[cfg(test)]
mod tests;
