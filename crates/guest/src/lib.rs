//! A kernel of our own, for what the machine's kernel lacks.
//!
//! ublk, SCSI and device-mapper are not everywhere, and where they are, a test has no business
//! with them. So tests boot a Debian kernel under QEMU's software emulation, with an initial file
//! system that is made of BusyBox, the kernel's modules and the programs that the test names:
//!
//! ```text
//!   target/guest: vmlinuz, modules --.
//!   BusyBox, fio, programs of ours ---+--> initramfs --> QEMU --ttyS0--> what the kernel says
//!   the test's script ---------------'                       '--ttyS1--> output, exit status
//! ```
//!
//! It is a crate of its own because two others test with it: `server` its front and back ends,
//! and `headtime` the whole program. `make guest` fetches what it needs (`.ci/guest-kernel`).
//! Times in a guest mean nothing: everything is emulated.

mod archive;
mod kernel;
mod libraries;
mod machine;

use std::io::Write as _;
use std::path::PathBuf;

pub use machine::{Guest, Output};

/// Why a guest did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// Something is not installed. The test may be skipped, but not in CI.
    #[error("{what} is missing ({install})")]
    Missing {
        /// The program or the file.
        what: String,
        /// How to get it.
        install: &'static str,
    },
    /// The kernel's package has no such module, and it is not built in either.
    #[error("no module `{name}` in {folder}")]
    NoModule {
        /// As the test calls it.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A file or program on the host could not be used.
    #[error("{path}: {source}")]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The guest ended without saying how its script ended.
    #[error(
        "the guest ended without a status ({reason}); it printed:\n{output}\nits kernel:\n{kernel}"
    )]
    NoStatus {
        /// What is known: the limit of time, or how QEMU ended.
        reason: String,
        /// What the script printed until then.
        output: String,
        /// What the kernel and QEMU said.
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

/// Runs a script in a guest and returns what it printed: the one call that a test needs. `None` if
/// something is not installed, which is printed and is a failure in CI.
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
