//! The capture of a drive in service: what its engine is made of, written down before it begins.

use drive::firmware::Bus;
use engine::Limits;
use headtime_client::private;
use scheduler::Preemption;

use crate::capture::{Belief, EngineSetting, Recorder, Tasks, Tracking};
use crate::config::{self, BackEnd, DriveModel};
use crate::featureless;

/// Begins the file, if the configuration wants one. What was in it is lost.
///
/// # Errors
/// If it cannot be written, or the belief cannot be read.
pub(super) fn begin(
    config: &config::DriveConfig,
    (blocks, block_bytes): (u64, u32),
    limits: Limits,
    (tracking, tasks): (Tracking, Tasks),
    preemption: Option<Preemption>,
) -> Result<Option<Recorder>, String> {
    let Some(path) = &config.capture else {
        return Ok(None);
    };
    let belief = match (&config.belief, &config.back_end) {
        (config::Belief::Profile(model), _) => Belief::plain(text(model)?),
        (_, BackEnd::Emulated(emulated)) => Belief {
            bus_block: emulated
                .bus_mb_s
                .map(|mb_s| Bus::at(mb_s, block_bytes).read_block),
            look_ahead: emulated.look_ahead,
            write_cache: emulated.write_cache,
            ..Belief::plain(text(&emulated.drive)?)
        },
        _ => Belief::plain(featureless::text(&config.name, blocks, block_bytes)),
    };
    let setting = EngineSetting {
        tracking,
        tasks,
        preemption,
        ..EngineSetting::plain(belief, config.policy, limits)
    };
    let begun = private::create_file(path).and_then(|file| Recorder::begin(file, &setting));
    begun
        .map(Some)
        .map_err(|error| format!("capture {}: {error}", path.display()))
}

fn text(model: &DriveModel) -> Result<String, String> {
    match model {
        DriveModel::Shipped(name) => {
            let entry = drive::catalog::find(name).map_err(|error| error.to_string())?;
            Ok(entry.text().to_owned())
        }
        DriveModel::File(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
        }
    }
}
