//! The live run: two upper services before a lower one, each a process.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use block::operation::Ask;
use nbd::request::Asked;
use server::cache_setting::{PAGE, Readmore};
use server::status::Cache;

use super::gains::CacheFigures;
use super::readers::CacheReader;
use super::{Above, CachesBench, NONE, SimulatedDisk};
use crate::bench::rig::ServeProcess;
use crate::nbd_client::LoadClient;
use crate::{Failure, Progress};

/// Runs both readers once, with empty caches.
///
/// # Errors
/// If a service does not run.
pub(super) fn once(
    settings: &CachesBench,
    coordinator: &str,
    progress: &dyn Progress,
) -> Result<CacheFigures, Failure> {
    let folder = tempfile::tempdir().map_err(Failure::failed)?;
    let [lower, first, second] = services(settings, coordinator, folder.path())?;
    let times = thread::scope(|scope| {
        let begun: Vec<_> = CacheReader::both(settings)
            .into_iter()
            .map(|reader| {
                let socket = folder.path().join(format!("upper-{}", reader.client));
                scope.spawn(move || read(reader, &socket, progress))
            })
            .collect();
        let ended = begun.into_iter().map(|thread| match thread.join() {
            Ok(times) => times.map_err(Failure::failed),
            Err(_) => Err(Failure::failed("a reader has failed")),
        });
        ended.collect::<Result<Vec<_>, _>>()
    })?;
    let cache = lower_cache(&lower)?;
    drop((first, second, lower));
    let times: Vec<f64> = times.into_iter().flatten().collect();
    let mean_ms = times.iter().sum::<f64>() / times.len() as f64 * 1e3;
    Ok(figures(settings, mean_ms, &cache))
}

/// The counts of the lower level's cache.
pub(super) fn lower_cache(lower: &ServeProcess) -> Result<Cache, Failure> {
    let status = lower.status()?;
    let cache = status.drives.first().and_then(|drive| drive.caches.first());
    Ok(cache.cloned().unwrap_or_default())
}

/// The figures of a run, from the mean response time of this machine's clock and the lower level's
/// counts.
pub(super) fn figures(settings: &CachesBench, mean_ms: f64, cache: &Cache) -> CacheFigures {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let had = cache.hit_bytes_total + cache.late_bytes_total;
    CacheFigures {
        mean_ms: mean_ms / settings.time_scale,
        lower_hits_percent: had as f64 / cache.asked_bytes_total.max(1) as f64 * 100.0,
        lower_ahead_mb: mb(cache.prefetched_bytes_total + cache.readmore_bytes_total),
        lower_bypassed_mb: mb(cache.bypassed_bytes_total),
        lower_wished_mb: mb(cache.wished_bytes_total),
        lower_granted_mb: mb(cache.granted_bytes_total),
        upper_mb: None,
    }
}

/// Starts the lower service, then the upper ones.
fn services(
    settings: &CachesBench,
    coordinator: &str,
    folder: &Path,
) -> Result<[ServeProcess; 3], Failure> {
    let path = |name: &str| folder.join(name);
    let lower = lower(settings, coordinator, folder, &path("image"))?;
    let (upper, _) = settings.sizes();
    let upper = ServiceOfLevel {
        back_end: format!(
            "{{ kind = \"nbd\", uri = \"nbd+unix:///?socket={}\" }}",
            path("lower").display()
        ),
        policy: UPPER_POLICY,
        blocks: upper,
        coordinator: NONE,
        readmore: Readmore::Ordinary,
        mount: None,
    };
    let start = |name: &str| {
        let config = config(settings, &upper, &path(name));
        ServeProcess::start(name, &config, folder)
    };
    Ok([lower, start("upper-0")?, start("upper-1")?])
}

/// Starts the lower service over an image. Below the page cache its volume is the file `disk` in the
/// folder `volume`, too.
///
/// # Errors
/// If it does not start.
pub(super) fn lower(
    settings: &CachesBench,
    coordinator: &str,
    folder: &Path,
    image: &Path,
) -> Result<ServeProcess, Failure> {
    let path = |name: &str| folder.join(name);
    let profile = match settings.simulated_disk {
        SimulatedDisk::Elevator => one_at_a_time(&settings.drive)?,
        SimulatedDisk::Engine => {
            let entry = drive::catalog::find(&settings.drive).map_err(Failure::input)?;
            entry.text().to_owned()
        }
    };
    std::fs::write(path("drive.toml"), profile).map_err(Failure::failed)?;
    let (_, blocks) = settings.sizes();
    let of = ServiceOfLevel {
        back_end: format!(
            "{{ kind = \"emulated\", drive = \"{}\", image = \"{}\", time_scale = {} }}",
            path("drive.toml").display(),
            image.display(),
            settings.time_scale
        ),
        policy: settings.policy(),
        blocks,
        coordinator,
        // Without a coordinator there is no readmore.
        readmore: match coordinator {
            NONE => Readmore::Ordinary,
            _ => settings.readmore,
        },
        mount: match settings.above {
            Above::Service => None,
            Above::PageCache => Some(path("volume")),
        },
    };
    let config = config(settings, &of, &path("lower"));
    ServeProcess::start("lower", &config, folder)
}

/// The text of a profile whose drive takes one command at a time, as the simulator's does.
fn one_at_a_time(drive: &str) -> Result<String, Failure> {
    let entry = drive::catalog::find(drive).map_err(Failure::input)?;
    let lines = entry
        .text()
        .lines()
        .map(|line| match line.split(' ').next() {
            Some("depth") => "depth = 1",
            _ => line,
        });
    let text = lines.collect::<Vec<_>>().join("\n");
    let profile = drive::Profile::parse(&text, drive).map_err(Failure::failed)?;
    match profile.queue.depth {
        1 => Ok(text),
        other => Err(Failure::failed(format!(
            "{drive}: a queue of {other}: expected a line \"depth = \" in its profile"
        ))),
    }
}

/// A service with one volume and its cache.
struct ServiceOfLevel<'a> {
    back_end: String,
    policy: &'a str,
    /// The size of the cache, in blocks.
    blocks: u64,
    coordinator: &'a str,
    readmore: Readmore,
    /// Where the volume is a file, too.
    mount: Option<PathBuf>,
}

/// Policy of the upper services. They do not know the head's position, and dispatch nearly
/// everything at once, so that the policy matters little.
const UPPER_POLICY: &str = "c-look";

/// The configuration of a service that listens on `socket`.
fn config(settings: &CachesBench, of: &ServiceOfLevel<'_>, socket: &Path) -> String {
    format!(
        r#"
[[drive]]
name = "disk"
policy = "{policy}"
back_end = {back_end}
export = [{{ name = "disk", volume = "disk" }}]

[[drive.volume]]
name = "disk"
[drive.volume.cache]
size = {size}
replacement = "{replacement}"
prefetch = "{prefetch}"
coordinator = "{coordinator}"
readmore = "{readmore}"
# The simulator's prefetches are as urgent as demands.
ahead_class = "foreground"

[[nbd]]
unix = "{socket}"

{fuse}

[control]
socket = "{control}"
"#,
        policy = of.policy,
        back_end = of.back_end,
        size = of.blocks * PAGE,
        replacement = settings.replacement,
        prefetch = settings.prefetch,
        coordinator = of.coordinator,
        readmore = of.readmore.name(),
        socket = socket.display(),
        fuse = of.mount.as_ref().map_or_else(String::new, |mount| {
            format!("[fuse]\nmount = \"{}\"", mount.display())
        }),
        control = socket.with_extension("control").display(),
    )
}

/// Reads all blocks of a reader in order, and returns the response times in seconds.
fn read(reader: CacheReader, socket: &Path, progress: &dyn Progress) -> std::io::Result<Vec<f64>> {
    let mut client = LoadClient::connect(socket, 1)?;
    let mut times = Vec::with_capacity(reader.left as usize);
    for blocks in reader {
        let begun = Instant::now();
        let ask = Asked::Of(Ask::Read);
        client.submit(ask, blocks.first * PAGE, blocks.len() * PAGE, &[])?;
        client.end()?;
        times.push(begun.elapsed().as_secs_f64());
        progress.advance(1);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drive_takes_one_command_at_a_time() {
        for entry in drive::catalog::ALL {
            assert!(one_at_a_time(entry.name).is_ok(), "{}", entry.name);
        }
    }
}
