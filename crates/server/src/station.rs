//! A drive in service: the thread of its event loop.

use std::io;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use tracing::error;

use crate::event_loop::EventLoop;
use crate::event_loop::mailbox::Mailbox;

/// The thread of a running loop.
pub struct Station {
    mailbox: Mailbox,
    thread: Option<JoinHandle<()>>,
}

impl Station {
    /// Starts a thread that builds the loop with `build` and runs it. The call returns when the loop is
    /// built.
    ///
    /// # Errors
    /// If there is no thread, or the loop cannot be made.
    pub fn start(
        name: &str,
        build: impl FnOnce(Mailbox) -> io::Result<EventLoop> + Send + 'static,
    ) -> io::Result<Self> {
        let mailbox = Mailbox::new()?;
        let theirs = mailbox.clone();
        let (tell, told) = mpsc::channel();
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            wake_up_in_time();
            let closing = theirs.clone();
            match build(theirs) {
                Ok(mut event_loop) => {
                    let _ = tell.send(Ok(()));
                    if let Err(error) = event_loop.run() {
                        error!(%error, "the event loop has failed");
                    }
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
            closing.close();
        })?;
        let made = told.recv();
        made.map_err(|_| io::Error::other("the event loop's thread has failed"))??;
        Ok(Station {
            mailbox,
            thread: Some(thread),
        })
    }

    /// The mailbox of the loop.
    pub fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Stops the loop, and waits until its pending operations have ended.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.mailbox.call(EventLoop::stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sets the timer slack of this thread. By default the kernel delays wakeups by up to 50 microseconds,
/// which is half of the allowed lateness of an emulated drive.
fn wake_up_in_time() {
    if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        error!(%error, "timers may be late");
    }
}
