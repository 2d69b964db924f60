//! A client with caches, and a volume with one: a run of the simulator of caches.

use server::config::DriveConfig;
use server::service::in_virtual_time;

use super::{SystemFile, SystemLoad};
use crate::Failure;
use crate::cached_drive::CachedSettings;

impl SystemFile {
    /// Whether the file's clients have caches, or their volumes.
    ///
    /// # Errors
    /// If nothing uses a drive.
    pub fn has_caches(&self) -> Result<bool, Failure> {
        let config = self.drive()?;
        let is_cached =
            |load: &SystemLoad| !load.caches.is_empty() || self.cache_below(config, load).is_some();
        Ok(self.loads.iter().any(is_cached))
    }

    /// The cache of a client's volume, as `headtime simulate --cache` has it.
    fn cache_below(&self, config: &DriveConfig, load: &SystemLoad) -> Option<String> {
        let export = config
            .exports
            .iter()
            .find(|export| export.name == load.export)?;
        let mut volumes = config.volumes.iter();
        let volume = volumes.find(|volume| volume.name == export.volume)?;
        let cache = volume.cache.as_ref()?;
        Some(format!(
            "{},{},{},{}",
            cache.bytes, cache.replacement, cache.prefetch, cache.coordinator
        ))
    }

    /// The run of a trace on the caches of its client and its volume.
    ///
    /// # Errors
    /// If the file has more than the simulator of caches runs: other clients, streams, tasks, noise, a belief.
    pub fn cached(&self, requests: Option<u64>) -> Result<CachedSettings, Failure> {
        let config = self.drive()?;
        let parts = in_virtual_time(config).map_err(|problem| self.input(&problem))?;
        let alone = |what: &str| {
            Err(self.input(&format!(
                "{what} beside caches: expected one [[load]] with a trace, on a drive without noise"
            )))
        };
        let [load] = &self.loads[..] else {
            return alone("several [[load]]");
        };
        let others = [
            (!self.streams.is_empty(), "[[stream]]"),
            (!self.tasks.is_empty(), "[[task]]"),
            (config.preemption.is_some(), "[drive.preemption]"),
            (parts.mirror.is_some(), "a mirror"),
            (
                parts.imperfections != drive::Imperfections::default(),
                "a drive with noise",
            ),
            (
                matches!(parts.belief, server::service::VirtualBelief::File(_)),
                "a belief of its own",
            ),
            (load.load.trace.is_none(), "a workload"),
        ];
        if let Some((_, what)) = others.iter().find(|(is_there, _)| *is_there) {
            return alone(what);
        }
        let mut caches = load.caches.clone();
        caches.extend(self.cache_below(config, load));
        Ok(CachedSettings {
            drive: parts.truth.name.clone(),
            profile: Some(parts.truth),
            load: load.load.clone(),
            caches,
            link: load.link.clone(),
            policy: config.policy.name(),
            requests,
        })
    }
}
