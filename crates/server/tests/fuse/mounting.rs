//! Folders to mount on, and what is left of them.

use std::ffi::CString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::mount::{MountFlags, mount};
use server::front_end::fuse::Mount;

use crate::scene::{Medium, Mounted, Scene};

const BYTES: u64 = 1 << 20;

fn is_mounted(folder: &Path) -> bool {
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("the table");
    table.contains(folder.to_str().expect("UTF-8"))
}

#[test]
fn dropping_it_unmounts_and_it_can_be_mounted_again() {
    let Some(mut scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    assert!(is_mounted(&scene.folder()));
    for _ in 0..3 {
        scene.mount = None;
        assert!(!is_mounted(&scene.folder()));
        assert!(!scene.path().exists());
        let file = scene.file(Medium::Ram, BYTES);
        scene.mount = Some(Mount::begin(&scene.folder(), vec![file]).expect("mounted"));
        assert!(scene.path().exists());
    }
}

#[test]
fn who_has_a_file_open_when_it_is_unmounted_keeps_it() {
    let Some(mut scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    let volume = scene.open();
    volume.write_all_at(b"before", 1000).expect("written");
    scene.mount = None;
    assert!(!is_mounted(&scene.folder()));
    let mut bytes = [0; 6];
    volume
        .read_exact_at(&mut bytes, 1000)
        .expect("still served");
    assert_eq!(&bytes, b"before");
}

/// A FUSE mount whose server is gone.
fn dead(folder: &Path, source: &str) -> Mounted {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let device = device.expect("/dev/fuse");
    let number = device.as_raw_fd();
    let options = format!("fd={number},rootmode=40000,user_id=0,group_id=0");
    let options = CString::new(options).expect("no zero bytes");
    mount(
        source,
        folder,
        "fuse",
        MountFlags::empty(),
        options.as_c_str(),
    )
    .expect("mounted");
    drop(device);
    let error = std::fs::metadata(folder).expect_err("nobody answers");
    assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
    let at = folder.to_owned();
    Mounted { at }
}

#[test]
fn what_a_killed_server_has_left_is_unmounted() {
    let Some(mut scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    scene.mount = None;
    let _left = dead(&scene.folder(), "headtime");
    let _below = dead(&scene.folder(), "headtime");
    let file = scene.file(Medium::Ram, BYTES);
    scene.mount = Some(Mount::begin(&scene.folder(), vec![file]).expect("mounted"));
    assert!(scene.path().exists());
    scene.mount = None;
    assert!(!is_mounted(&scene.folder()));
}

#[test]
fn mounts_of_others_and_live_ones_stay() {
    let Some(mut scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    let begin = |scene: &Scene| {
        let file = scene.file(Medium::Ram, BYTES);
        Mount::begin(&scene.folder(), vec![file]).map(drop)
    };
    let error = begin(&scene).expect_err("mounted already");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains("umount /"), "{error}");
    assert!(scene.path().exists());
    scene.mount = None;
    let _others = dead(&scene.folder(), "somebody");
    let error = begin(&scene).expect_err("another's");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains("somebody"), "{error}");
    assert!(is_mounted(&scene.folder()));
}

#[test]
fn folders_names_and_sizes_that_make_no_sense_are_refused() {
    let Some(mut scene) = Scene::new(Medium::Ram, BYTES) else {
        return;
    };
    scene.mount = None;
    let good = scene.file(Medium::Ram, BYTES);
    let long = "a".repeat(256);
    for name in ["", ".", "..", "a/b", "a\0b", long.as_str()] {
        let mut file = good.clone();
        file.name = name.to_owned();
        let error = Mount::begin(&scene.folder(), vec![file]).map(drop);
        let error = error.expect_err("no such name");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name:?}");
    }
    let twice = Mount::begin(&scene.folder(), vec![good.clone(), good.clone()]);
    assert!(twice.map(drop).is_err());
    for (bytes, block_bytes) in [(BYTES + 1, 512), (BYTES, 0), (u64::MAX / 512 * 512, 512)] {
        let mut file = good.clone();
        (file.bytes, file.block_bytes) = (bytes, block_bytes);
        let error = Mount::begin(&scene.folder(), vec![file]).map(drop);
        assert_eq!(error.expect_err("no size").kind(), ErrorKind::InvalidInput);
    }
    let missing = scene.folder().join("missing");
    let error = Mount::begin(&missing, vec![good.clone()]).map(drop);
    assert_eq!(error.expect_err("no folder").kind(), ErrorKind::NotFound);
    let file = scene.home.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let error = Mount::begin(&file, vec![good]).map(drop);
    assert_eq!(
        error.expect_err("no folder").kind(),
        ErrorKind::NotADirectory
    );
    assert!(!is_mounted(scene.home.path()));
}
