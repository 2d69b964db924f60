//! The control plane's thread: one runtime that serves the socket and HTTP.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use headtime_client::private;
use tokio::sync::watch;

use super::desk::{Bounds, Desk};
use super::{Service, http, socket};
use crate::config::SocketRights;
use crate::unix_socket;

/// What the control plane listens on.
#[derive(Debug, Default)]
pub struct Listeners {
    /// For JSON lines.
    pub sockets: Vec<UnixListener>,
    /// For the page, the metrics and the interface over HTTP.
    pub http: Vec<TcpListener>,
}

/// The running control plane.
///
/// Dropping it closes the listeners and idle connections, and waits up to [`GRACE`] for the answers
/// that are under way: the answer to `drain` reaches its client before the process exits.
#[derive(Debug)]
pub struct Plane {
    end: watch::Sender<()>,
    thread: Option<JoinHandle<()>>,
}

impl Plane {
    /// Begins to serve, on a thread of its own.
    ///
    /// # Errors
    /// If the system has no more threads, or a listener is of no use.
    pub fn begin(
        service: Arc<dyn Service>,
        listeners: Listeners,
        bounds: Bounds,
    ) -> io::Result<Plane> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(CALLS)
            .build()?;
        let (end, ended) = watch::channel(());
        let desk = Desk {
            service,
            bounds,
            ended,
        };
        let mut tasks = tokio::task::JoinSet::new();
        let guard = runtime.enter();
        for listener in listeners.sockets {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::UnixListener::from_std(listener)?;
            tasks.spawn_on(socket::serve(listener, desk.clone()), runtime.handle());
        }
        for listener in listeners.http {
            listener.set_nonblocking(true)?;
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tasks.spawn_on(http::serve(listener, desk.clone()), runtime.handle());
        }
        drop(guard);
        let mut ended = desk.ended.clone();
        let thread = thread::Builder::new().name(String::from("headtime-control"));
        let thread = thread.spawn(move || {
            runtime.block_on(async {
                // An error is that of a sender that has gone: the end, too.
                let _ = ended.changed().await;
                let answered = async { while tasks.join_next().await.is_some() {} };
                // A client that does not read its answer is cut off below.
                let _ = tokio::time::timeout(GRACE, answered).await;
                tasks.shutdown().await;
            });
            // What a call is still waiting for is not waited for here.
            runtime.shutdown_background();
        })?;
        Ok(Plane {
            end,
            thread: Some(thread),
        })
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.end.send_replace(());
        if let Some(thread) = self.thread.take() {
            // A panic there was reported there.
            let _ = thread.join();
        }
    }
}

/// How long a plane that ends waits for answers that are under way. A choice: an answer is small and
/// its client local, and a stop must not hang on a client that does not read.
pub const GRACE: Duration = Duration::from_secs(1);

/// Calls of the service at once: a reload that takes long does not keep a status waiting. A choice.
const CALLS: usize = 4;

/// Listens on a unix socket that only these users reach. What a service that has gone left there is removed;
/// what another one listens on is not.
///
/// # Errors
/// If the folder cannot be made or is not this user's alone ([`private`]), or somebody listens there.
pub fn listen(path: &std::path::Path, rights: SocketRights) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        private::create_folder(folder)?;
    }
    unix_socket::listen(path, rights)
}

/// Listens for HTTP.
///
/// # Errors
/// If the address is taken or not this machine's.
pub fn listen_http(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}
