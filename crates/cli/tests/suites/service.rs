//! A running `headtime serve`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

use tempfile::TempDir;

use super::begun::{SERVES, begin};
use super::served::{DRIVE, succeeds};

/// The service and the folder with its configuration, its sockets and its images.
pub struct Service {
    process: Child,
    folder: TempDir,
}

/// A drive of 64 MiB on which nothing takes long, and `volumes` of it.
pub fn emulated(volumes: &str) -> String {
    format!(
        "[[drive]]\nname = \"small\"\npolicy = \"sptf-sw60\"\nbelief = \"emulated\"\n\
         [drive.back_end]\nkind = \"emulated\"\ndrive = \"{DRIVE}\"\nimage = \"image\"\n\
         time_scale = 0.01\n{volumes}"
    )
}

/// A file of so many bytes.
pub fn file(bytes: u64, volumes: &str) -> String {
    format!(
        "[[drive]]\nname = \"file\"\npolicy = \"c-look\"\nbelief = \"nothing\"\n\
         [drive.back_end]\nkind = \"file\"\npath = \"image\"\nsize = {bytes}\ndirect = false\n\
         {volumes}"
    )
}

/// All of the drive as one export.
pub const WHOLE: &str = "[[drive.volume]]\nname = \"all\"\noffset = 0\n\
     [[drive.export]]\nname = \"disk\"\nvolume = \"all\"\nclass = \"foreground\"\n";

/// Where clients come in.
pub const DOORS: &str = "[[nbd]]\nunix = \"nbd.sock\"\n[control]\nsocket = \"control.sock\"\n";

impl Service {
    /// Serves what the configuration says, and waits until it does.
    pub fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self::start_in(folder, config).unwrap_or_else(|said| panic!("it serves: {said}"))
    }

    /// The same in a folder with something in it.
    ///
    /// # Errors
    /// What the service said, if it does not serve that.
    pub fn start_in(folder: TempDir, config: &str) -> Result<Self, String> {
        std::fs::write(folder.path().join("c.toml"), config).expect("a configuration");
        let log = std::fs::File::create(folder.path().join("log")).expect("a log");
        match begin(folder.path(), &["serve", "c.toml"], log, SERVES) {
            Ok(process) => Ok(Service { process, folder }),
            Err(process) => Err(Service { process, folder }.log()),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Of an export.
    pub fn uri(&self, export: &str) -> String {
        let socket = self.path("nbd.sock");
        format!("nbd+unix:///{export}?socket={}", socket.display())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).expect("a log")
    }

    /// What came of a program in the folder.
    pub fn output(&self, words: &str) -> Output {
        let mut words = words.split_whitespace();
        Command::new(words.next().expect("a program"))
            .args(words)
            .current_dir(self.folder())
            .output()
            .expect("it runs")
    }

    /// What a program prints that has to succeed.
    pub fn prints(&self, words: &str) -> String {
        succeeds(words, &self.output(words))
    }

    /// SIGKILL, as the machine's memory killer would.
    pub fn kill(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ran");
    }

    /// Ends it as its user does; nothing went wrong.
    pub fn stop(mut self) {
        let id = self.process.id().to_string();
        let told = Command::new("kill").args(["-TERM", &id]).status();
        assert!(told.expect("kill runs").success());
        self.ends();
    }

    /// Waits for its end; nothing went wrong.
    pub fn ends(&mut self) {
        let status = self.process.wait().expect("it ends");
        let log = self.log();
        assert!(status.success(), "{status}: {log}");
        assert!(!log.contains("panicked"), "{log}");
        assert!(!self.path("nbd.sock").exists(), "the socket's file is gone");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It has ended already if all went well.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
