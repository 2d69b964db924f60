//! `headtime serve --init`: a first configuration for a disk.

use std::path::{Path, PathBuf};

use lab::adoption::initial_settings::InitialSettings;
use lab::adoption::look::PathLook;

use crate::output::{Exit, NewFile, print, warn};

/// Writes the configuration to a new file, or to standard output.
///
/// # Errors
/// If the path is none that a service takes, or the file is there already.
pub(super) fn run(path: &str, settings: &InitialSettings, out: Option<&Path>) -> Result<(), Exit> {
    let look = PathLook::at(path)?;
    if let Some(refused) = &look.refused {
        return Err(Exit::input(format!("{path}: {refused}")));
    }
    let text = look.initial_configuration(settings);
    match out {
        None => print(&text)?,
        Some(out) => {
            if out.is_file() {
                return Err(Exit::input(format!(
                    "{}: it is there already: expected a new name (--out FILE)",
                    out.display()
                )));
            }
            NewFile::begin(out)?.write(&text)?;
            let out = out.display();
            print(&format!(
                "written: {out}\nnext: headtime serve --check {out}, then headtime serve {out}\n"
            ))?;
        }
    }
    for doubt in doubts(&look) {
        warn(&format!("{path}: {doubt}"));
    }
    Ok(())
}

/// The settings, with absolute paths: the configuration may be moved.
///
/// # Errors
/// If there is no such profile.
pub(super) fn settings(
    belief: Option<&Path>,
    mount: Option<&Path>,
) -> Result<InitialSettings, Exit> {
    let absolute = |path: &Path| -> Result<PathBuf, Exit> {
        std::path::absolute(path)
            .map_err(|error| Exit::input(format!("{}: {error}", path.display())))
    };
    if let Some(path) = belief.filter(|path| !is_profile(path)) {
        return Err(Exit::input(format!(
            "--belief {}: expected the file of a profile, whose name ends with .toml (`headtime adopt` writes it)",
            path.display()
        )));
    }
    Ok(InitialSettings {
        belief: belief.map(absolute).transpose()?,
        mount: mount.map(absolute).transpose()?,
    })
}

/// Whether a file is there whose name a service takes for that of a profile.
fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "toml") && path.is_file()
}

/// What speaks against serving the path as it is now.
fn doubts(look: &PathLook) -> Vec<String> {
    let facts = &look.facts;
    let mut doubts = Vec::new();
    if !facts.users.is_empty() {
        doubts.push(format!(
            "in use ({}): a start is refused until nobody uses it",
            facts.users.join(", ")
        ));
    }
    if facts.rotational == Some(false) {
        doubts.push(
            "it says that it does not rotate: without a head there is no head time to save"
                .to_owned(),
        );
    }
    doubts
}
