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
    thread: Option<JoinHandle<io::Result<()>>>,
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
                    let ended = event_loop.run();
                    if let Err(error) = &ended {
                        error!(%error, "the drive's service has ended with an error");
                    }
                    closing.close();
                    ended
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    closing.close();
                    Ok(())
                }
            }
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
    ///
    /// # Errors
    /// If the loop has failed, or acknowledged data could not be written.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let _ = self.mailbox.call(EventLoop::stop);
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        let panicked = |_| Err(io::Error::other("the event loop's thread has failed"));
        thread.join().unwrap_or_else(panicked)
    }
}

impl Drop for Station {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Sets the timer slack of this thread. By default the kernel delays wakeups by up to 50 microseconds,
/// which is half of the allowed lateness of an emulated drive.
fn wake_up_in_time() {
    if let Err(error) = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        error!(%error, "timers may be late");
    }
}
