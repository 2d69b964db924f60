//! The client of a running service.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Terms;

use crate::connection::{Error, ServiceConnection};
use crate::places::{Located, locate};
use crate::private;
use crate::stream::Stream;
use crate::wire::{Attach, Granted, Listed, ListedTask, Places, TaskOrder, TaskSteer};

/// A client of a running service, over one connection.
#[derive(Debug)]
pub struct Client {
    connection: Arc<ServiceConnection>,
}

/// The default path of the control socket: that of this user's service, or, if that has none, that of the only
/// service of `headtime@.service` on this machine (systemd makes its folder, which is root's).
pub fn default_socket() -> PathBuf {
    let own = own_socket();
    match own.exists() {
        true => own,
        false => only_socket_in(Path::new("/run/headtime")).unwrap_or(own),
    }
}

/// The control socket of the only service below a folder, if there is just one.
fn only_socket_in(folder: &Path) -> Option<PathBuf> {
    let services = std::fs::read_dir(folder).ok()?.flatten();
    let mut sockets = services
        .map(|service| service.path().join("control.sock"))
        .filter(|socket| socket.exists());
    let first = sockets.next()?;
    sockets.next().is_none().then_some(first)
}

/// The path of the control socket of this user's service.
fn own_socket() -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let folder = match folder {
        Some(folder) => PathBuf::from(folder).join("headtime"),
        None => private::temporary_folder(rustix::process::geteuid().as_raw()),
    };
    folder.join("control.sock")
}

impl Client {
    /// Connects to the control socket at `path`.
    ///
    /// # Errors
    /// If no service listens at `path`.
    pub fn connect(path: &Path) -> Result<Client, Error> {
        let connection = ServiceConnection::open(path)?;
        Ok(Client { connection })
    }

    /// Attaches a stream to an open file of a file system that is on a volume.
    ///
    /// # Errors
    /// If the file cannot be located, or the service refuses the stream.
    pub fn attach_file(&self, file: &File, terms: &Terms) -> Result<Stream, Error> {
        let Located { export, places } = locate(file, terms.mode, terms.export.as_deref())?;
        self.attach_places(&export, places, terms)
    }

    /// Attaches a stream to bytes of an export's volume.
    ///
    /// # Errors
    /// If the service refuses the stream.
    pub fn attach_places(
        &self,
        export: &str,
        places: Places,
        terms: &Terms,
    ) -> Result<Stream, Error> {
        let attach = Attach {
            terms: Terms {
                export: Some(export.to_owned()),
                ..terms.clone()
            },
            places,
        };
        let granted: Granted = self.connection.attach(&attach)?;
        let connection = Arc::clone(&self.connection);
        Ok(Stream::new(
            connection,
            granted,
            terms.clone(),
            attach.places,
        ))
    }

    /// Closes the connection, which ends all its streams.
    pub fn hang_up(self) {
        self.connection.hang_up();
    }

    /// The list of all streams of the service.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn streams(&self) -> Result<Vec<Listed>, Error> {
        self.connection.ask("streams", &())
    }
}

impl Client {
    /// Begins a task over a declared set, and returns its number. The task does not end with the
    /// connection.
    ///
    /// # Errors
    /// If the service refuses the set: it is empty, overlaps, ends past the volume, or has fewer pieces
    /// than are needed.
    pub fn begin_task(&self, order: &TaskOrder) -> Result<u64, Error> {
        let answer: serde_json::Value = self.connection.ask("scan", order)?;
        let number = answer["task"].as_u64();
        number.ok_or_else(|| Error::Misunderstood(String::from("an answer without a task")))
    }

    /// All tasks of the service, the oldest of each drive first.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn tasks(&self) -> Result<Vec<ListedTask>, Error> {
        #[derive(serde::Deserialize)]
        struct OfDrive {
            tasks: Vec<ListedTask>,
        }
        let drives: Vec<OfDrive> = self.connection.ask("tasks", &())?;
        Ok(drives.into_iter().flat_map(|drive| drive.tasks).collect())
    }

    /// Suspends, resumes, aborts, promotes or hastens a task.
    ///
    /// # Errors
    /// If no such task is under way.
    pub fn steer_task(&self, task: u64, action: TaskSteer) -> Result<(), Error> {
        let fields = serde_json::json!({ "task": task, "action": action });
        self.connection.ask::<serde_json::Value>("steer", &fields)?;
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if Arc::strong_count(&self.connection) == 1 {
            self.connection.hang_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_service_of_a_machine_is_found_and_none_is_chosen_of_two() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(only_socket_in(&folder.path().join("missing")), None);
        assert_eq!(only_socket_in(folder.path()), None);
        let socket = |name: &str| {
            let service = folder.path().join(name);
            std::fs::create_dir(&service).unwrap();
            let socket = service.join("control.sock");
            std::fs::write(&socket, "").unwrap();
            socket
        };
        // One that has stopped has a folder and no socket.
        std::fs::create_dir(folder.path().join("stopped")).unwrap();
        let first = socket("sda");
        assert_eq!(only_socket_in(folder.path()), Some(first));
        socket("sdb");
        assert_eq!(only_socket_in(folder.path()), None);
    }
}
