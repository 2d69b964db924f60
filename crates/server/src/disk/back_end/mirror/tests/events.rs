//! What an operator hears of legs that fail and are filled.

use super::*;

impl World {
    /// The events since the last call.
    fn heard(&self) -> Vec<MirrorEvent> {
        std::mem::take(&mut *self.events.lock().expect("no panic while it is locked"))
    }

    /// Writes a block of the data and flushes, until both have ended.
    fn write_and_flush(&mut self, service: &mut Service, block: u64) {
        let at = Lba(DATA_OFFSET / BLOCK + block);
        self.submit(service, Direction::Write, Extent::block(at));
        self.flush(service);
        self.drain(service);
    }
}

#[test]
fn each_failure_of_a_leg_and_each_end_of_its_filling_are_told_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new(folder.path(), 0);
    let name = |leg| format!("leg {leg}");
    let mut service = world.begin();
    world.settle(&mut service);
    assert_eq!(
        world.heard(),
        [MirrorEvent::InSync(name(1))],
        "a new mirror"
    );
    // The marks of a new mirror go.
    world.pass(&mut service, 11_000_000_000);
    world.settle(&mut service);
    world.write_and_flush(&mut service, 0);
    assert_eq!(world.heard(), []);
    world.drives[0].borrow_mut().is_failing = true;
    for block in 1..5 {
        world.write_and_flush(&mut service, block);
    }
    assert_eq!(world.heard(), [MirrorEvent::LegOut(name(0))]);
    world.drives[1].borrow_mut().is_failing = true;
    // Writes fail from now on. The last block is in a region without a mark.
    service.is_cut = true;
    for block in [5, DATA_BLOCKS - 1, DATA_BLOCKS - 1] {
        world.write_and_flush(&mut service, block);
    }
    assert_eq!(world.heard(), [MirrorEvent::Broken]);
    world.crash(service);
    storage::attach(world.paths(), 0).expect("it was out");
    let mut service = world.begin();
    world.settle(&mut service);
    assert_eq!(world.heard(), [MirrorEvent::InSync(name(0))]);
}
