//! The virtual machine: its contents, its run, and its output.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::GuestError;
use crate::archive::Archive;
use crate::kernel::Kernel;
use crate::libraries;

/// The time limit of a guest, so that a hanging guest fails. No test needs a tenth of it on a quiet
/// machine. A choice.
const LIMIT: Duration = Duration::from_secs(300);

/// Memory of the guest in MiB: room for the initial file system twice, and for volumes in memory. A
/// choice.
const MEMORY_MIB: u32 = 768;

const QEMU: &str = "qemu-system-x86_64";
const BUSYBOX: &str = "/usr/bin/busybox";
const PACKAGES: &str = "`make guest` installs it";

/// The prefix of the line on which the first process prints the script's exit status.
const STATUS: &str = "guest: the script ended with ";

/// The description of a guest.
pub struct Guest {
    kernel: Kernel,
    modules: Vec<(String, String)>,
    programs: Vec<PathBuf>,
    devices: Vec<String>,
}

/// The result of a guest's script.
#[derive(Debug)]
pub struct Output {
    /// The exit status.
    pub status: i32,
    /// The output on both streams.
    pub text: String,
    /// The kernel's messages.
    pub kernel: String,
}

impl Guest {
    /// A guest with BusyBox only.
    ///
    /// # Errors
    /// [`GuestError::Missing`] if QEMU, BusyBox or the kernel is not installed.
    pub fn new() -> Result<Self, GuestError> {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guest");
        let kernel = Kernel::find(&target)?;
        program_in_path(QEMU)?;
        if !Path::new(BUSYBOX).exists() {
            return Err(missing(BUSYBOX));
        }
        Ok(Guest {
            kernel,
            modules: Vec::new(),
            programs: Vec::new(),
            devices: Vec::new(),
        })
    }

    /// Loads a module, with its parameters as for `insmod`, before the script begins.
    #[must_use]
    pub fn module(mut self, name: &str, parameters: &str) -> Self {
        self.modules
            .push((name.replace('-', "_"), parameters.to_string()));
        self
    }

    /// Adds a program and its libraries to `/bin`. The program is a path, or a name in `PATH`.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.programs.push(program.into());
        self
    }

    /// Adds an argument of QEMU, such as `-device` or `-drive`.
    #[must_use]
    pub fn argument(mut self, argument: &str) -> Self {
        self.devices.push(argument.to_string());
        self
    }

    /// Boots, loads the modules, runs the script in BusyBox's shell (`set -eu`), and ends.
    ///
    /// # Errors
    /// If a prerequisite is missing, or the guest ends without a status. A failed script is not an
    /// error: see [`Output::status`].
    pub fn run(&self, script: &str) -> Result<Output, GuestError> {
        let folder = tempfile::tempdir().map_err(GuestError::file("a temporary folder"))?;
        let initial = folder.path().join("initramfs");
        fs::write(&initial, self.archive(script)?).map_err(GuestError::file(&initial))?;
        let reason = match bounded(self.start(folder.path(), &initial)?, LIMIT) {
            Ok(ended) => ended,
            Err(source) => return Err(GuestError::file(QEMU)(source)),
        };
        let output = printed(&folder.path().join("output"))?;
        let kernel =
            printed(&folder.path().join("kernel"))? + &printed(&folder.path().join("qemu"))?;
        match split_status(&output) {
            Some((text, status)) => Ok(Output {
                status,
                text: text.to_string(),
                kernel,
            }),
            None => Err(GuestError::NoStatus {
                reason,
                output,
                kernel,
            }),
        }
    }

    /// The initial file system.
    fn archive(&self, script: &str) -> Result<Vec<u8>, GuestError> {
        let mut archive = Archive::new();
        for folder in [
            "dev", "proc", "sys", "tmp", "mnt", "sbin", "usr/bin", "usr/sbin",
        ] {
            archive.folder(folder);
        }
        // The kernel opens it for the first process before anything is mounted (5, 1: devices.txt).
        archive.characters("dev/console", 5, 1);
        let busybox = fs::read(BUSYBOX).map_err(GuestError::file(BUSYBOX))?;
        archive.file("bin/busybox", &busybox);
        archive.link("bin/sh", "busybox");
        let mut loads = String::new();
        let names = self.modules.iter().map(|(name, _)| name.as_str());
        for module in self.kernel.in_order(names)? {
            archive.file(&format!("modules/{}.ko", module.name), &module.contents);
            let given = self.modules.iter().find(|(name, _)| *name == module.name);
            let parameters = given.map_or("", |(_, parameters)| parameters.as_str());
            loads.push_str(&format!(
                "insmod /modules/{}.ko {parameters}\n",
                module.name
            ));
        }
        self.add_programs(&mut archive)?;
        archive.file("load", loads.as_bytes());
        archive.file("script", script.as_bytes());
        archive.file("init", first_process().as_bytes());
        Ok(archive.finish())
    }

    fn add_programs(&self, archive: &mut Archive) -> Result<(), GuestError> {
        let mut libraries = std::collections::BTreeSet::new();
        for program in &self.programs {
            let path = match program.components().count() {
                1 => program_in_path(&program.to_string_lossy())?,
                _ => program.clone(),
            };
            let contents = fs::read(&path).map_err(GuestError::file(&path))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            archive.file(&format!("bin/{name}"), &contents);
            libraries.extend(libraries::of(&path)?);
        }
        for library in libraries {
            let contents = fs::read(&library).map_err(GuestError::file(&library))?;
            let inside = library.to_string_lossy();
            archive.file(inside.trim_start_matches('/'), &contents);
        }
        Ok(())
    }

    fn start(&self, folder: &Path, initial: &Path) -> Result<Child, GuestError> {
        let serial = |name: &str| format!("file:{}", folder.join(name).display());
        let qemu = folder.join("qemu");
        let complaints = fs::File::create(&qemu).map_err(GuestError::file(&qemu))?;
        Command::new(QEMU)
            // One boot in four panics with QEMU 7.2 and cx16 (seen; the emulation of cmpxchg16b). With a thread for
            // each processor, one runs breakpoints that the kernel has put into its code for a moment, after
            // that moment (seen once on a busy machine: `int3` in sched_clock_cpu).
            .args([
                "-accel",
                "tcg,thread=single",
                "-cpu",
                "max,-cx16",
                "-smp",
                "2",
            ])
            .args([
                "-nodefaults",
                "-no-user-config",
                "-display",
                "none",
                "-no-reboot",
            ])
            .args(["-m", &MEMORY_MIB.to_string()])
            .args(["-serial", &serial("kernel"), "-serial", &serial("output")])
            .arg("-kernel")
            .arg(&self.kernel.image)
            .arg("-initrd")
            .arg(initial)
            .args([
                "-append",
                "console=ttyS0 panic=-1 loglevel=5 random.trust_cpu=on",
            ])
            .args(&self.devices)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(complaints)
            .spawn()
            .map_err(|_| missing(QEMU))
    }
}

/// The script `/init`: it mounts the usual file systems, loads the modules, runs the test's script,
/// prints its status, and powers off. After a failure it also prints the kernel's last messages.
fn first_process() -> String {
    format!(
        "#!/bin/sh
/bin/busybox mkdir -p /bin /sbin
/bin/busybox mount -t devtmpfs devices /dev
/bin/busybox --install -s /bin
exec </dev/null >/dev/ttyS1 2>&1
export PATH=/bin HOME=/tmp
mount -t proc processes /proc
mount -t sysfs system /sys
mount -t tmpfs temporary /tmp
sh -eu /load && sh -eu /script
echo \"{STATUS}$?\"
sync
reboot -f
"
    )
}

/// Waits for the child's end, or kills it at the limit. The answer is the reason for its end.
fn bounded(mut child: Child, limit: Duration) -> io::Result<String> {
    let id = child.id();
    let (ended, watched) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        let over = watched.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout);
        if over {
            // By its number: the child is not waited for yet, so that it cannot be another's.
            let _ = Command::new("kill")
                .args(["-KILL", &id.to_string()])
                .status();
        }
        over
    });
    let status = child.wait()?;
    drop(ended);
    Ok(match watch.join() {
        Ok(true) => format!("stopped after {} s", limit.as_secs()),
        _ => format!("QEMU ended with {status}"),
    })
}

/// The output of a serial line, with plain line ends.
fn printed(path: &Path) -> Result<String, GuestError> {
    let bytes = fs::read(path).map_err(GuestError::file(path))?;
    Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
}

/// The text before the last line, and the status on that line.
fn split_status(output: &str) -> Option<(&str, i32)> {
    let (text, status) = output.rsplit_once(STATUS)?;
    Some((text, status.trim().parse().ok()?))
}

/// The path of a program by its name, from the usual folders of programs.
fn program_in_path(name: &str) -> Result<PathBuf, GuestError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Programs of the administrator are not in everybody's path.
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|place| place.is_file())
        .ok_or_else(|| missing(name))
}

fn missing(what: &str) -> GuestError {
    GuestError::Missing {
        what: format!("the program {what}"),
        install: PACKAGES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_status_counts_and_the_rest_is_the_output() {
        let output = format!("a\nb\n{STATUS}3\n");
        assert_eq!(split_status(&output), Some(("a\nb\n", 3)));
        assert_eq!(split_status("a\nb\n"), None);
        assert_eq!(split_status(&format!("a\n{STATUS}")), None);
    }

    #[test]
    fn a_child_that_does_not_end_is_stopped_at_the_limit() {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .spawn()
            .expect("a child that waits for its input");
        // `wait` would close the input and end it: keep that open here.
        let mut child = child;
        let input = child.stdin.take();
        let reason = bounded(child, Duration::ZERO).expect("waited for");
        drop(input);
        assert_eq!(reason, "stopped after 0 s");
    }
}
