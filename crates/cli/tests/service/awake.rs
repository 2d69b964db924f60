//! `cpu_latency_us`: the service keeps CPUs awake while a task waits for gaps, and only then.

use std::fs;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use crate::here::are_here;
use crate::scanned::{Service, config};

/// A service that takes longer hangs. Nothing is measured by it.
const HANGS: Duration = Duration::from_secs(60);

/// The kernel keeps a bound as long as the device is open.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// Whether a process has asked for a bound.
fn asks(process: u32) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).expect("its files");
    let paths = open.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    paths.into_iter().any(|path| path.as_os_str() == DEVICE)
}

/// Waits until the service asks for a bound, or no longer.
fn await_bound(service: &Service, wanted: bool) {
    let began = Instant::now();
    while asks(service.process()) != wanted {
        assert!(began.elapsed() < HANGS, "{wanted}: {}", service.log());
        yield_now();
    }
}

#[test]
fn cpus_stay_awake_while_a_scan_waits_for_gaps() {
    if !are_here(&[DEVICE], &[]) {
        return;
    }
    // So slow that the scan does not end.
    let slow = config("").replace("time_scale = 0.01", "time_scale = 2");
    let settings = slow.replacen("name = \"rz26\"", "name = \"rz26\"\ncpu_latency_us = 0", 1);
    let service = Service::start_with(&[], &settings);
    let (is_good, text) = service.run(&["scan", "all", "--detach"]);
    assert!(is_good, "{text}");
    await_bound(&service, true);
    let (is_good, text) = service.run(&["ctl", "suspend", "1"]);
    assert!(is_good, "{text}");
    await_bound(&service, false);
    let (is_good, text) = service.run(&["ctl", "resume", "1"]);
    assert!(is_good, "{text}");
    await_bound(&service, true);
    let (is_good, text) = service.run(&["ctl", "abort", "1"]);
    assert!(is_good, "{text}");
    await_bound(&service, false);
}
