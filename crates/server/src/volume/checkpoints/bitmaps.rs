//! The dirty bitmaps of a drive's volumes, with the threads of their files.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::checkpoint::bitmap::{BitmapFile, Opened};
use crate::checkpoint::bits::Bits;
use crate::checkpoint::marks::{BitmapStatus, MarkAnswer, MarkState, Marks};
use crate::checkpoint::thread::MarkThread;
use crate::ring::{Owner, Ring, Ticket};

/// A dirty bitmap whose file is open.
pub struct OpenBitmap {
    /// The name of the volume.
    pub volume: String,
    /// The bytes of the volume on its drive.
    pub bytes: Range<u64>,
    /// The file.
    pub file: BitmapFile<File>,
    /// Its changes.
    pub opened: Opened,
}

/// The dirty bitmaps of a drive.
#[derive(Default)]
pub(crate) struct Bitmaps {
    all: Vec<Kept>,
    bell: Option<Arc<OwnedFd>>,
    is_listening: bool,
}

struct Kept {
    marks: Marks,
    thread: Option<MarkThread>,
}

impl Bitmaps {
    /// Adds a bitmap. Changes that begin later are in it.
    ///
    /// # Errors
    /// If the system has no thread or eventfd for it.
    pub(super) fn add(&mut self, bitmap: OpenBitmap, ring: &mut Ring) -> io::Result<()> {
        let bell = match &self.bell {
            Some(bell) => Arc::clone(bell),
            None => {
                let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
                Arc::clone(self.bell.insert(Arc::new(eventfd(0, flags)?)))
            }
        };
        let OpenBitmap {
            volume,
            bytes,
            file,
            opened,
        } = bitmap;
        let marks = Marks::new(
            (file.name().to_owned(), volume),
            bytes,
            (file.number(), file.base()),
            (opened.dirty, opened.assumed),
        );
        let thread = Some(MarkThread::begin(file, &bell)?);
        self.all.push(Kept { marks, thread });
        self.listen(ring);
        Ok(())
    }

    fn listen(&mut self, ring: &mut Ring) {
        if let (Some(bell), false) = (&self.bell, self.is_listening) {
            self.is_listening = true;
            let owner = Owner::Marks;
            ring.poll_readable(Ticket { owner, key: 0 }, bell.as_fd().as_raw_fd());
        }
    }

    /// Files have answered.
    pub(crate) fn answered(&mut self, ring: &mut Ring) {
        self.is_listening = false;
        if let Some(bell) = &self.bell {
            let mut count = [0; 8];
            // It is readable, or another look has reset it.
            let _ = rustix::io::read(&**bell, &mut count);
        }
        for kept in &mut self.all {
            let answers = kept.thread.as_ref().map(MarkThread::answers);
            for answer in answers.unwrap_or_default() {
                kept.marks.answer(answer);
            }
            // An answer may order more: what was frozen for a checkpoint that has ended is given back.
            kept.send();
            if *kept.marks.state() != MarkState::On {
                kept.thread = None;
            }
        }
        self.listen(ring);
    }

    /// Removes a bitmap.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn remove(&mut self, volume: &str, name: &str) -> Result<(), String> {
        self.marks(volume, name)?;
        self.all.retain(|kept| {
            (kept.marks.volume.as_str(), kept.marks.name.as_str()) != (volume, name)
        });
        Ok(())
    }

    /// Whether a change of these bytes of the drive may begin.
    pub(super) fn admit(&mut self, bytes: &Range<u64>) -> MarkAnswer {
        let mut all = MarkAnswer::Marked;
        for kept in &mut self.all {
            match kept.marks.admit(bytes) {
                MarkAnswer::Marked => (),
                MarkAnswer::Waits if all == MarkAnswer::Marked => all = MarkAnswer::Waits,
                MarkAnswer::Waits => (),
                MarkAnswer::Refused => all = MarkAnswer::Refused,
            }
            kept.send();
        }
        all
    }

    /// A change of these bytes of the drive, which was admitted, begins.
    pub(super) fn note(&mut self, bytes: &Range<u64>) {
        for kept in &mut self.all {
            kept.marks.note(bytes);
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The marks of a bitmap.
    ///
    /// # Errors
    /// If there is no such bitmap: the names of those that are there.
    pub(super) fn marks(&self, volume: &str, name: &str) -> Result<&Marks, String> {
        let mut all = self.all.iter();
        let kept = all.find(|kept| kept.marks.volume == volume && kept.marks.name == name);
        kept.map(|kept| &kept.marks).ok_or_else(|| {
            let of_volume = self.all.iter().filter(|kept| kept.marks.volume == volume);
            let names: Vec<&str> = of_volume.map(|kept| kept.marks.name.as_str()).collect();
            match names.as_slice() {
                [] => format!("volume {volume} has no bitmap {name}: it has none"),
                names => format!(
                    "volume {volume} has no bitmap {name}: expected one of {}",
                    names.join(", ")
                ),
            }
        })
    }

    fn find(&mut self, volume: &str, name: &str) -> Result<&mut Kept, String> {
        self.marks(volume, name)?;
        let mut all = self.all.iter_mut();
        let kept = all.find(|kept| kept.marks.volume == volume && kept.marks.name == name);
        kept.ok_or_else(|| format!("no bitmap {name}"))
    }

    /// Changes a bitmap, if it is there, and sends what that orders.
    pub(super) fn change(&mut self, volume: &str, name: &str, change: impl FnOnce(&mut Marks)) {
        if let Ok(kept) = self.find(volume, name) {
            change(&mut kept.marks);
            kept.send();
        }
    }

    /// A volume has another length.
    pub(crate) fn resize(&mut self, offset: u64, length: u64) {
        for kept in &mut self.all {
            if kept.marks.begins_at(offset) {
                kept.marks.resize(length);
                kept.send();
            }
        }
    }

    /// The changes before the open checkpoint.
    pub(super) fn frozen(&self, volume: &str, name: &str) -> Option<&Bits> {
        self.marks(volume, name).ok()?.frozen()
    }

    /// All bitmaps.
    pub(crate) fn statuses(&self) -> Vec<BitmapStatus> {
        self.all.iter().map(|kept| kept.marks.status()).collect()
    }
}

impl Kept {
    fn send(&mut self) {
        while let Some(order) = self.marks.poll_order() {
            if let Some(thread) = &self.thread {
                thread.send(order);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::arena::Arena;
    use crate::checkpoint::CHUNK;
    use crate::checksums::region::Identity;

    /// A checkpoint that ends while its bitmap is being frozen: nobody orders anything after that, and the next
    /// checkpoint waits for nothing.
    #[test]
    fn a_bitmap_that_is_frozen_for_nobody_is_given_back_without_another_order() {
        let identity = Identity {
            drive: "disk".to_owned(),
            volume: "v".to_owned(),
            block_bytes: 512,
            offset: 0,
            capacity: 100 * CHUNK,
        };
        let file = tempfile::tempfile().expect("a file");
        let named = ("daily".to_owned(), 100 * CHUNK);
        let file = BitmapFile::create(file, identity, named, 5).expect("a bitmap");
        let arena = Arena::map(4096).expect("memory");
        let mut ring = Ring::new(&arena).expect("a ring");
        let mut bitmaps = Bitmaps::default();
        let open = OpenBitmap {
            volume: "v".to_owned(),
            bytes: 0..100 * CHUNK,
            file,
            opened: Opened {
                dirty: Bits::none(100),
                assumed: 0,
            },
        };
        bitmaps.add(open, &mut ring).expect("a thread");
        bitmaps.change("v", "daily", |marks| marks.begin_freeze(1));
        bitmaps.change("v", "daily", Marks::abandon);
        let is_free = |bitmaps: &Bitmaps| bitmaps.marks("v", "daily").and_then(Marks::may_freeze);
        // The thread answers within this time, or never.
        let until = Instant::now() + Duration::from_secs(10);
        while is_free(&bitmaps) == Ok(false) {
            assert!(Instant::now() < until, "it is not given back");
            ring.submit_and_wait(Duration::ZERO, Some(until))
                .expect("a ring");
            while ring.next_end().is_some() {
                bitmaps.answered(&mut ring);
            }
        }
        assert_eq!(is_free(&bitmaps), Ok(true));
    }
}
