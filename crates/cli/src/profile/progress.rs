//! Progress of profiling on the terminal.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use block::{Duration, Instant};
use indicatif::{ProgressBar, ProgressStyle};
use lab::profiling::ProfilingObserver;
use profiler::{DriveIdentity, Findings};

use crate::bar::ProgressLines;
use crate::output::remark;
use crate::verbosity::bar_target;

/// A bar of the budget, with the findings so far.
pub struct ProfileBar {
    bar: ProgressBar,
    _lines: ProgressLines,
    /// The flag that stops the measurement of a real drive.
    stop: Option<Arc<AtomicBool>>,
}

impl ProfileBar {
    /// Creates the bar, which is hidden if standard error is no terminal.
    pub fn new(budget: Duration, stop: Option<Arc<AtomicBool>>) -> Self {
        let target = bar_target(10);
        let bar = ProgressBar::with_draw_target(Some(millis(budget)), target);
        let template = "{prefix} {bar:20} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        }
        let _lines = ProgressLines::of(&bar);
        ProfileBar { bar, _lines, stop }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl ProfilingObserver for ProfileBar {
    fn begin(&self, drive: &str) {
        self.bar.set_prefix(drive.to_owned());
    }

    fn show(&self, at: Instant, device: &DriveIdentity, findings: &Findings) {
        self.bar.set_position(millis(at.since(Instant::ZERO)));
        let seconds = at.as_secs_f64();
        let known = known(device, findings);
        let step = findings.progress.step.name();
        self.bar.set_message(format!(
            "{seconds:.0} s of the drive, at {step}; known: {known}"
        ));
    }

    fn say(&self, sentence: &str) {
        remark(&self.bar, &self.bar.prefix(), sentence);
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.stop.clone()
    }
}

fn millis(time: Duration) -> u64 {
    time.as_nanos() / 1_000_000
}

/// The findings so far, in a few words.
pub fn known(device: &DriveIdentity, findings: &Findings) -> String {
    let mut known = Vec::new();
    if let Some(clock) = &findings.clock {
        known.push(format!(
            "{:.1} rpm",
            60e12 / clock.spindle().period_ps() as f64
        ));
    }
    let mapped = findings.map.known();
    if mapped > 0 {
        let share = mapped as f64 / device.blocks as f64 * 100.0;
        known.push(format!("tracks of {share:.1} % of the blocks"));
    }
    if let Some(layout) = &findings.layout {
        let description = &layout.description;
        let (surfaces, cylinders) = (description.surfaces, description.cylinders);
        known.push(format!("{surfaces} surfaces, {cylinders} cylinders"));
    }
    if let Some(arm) = &findings.arm {
        known.push(format!("seeks over {} distances", arm.read.len()));
    }
    if findings.firmware.is_some() {
        known.push("the electronics".to_owned());
    }
    match known.is_empty() {
        true => "nothing".to_owned(),
        false => known.join(", "),
    }
}
