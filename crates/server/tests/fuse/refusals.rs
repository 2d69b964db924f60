//! What is refused, and with which error.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use server::front_end::fuse::Mount;

use crate::scene::{Medium, Scene};

const BYTES: u64 = 1 << 20;

fn number<T>(result: io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn the_size_stays_and_the_end_is_that_of_a_block_device() {
    let Some(scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    let volume = scene.open();
    for size in [0, 1, BYTES - 1, BYTES + 1] {
        assert_eq!(number(volume.set_len(size)), Some(libc::EPERM), "{size}");
    }
    assert_eq!(number(volume.set_len(BYTES)), None);
    assert_eq!(number(File::create(scene.path())), Some(libc::EPERM));
    // What there is room for is written, nothing at the end.
    let written = volume.write_at(&[7; 1000], BYTES - 300);
    assert_eq!(written.expect("a part"), 300);
    let past = volume.write_at(&[7; 1000], BYTES);
    assert_eq!(number(past), Some(libc::ENOSPC));
    let mut bytes = [0; 1000];
    assert_eq!(
        volume.read_at(&mut bytes, BYTES - 300).expect("a part"),
        300
    );
    assert_eq!(bytes[..300], [7; 300]);
    assert_eq!(volume.read_at(&mut bytes, BYTES).expect("nothing"), 0);
    assert_eq!(volume.metadata().expect("its size").size(), BYTES);
    let more = fallocate(&volume, FallocateFlags::empty(), 0, BYTES);
    assert_eq!(more, Err(Errno::OPNOTSUPP));
    let longer = fallocate(&volume, FallocateFlags::ZERO_RANGE, BYTES - 512, 1024);
    assert_eq!(longer, Err(Errno::PERM));
    assert_eq!(volume.metadata().expect("its size").size(), BYTES);
}

#[test]
fn nobody_makes_or_removes_files() {
    let Some(scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    let other = scene.folder().join("other");
    assert!(number(File::create(&other)).is_some());
    assert!(number(std::fs::create_dir(&other)).is_some());
    assert!(number(std::fs::remove_file(scene.path())).is_some());
    assert!(number(std::fs::rename(scene.path(), &other)).is_some());
    assert_eq!(number(File::open(&other)), Some(libc::ENOENT));
    let names = std::fs::read_dir(scene.folder()).expect("its files");
    let names: Vec<_> = names
        .map(|entry| entry.expect("a file").file_name())
        .collect();
    assert_eq!(names, ["volume"]);
}

#[test]
fn a_volume_that_may_only_be_read_is_read() {
    let Some(mut scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    scene.open().write_all_at(b"kept", 700).expect("written");
    scene.mount = None;
    let mut file = scene.file(Medium::Ram, BYTES);
    file.read_only = true;
    scene.mount = Some(Mount::begin(&scene.folder(), vec![file]).expect("mounted"));
    for how in [libc::O_WRONLY, libc::O_RDWR] {
        let is_read = how == libc::O_RDWR;
        let mut options = OpenOptions::new();
        let opened = options.write(true).read(is_read).open(scene.path());
        assert_eq!(number(opened), Some(libc::EROFS));
    }
    let mut bytes = [0; 4];
    let volume = File::open(scene.path()).expect("to be read");
    volume.read_exact_at(&mut bytes, 700).expect("read");
    assert_eq!(&bytes, b"kept");
    let Some(device) = scene.loop_device() else {
        return;
    };
    let is_read_only = crate::scene::run("blockdev", &["--getro", &device.device]);
    assert_eq!(is_read_only.trim(), "1");
}

#[test]
fn a_direct_client_may_ask_for_parts_of_blocks() {
    let Some(scene) = Scene::new(Medium::Image, BYTES) else {
        return;
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_DIRECT);
    let volume = options.open(scene.path()).expect("opened");
    volume
        .write_all_at(&[9; 512], 4096 + 512)
        .expect("a sector of a block");
    let mut block = vec![0xAA; 4096];
    volume.read_exact_at(&mut block, 4096).expect("the block");
    assert_eq!(block[..512], [0; 512]);
    assert_eq!(block[512..1024], [9; 512]);
    assert_eq!(block[1024..], [0; 3072]);
}

#[test]
fn when_the_drive_is_gone_there_are_errors_and_nobody_waits() {
    let Some(mut scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    let volume = scene.open();
    volume.write_all_at(&[1; 512], 0).expect("written");
    let ended = scene.station.take().expect("a drive").stop();
    ended.expect("all was written");
    let mut bytes = [0; 512];
    assert!(number(volume.read_at(&mut bytes, 0)).is_some());
    assert!(number(volume.write_at(&bytes, 0)).is_some());
    assert!(number(volume.write_at(&bytes[..100], 50)).is_some());
    // The one before has given its blocks back.
    assert!(number(volume.write_at(&bytes[..100], 60)).is_some());
    assert!(number(volume.sync_all()).is_some());
}
