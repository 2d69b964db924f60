//! A limit on operations and bytes of the kernel's requests.
//!
//! ```text
//!   session's thread --enter--> | at most so many operations, so many bytes | --> event loop
//!          waits here at the bound: nothing more is read from /dev/fuse
//! ```

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The largest number of operations: that of the kernel's asynchronous requests
/// ([`super::folder::MOST_BACKGROUND`]).
const OPERATIONS: usize = 512;

/// Bytes of all writes. A choice: 64 of the longest writes.
const BYTES: usize = 64 << 20;

/// The limit.
#[derive(Default)]
pub(super) struct Gate {
    held: Mutex<HeldOperations>,
    room: Condvar,
}

#[derive(Default)]
struct HeldOperations {
    operations: usize,
    bytes: usize,
    waiting: usize,
}

/// The right to one operation. Dropping it makes room.
pub(super) struct GatePass {
    gate: Arc<Gate>,
    bytes: usize,
}

impl Gate {
    /// Waits until there is room for one more operation with `bytes` bytes.
    pub(super) fn enter(self: &Arc<Self>, bytes: usize) -> GatePass {
        let mut held = self.lock();
        held.waiting += 1;
        while !held.has_room(bytes) {
            let woken = self.room.wait(held);
            held = woken.unwrap_or_else(PoisonError::into_inner);
        }
        held.waiting -= 1;
        held.operations += 1;
        held.bytes += bytes;
        let gate = Arc::clone(self);
        GatePass { gate, bytes }
    }

    fn lock(&self) -> MutexGuard<'_, HeldOperations> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldOperations {
    fn has_room(&self, bytes: usize) -> bool {
        let is_bytes = bytes == 0 || self.bytes == 0 || self.bytes + bytes <= BYTES;
        self.operations < OPERATIONS && is_bytes
    }
}

impl Drop for GatePass {
    fn drop(&mut self) {
        let mut held = self.gate.lock();
        held.operations -= 1;
        held.bytes -= self.bytes;
        if held.waiting > 0 {
            self.gate.room.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Barrier};
    use std::thread;

    use super::{BYTES, Gate, OPERATIONS};

    /// Checks that the next operation waits until a pass is dropped.
    fn one_more_waits(passes: usize, bytes: usize) {
        let gate = Arc::new(Gate::default());
        let mut held: Vec<_> = (0..passes).map(|_| gate.enter(bytes)).collect();
        let is_in = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(Barrier::new(2));
        let theirs = (Arc::clone(&gate), Arc::clone(&is_in), Arc::clone(&begun));
        let other = thread::spawn(move || {
            let (gate, is_in, begun) = theirs;
            begun.wait();
            let pass = gate.enter(bytes);
            is_in.store(true, Ordering::SeqCst);
            drop(pass);
        });
        begun.wait();
        // It waits, or it is through.
        while gate.lock().waiting == 0 && !is_in.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        assert!(!is_in.load(Ordering::SeqCst), "let in above the bound");
        held.pop();
        other.join().expect("it ends");
        assert!(is_in.load(Ordering::SeqCst));
        drop(held);
        let left = gate.lock();
        assert_eq!((left.operations, left.bytes, left.waiting), (0, 0, 0));
    }

    #[test]
    fn operations_above_the_bound_wait() {
        one_more_waits(OPERATIONS, 0);
    }

    #[test]
    fn bytes_above_the_bound_wait() {
        one_more_waits(BYTES >> 20, 1 << 20);
    }

    #[test]
    fn a_request_longer_than_the_bound_gets_in_alone() {
        let gate = Arc::new(Gate::default());
        drop(gate.enter(2 * BYTES));
        assert_eq!(gate.lock().bytes, 0);
    }
}
