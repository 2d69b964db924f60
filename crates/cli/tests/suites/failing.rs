//! What lies under a volume fails: the client gets the right error, the log says what to do, and
//! what can be served still is.

use std::process::Command;

use super::served::{has, skipped};
use super::service::{DOORS, Service, WHOLE, emulated, file};

/// Bytes of the volume of a file.
const BYTES: u64 = 32 << 20;

/// What `qemu-io` says to a command on the export.
fn io(service: &Service, command: &str) -> String {
    let uri = service.uri("disk");
    let mut program = Command::new("qemu-io");
    let program = program.args(["-f", "raw", "-t", "none", "-c", command, &uri]);
    let output = program.output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8(said).expect("text")
}

fn works(service: &Service, command: &str, bytes: u64) {
    let said = io(service, command);
    let done = format!("{bytes}/{bytes} bytes at offset");
    assert!(said.contains(&done) && !said.contains("ailed"), "{said}");
}

fn fails(service: &Service, command: &str, reason: &str) {
    let said = io(service, command);
    assert!(said.contains(reason), "{command}: {said}");
}

fn is_logged(service: &Service, what: &str) {
    let log = service.log();
    assert!(log.contains(what), "{what}: {log}");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let me = std::fs::metadata("/proc/self").expect("this process");
    me.uid() == 0 || skipped("no root")
}

/// A folder on a small file system of its own.
struct Small(std::path::PathBuf);

impl Small {
    fn at(path: std::path::PathBuf) -> Small {
        std::fs::create_dir(&path).expect("a folder");
        let mut mount = Command::new("mount");
        let mount = mount
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(&path);
        assert!(mount.status().expect("it runs").success());
        Small(path)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

fn a_full_file_system_is_told(drive: &str) {
    if !has("qemu-io") || !has("mount") || !is_root() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let small = Small::at(folder.path().join("small"));
    let drive = drive.replace("\"image\"", "\"small/image\"");
    let service = Service::start_in(folder, &format!("{drive}{DOORS}")).expect("it serves");
    works(&service, "write -P 7 0 1M", 1 << 20);
    fails(&service, "write -P 8 8M 8M", "No space left on device");
    is_logged(&service, "free space on the file system of the image");
    // What there is room for goes on, and so does what is there.
    works(&service, "read -P 7 0 1M", 1 << 20);
    works(&service, "write -P 9 0 1M", 1 << 20);
    works(&service, "discard 8M 8M", 8 << 20);
    works(&service, "write -P 8 8M 1M", 1 << 20);
    service.stop();
    drop(small);
}

#[test]
fn a_full_file_system_is_told_to_clients_of_a_file() {
    a_full_file_system_is_told(&file(BYTES, WHOLE));
}

#[test]
fn a_full_file_system_is_told_to_clients_of_an_emulated_drive() {
    a_full_file_system_is_told(&emulated(WHOLE));
}

/// The file is on a file system whose server is killed: every call fails from then on.
#[test]
fn errors_of_the_medium_are_told_and_the_service_goes_on() {
    if !has("qemu-io") || !is_root() {
        return;
    }
    if !std::path::Path::new("/dev/fuse").exists() {
        skipped("no /dev/fuse");
        return;
    }
    let below = tempfile::tempdir().expect("a folder");
    let volumes = below.path().join("volumes");
    std::fs::create_dir(&volumes).expect("a folder");
    let doors = format!("{DOORS}[fuse]\nmount = \"volumes\"\n");
    let below = Service::start_in(below, &format!("{}{doors}", file(BYTES, WHOLE)));
    let below = below.expect("it serves");
    let path = volumes.join("disk").display().to_string();
    let drive = file(BYTES, WHOLE).replace("\"image\"", &format!("\"{path}\""));
    let above = Service::start(&format!("{drive}{DOORS}"));
    works(&above, "write -P 7 1M 64k", 64 << 10);
    below.kill();
    for command in ["read 1M 64k", "write 1M 64k", "read 1 100", "write 1 100"] {
        fails(&above, command, "Input/output error");
    }
    is_logged(&above, "see what the kernel says of the disk (dmesg)");
    let uri = above.uri("disk");
    if has("nbdinfo") {
        assert_eq!(
            above.prints(&format!("nbdinfo --size {uri}")),
            format!("{BYTES}\n")
        );
    }
    drop(above);
    let _ = Command::new("umount").arg("--lazy").arg(&volumes).status();
}

#[test]
fn an_image_that_is_shorter_than_the_volume_is_told() {
    if !has("qemu-io") {
        return;
    }
    // Before it is served: what to do about it.
    let folder = tempfile::tempdir().expect("a folder");
    let image = std::fs::File::create(folder.path().join("image")).expect("an image");
    image.set_len(BYTES / 2).expect("a length");
    let config = format!("{}{DOORS}", file(BYTES, WHOLE));
    let said = Service::start_in(folder, &config)
        .err()
        .expect("it does not serve");
    let advice = format!("expected {BYTES}, as many as the drive has; `truncate -s {BYTES} image`");
    assert!(said.contains(&advice), "{said}");
    // While it is served.
    let service = Service::start(&config);
    works(&service, "write -P 7 0 64k", 64 << 10);
    let image = std::fs::File::options()
        .write(true)
        .open(service.path("image"));
    image
        .and_then(|image| image.set_len(BYTES / 2))
        .expect("it is cut");
    fails(
        &service,
        &format!("read {} 64k", BYTES - (64 << 10)),
        "Input/output error",
    );
    is_logged(
        &service,
        "the image ends before the volume does: was it cut?",
    );
    is_logged(&service, &format!("truncate -s {BYTES}"));
    works(&service, "read -P 7 0 64k", 64 << 10);
    service.stop();
}
