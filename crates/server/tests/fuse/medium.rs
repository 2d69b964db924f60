//! What reaches the drive of `fsync`, synchronous files and holes.

#![allow(unsafe_code, reason = "a back end is given memory by address")]

use std::fs::OpenOptions;
use std::io::IoSlice;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::{Arc, Mutex};

use block::operation::{OperationError, ZeroingPace};
use block::{Action, Command, Durability, Instant};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, ReadWriteFlags, pwritev2};
use server::arena::Memory;
use server::disk::back_end::{BackEnd, Ended, Punch, Shape, Span};
use server::ring::Ring;

use crate::scene::{Medium, Scene};

const BYTES: u64 = 1 << 20;

/// What the drive was told, but for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Write(Durability),
    Flush,
    Punch(Punch),
}

/// A back end that keeps what it is told, and has the space functions of a disk, or of a sparse
/// file.
struct Witness {
    inner: Box<dyn BackEnd>,
    told: Arc<Mutex<Vec<Told>>>,
    zeroes_fast: bool,
}

impl BackEnd for Witness {
    fn shape(&self) -> Shape {
        Shape {
            zeroes_fast: self.zeroes_fast,
            ..self.inner.shape()
        }
    }

    unsafe fn start(
        &mut self,
        now: Instant,
        command: &Command,
        memory: &[Memory],
        ring: &mut Ring,
    ) {
        let told = match command.action {
            Action::Write { durability, .. } => Some(Told::Write(durability)),
            Action::Flush => Some(Told::Flush),
            _ => None,
        };
        self.told.lock().expect("told").extend(told);
        // SAFETY: the caller's promise, passed on.
        unsafe { self.inner.start(now, command, memory, ring) };
    }

    fn ring_ended(&mut self, now: Instant, key: u32, result: i32, ring: &mut Ring) {
        self.inner.ring_ended(now, key, result, ring);
    }

    fn poll(&mut self, now: Instant) -> Option<Ended> {
        self.inner.poll(now)
    }

    fn punch(&mut self, key: u32, what: Punch, span: Span, ring: &mut Ring) {
        self.told.lock().expect("told").push(Told::Punch(what));
        self.inner.punch(key, what, span, ring);
    }

    fn poll_punched(&mut self) -> Option<(u32, Result<(), OperationError>)> {
        self.inner.poll_punched()
    }
}

/// A volume, and what was told since the last question.
fn witnessed(zeroes_fast: bool) -> Option<(Scene, impl Fn() -> Vec<Told>)> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&told);
    let scene = Scene::on(Medium::Ram, BYTES, move |inner| {
        Box::new(Witness {
            inner,
            told: theirs,
            zeroes_fast,
        })
    });
    let since = move || std::mem::take(&mut *told.lock().expect("told"));
    Some((scene?, since))
}

#[test]
fn syncs_flush_and_synchronous_writes_are_durable() {
    let Some((scene, told)) = witnessed(true) else {
        return;
    };
    let volume = scene.open();
    volume.write_all_at(&[1; 512], 0).expect("written");
    assert_eq!(told(), [Told::Write(Durability::Volatile)]);
    volume.sync_all().expect("flushed");
    assert_eq!(told(), [Told::Flush]);
    volume.write_all_at(&[1; 512], 0).expect("written");
    volume.sync_data().expect("flushed");
    assert_eq!(told(), [Told::Write(Durability::Volatile), Told::Flush]);
    let slices = [IoSlice::new(&[2; 512])];
    for how in [ReadWriteFlags::DSYNC, ReadWriteFlags::SYNC] {
        pwritev2(&volume, &slices, 512, how).expect("written");
        assert_eq!(told()[0], Told::Write(Durability::Durable), "{how:?}");
    }
    for flags in [libc::O_DSYNC, libc::O_SYNC | libc::O_DIRECT] {
        let mut options = OpenOptions::new();
        let volume = options.write(true).custom_flags(flags).open(scene.path());
        let volume = volume.expect("opened");
        // A part of a block, too.
        for length in [512, 100] {
            volume
                .write_all_at(&[3; 512][..length], 1024)
                .expect("written");
            assert_eq!(told()[0], Told::Write(Durability::Durable), "{flags:o}");
        }
    }
}

#[test]
fn a_hole_is_freed_and_a_zeroed_range_is_kept() {
    let Some((scene, told)) = witnessed(true) else {
        return;
    };
    let volume = scene.open();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    fallocate(&volume, hole, 0, 8192).expect("a hole");
    assert_eq!(told(), [Told::Punch(Punch::Free(ZeroingPace::Fast))]);
    fallocate(&volume, FallocateFlags::ZERO_RANGE, 0, 8192).expect("zeroes");
    assert_eq!(told(), [Told::Punch(Punch::Zero(ZeroingPace::Any))]);
}

/// On a disk zeroes are written, which a hole is not worth: it is refused, and nothing changes.
#[test]
fn a_disk_refuses_holes_and_writes_zeroes() {
    let Some((scene, told)) = witnessed(false) else {
        return;
    };
    let volume = scene.open();
    volume.write_all_at(&[7; 8192], 0).expect("written");
    told();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let refused = fallocate(&volume, hole, 100, 4096);
    assert_eq!(refused, Err(Errno::OPNOTSUPP));
    assert_eq!(told(), []);
    fallocate(&volume, FallocateFlags::ZERO_RANGE, 512, 1024).expect("zeroes");
    assert_eq!(told(), [Told::Write(Durability::Volatile)]);
    let mut bytes = vec![0xAA; 8192];
    volume.read_exact_at(&mut bytes, 0).expect("read");
    assert!(
        bytes[..512]
            .iter()
            .chain(&bytes[1536..])
            .all(|&byte| byte == 7)
    );
    assert!(bytes[512..1536].iter().all(|&byte| byte == 0));
}
