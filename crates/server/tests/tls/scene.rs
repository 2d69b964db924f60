//! Two volumes in memory behind a listener.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use block::Class;
use engine::{Engine, Limits};
use nbd::Context;
use nbd::offer::{BlockSizes, Features, Offer, Text};
use server::clients::Bounds;
use server::clock::{Clock, TimeScale};
use server::config::Tls;
use server::disk::back_end::BackEnd;
use server::disk::back_end::memory::Ram;
use server::event_loop::EventLoop;
use server::featureless;
use server::listener::{Directory, Listener, Terms};
use server::station::Station;
use server::tls::Security;
use server::volume::{Export, LONGEST};
use tempfile::TempDir;

/// Bytes of each volume.
pub const BYTES: u64 = 64 << 20;

/// No test waits longer for an answer: then it has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A served volume.
pub struct Scene {
    // In this order they go away.
    pub listener: Listener,
    _station: Station,
    home: TempDir,
}

impl Scene {
    /// On a unix socket.
    pub fn new(terms: impl Into<Terms>) -> Self {
        Scene::behind(|home, directory| {
            let path = home.path().join("socket");
            Listener::unix(&path, directory, terms)
        })
    }

    /// On a unix socket, with certificates.
    pub fn with(tls: &Tls) -> Self {
        Scene::new(Security::load(Some(tls)).expect("certificates"))
    }

    /// On a TCP port.
    pub fn tcp(tls: &Tls) -> Self {
        let security = Security::load(Some(tls)).expect("certificates");
        Scene::behind(|_, directory| {
            let any = "127.0.0.1:0".parse().expect("an address");
            Listener::tcp(any, directory, security)
        })
    }

    fn behind(
        listen: impl FnOnce(&TempDir, Arc<RwLock<Directory>>) -> std::io::Result<Listener>,
    ) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let station = Station::start("drive", volume).expect("a drive");
        let shown = Arc::new(RwLock::new(Directory {
            offers: Arc::new([offer("volume"), offer("other")]),
            places: Arc::new([0, 1].map(|place| (station.mailbox().clone(), place))),
        }));
        Scene {
            listener: listen(&home, shown).expect("a socket"),
            _station: station,
            home,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.home.path().join("socket")
    }

    /// A connection on which nothing was said.
    pub fn knock(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream
            .set_write_timeout(Some(PATIENCE))
            .expect("a time-out");
        stream
    }
}

fn volume(mailbox: server::event_loop::mailbox::Mailbox) -> std::io::Result<EventLoop> {
    let back_end: Box<dyn BackEnd> = Box::new(Ram::new(2 * BYTES)?);
    let shape = back_end.shape();
    let belief = featureless::profile("test", shape.blocks, shape.block_bytes);
    let belief = Arc::new(belief.expect("a profile"));
    let policy = scheduler::policy::find("fcfs").expect("a policy");
    let limits = Limits::suited_to(policy, &belief);
    let engine = Engine::new(belief, &|| policy.make(), limits);
    let export = |name: &str, offset| Export {
        name: name.to_owned(),
        offset,
        length: BYTES,
        class: Class::default(),
    };
    let exports = vec![export("volume", 0), export("other", BYTES)];
    let (clock, bounds) = (Clock::start(TimeScale::REAL), Bounds::default());
    EventLoop::new(clock, engine, back_end, exports, mailbox, bounds)
}

fn offer(name: &str) -> Offer {
    Offer {
        name: Text::new(name).expect("short"),
        description: Text::default(),
        size: BYTES,
        block: BlockSizes::new(512, 4096, LONGEST as u32).expect("fit"),
        features: Features {
            read_only: false,
            flush: true,
            fua: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            multi_conn: true,
            cache: true,
            rotational: false,
            df: true,
        },
        contexts: vec![Context::Allocation],
    }
}
