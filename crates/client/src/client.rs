//! The client of a running service.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use block::Terms;

use crate::connection::{Error, ServiceConnection};
use crate::places::{Located, locate};
use crate::private;
use crate::stream::Stream;
use crate::wire::{Attach, Granted, Listed, Places};

/// A client of a running service, over one connection.
#[derive(Debug)]
pub struct Client {
    connection: Arc<ServiceConnection>,
}

/// The default path of the control socket of this user's service.
pub fn default_socket() -> PathBuf {
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

impl Drop for Client {
    fn drop(&mut self) {
        if Arc::strong_count(&self.connection) == 1 {
            self.connection.hang_up();
        }
    }
}
