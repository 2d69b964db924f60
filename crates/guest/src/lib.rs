//! Tests in a guest with its own kernel.
//!
//! Not every machine has ublk, SCSI and device-mapper, and tests must not use those of the host. So
//! tests boot a Debian kernel under QEMU's software emulation. Its initial file system has BusyBox,
//! the kernel's modules and the programs of the test:
//!
//! ```text
//!   target/guest: vmlinuz, modules --.
//!   BusyBox, fio, tested programs ---+--> initramfs --> QEMU --ttyS0--> the kernel's messages
//!   the test's script ---------------'                       '--ttyS1--> output, exit status
//! ```
//!
//! Two crates test with it: `server` its front and back ends, and `headtime` the whole program.
//! `make guest` fetches the kernel (`.ci/guest-kernel`). Times in a guest are meaningless, because
//! everything is emulated.

mod archive;
mod kernel;
mod libraries;
mod machine;

use std::io::Write as _;
use std::path::PathBuf;

pub use machine::{Guest, Output};

/// The reason for which a guest did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A prerequisite is not installed. The test may be skipped, but not in CI.
    #[error("{what} is missing ({install})")]
    Missing {
        /// The program or the file.
        what: String,
        /// The advice to install it.
        install: &'static str,
    },
    /// The kernel's package has no such module, and it is not built in either.
    #[error("no module `{name}` in {folder}")]
    NoModule {
        /// The name in the test.
        name: String,
        /// The searched folder.
        folder: PathBuf,
    },
    /// A file or program on the host could not be used.
    #[error("{path}: {source}")]
    File {
        /// The path of the file or program.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The guest ended without the exit status of its script.
    #[error(
        "the guest ended without a status ({reason}); it printed:\n{output}\nits kernel:\n{kernel}"
    )]
    NoStatus {
        /// The limit of time, or the exit of QEMU.
        reason: String,
        /// The output of the script.
        output: String,
        /// The messages of the kernel and of QEMU.
        kernel: String,
    },
}

impl GuestError {
    /// A file that could not be read or written.
    fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> GuestError {
        let path = path.into();
        move |source| GuestError::File { path, source }
    }
}

/// Runs a script in a guest and returns its output. `None` if a prerequisite is not installed, which
/// is printed, and is a failure in CI.
///
/// # Panics
/// If the guest fails, or the script ends with another status than 0.
pub fn run(guest: Result<Guest, GuestError>, script: &str) -> Option<String> {
    match guest.and_then(|guest| guest.run(script)) {
        Ok(Output {
            status: 0, text, ..
        }) => Some(text),
        Ok(Output {
            status,
            text,
            kernel,
        }) => panic!("the script ended with {status}:\n{text}\nits kernel:\n{kernel}"),
        Err(missing @ GuestError::Missing { .. }) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{missing}");
            let line = format!("skipped: {missing}\n");
            std::io::stderr()
                .write_all(line.as_bytes())
                .expect("standard error");
            None
        }
        Err(other) => panic!("{other}"),
    }
}
