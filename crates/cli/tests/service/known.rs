//! A control socket of a service whose status is known.

use std::path::PathBuf;
use std::sync::Arc;

use server::config::SocketRights;
use server::control::{Bounds, Listeners, Plane, listen};
use tempfile::TempDir;

use crate::fake::Fake;

/// The service, with its folder and its socket `x.sock` in that.
pub fn known_service() -> (TempDir, PathBuf, Plane) {
    served(&Fake::new(crate::fake::status()))
}

/// The same for a service that is asked later what it was told.
pub fn served(fake: &Fake) -> (TempDir, PathBuf, Plane) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("x.sock");
    let listeners = Listeners {
        sockets: vec![listen(&socket, SocketRights::default()).expect("a socket")],
        ..Listeners::default()
    };
    let plane =
        Plane::begin(Arc::new(fake.clone()), listeners, Bounds::default()).expect("it listens");
    (folder, socket, plane)
}
