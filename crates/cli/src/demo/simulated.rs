//! `headtime demo --simulated`: the demonstration in virtual time, in a few seconds.
//!
//! The drive's model is validated against measured service times. The built-in load keeps 32
//! requests outstanding. Three policies serve the same requests, so that differences are the
//! policies'.

use std::path::Path;

use lab::comparison::ComparisonSetup;
use lab::comparison::figures::panels;
use lab::demonstration::comparisons::{
    DEVICE, FACTOR, SCANNED_DRIVE, SCANNED_PERCENT, TRACE_DRIVE, WHAT, replayed, scanned,
    three_policies, trace,
};
use lab::plot;

use crate::output::{DrawingFile, Exit, print, width};
use crate::simulate;
use crate::simulate::progress::RunBar;

/// Runs the comparison, and writes its plots.
///
/// # Errors
/// If the plots cannot be written.
pub fn run(svg: &Path) -> Result<(), Exit> {
    let file = DrawingFile::begin(svg)?;
    let mut plots = shown(&three_policies()?)?;
    print(&format!(
        "\nA drive that is never idle, {SCANNED_DRIVE} with ten requests always pending: the first \
         {SCANNED_PERCENT} % of a scan\nare read in rotational gaps. Seeks are less steady than the \
         scheduler believes.\n\n"
    ))?;
    plots.extend(shown(&scanned()?)?);
    match trace() {
        Ok(path) => {
            print(&format!(
                "\nThe same with a real trace, {WHAT}: device {DEVICE} of\n{}, whose addresses fit \
                 {TRACE_DRIVE} as they are.\nIts times are multiplied by {FACTOR} (--scale-time), \
                 so that requests wait for each other.\n\n",
                path.display()
            ))?;
            plots.extend(shown(&replayed(path)?)?);
        }
        Err(why) => print(&format!(
            "\nThe part with a real trace was skipped: {why}.\n"
        ))?,
    }
    file.write(&plot::page(&plots))?;
    print(&format!("\nPlots: {}\n", svg.display()))
}

/// Runs a comparison, prints it, and returns its plots.
fn shown(setup: &ComparisonSetup) -> Result<Vec<plot::Panel>, Exit> {
    let mut runs = Vec::new();
    for &policy in &setup.policies {
        let mut progress = RunBar::new(&policy.name(), setup);
        runs.push(setup.run(policy, &mut progress)?);
        progress.finish()?;
    }
    let text = simulate::report(setup, &runs, width::of_terminal());
    print(&text)?;
    Ok(panels(setup, &runs))
}
