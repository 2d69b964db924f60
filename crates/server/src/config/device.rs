//! A disk of this machine in the configuration file.

use std::path::PathBuf;

use block::Switch;
use document::{DocumentError, Section};

use super::fields::switch;
use super::{Device, Way};

/// A device. It is named twice, because everything on it may be overwritten.
pub(super) fn device(table: &Section<'_>) -> Result<Device, DocumentError> {
    let field = table.need("path", "the path of a block device")?;
    let path = field.text("the path of a block device")?;
    if !path.starts_with('/') {
        return Err(field.mismatch("an absolute path, such as \"/dev/sdb\""));
    }
    let again = format!("\"{path}\" once more, because all that is on it may be overwritten");
    let confirm = table.need("confirm", &again)?;
    if confirm.text(&again)? != path {
        return Err(confirm.mismatch(&again));
    }
    Ok(Device {
        path: PathBuf::from(path),
        way: match switch(table, "passthrough", Switch::Off)? {
            Switch::On => Way::Scsi,
            Switch::Off => Way::Kernel,
        },
        // A drive that writes when it likes is not where the belief has its head.
        write_cache: switch(table, "write_cache", Switch::Off)?,
        look_ahead: switch(table, "look_ahead", Switch::On)?,
    })
}
