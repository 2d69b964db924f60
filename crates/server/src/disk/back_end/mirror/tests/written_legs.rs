//! Which legs a write goes to.

use super::*;

/// A request of the last blocks of the data.
fn last_blocks(direction: Direction) -> Request {
    let first = Lba((LEG_BYTES / BLOCK) - 4);
    Request {
        id: RequestId(1 << 40),
        direction,
        extent: Extent::new(first, Sectors(4)).expect("blocks"),
        class: Class::default(),
        durability: Durability::Volatile,
        owner: block::Owner::NOBODY,
    }
}

/// What a mirror says of the last blocks: whether the leg that is filled lacks them, and where a write and a read go.
fn said(service: &mut Service) -> (bool, WrittenLegs, WrittenLegs) {
    let mirror = service.disk.back_end.mirror().expect("a mirror");
    let [write, read] = [Direction::Write, Direction::Read].map(last_blocks);
    let bytes = mirror.data(write.extent).expect("blocks of the data");
    (
        mirror.regions.lacks(&bytes),
        mirror.written_legs(&write),
        mirror.written_legs(&read),
    )
}

impl World {
    /// What is said at each moment until both legs are in sync.
    fn said_until_in_sync(
        &mut self,
        service: &mut Service,
    ) -> Vec<(bool, WrittenLegs, WrittenLegs)> {
        let mut all = Vec::new();
        for _ in 0..4000 {
            all.push(said(service));
            let condition = service.disk.condition().expect("a mirror");
            if condition.legs.iter().all(status::Leg::is_in_sync) {
                return all;
            }
            self.pass(service, 3_000_000);
            self.give_credit(5);
            self.turn(service);
        }
        panic!("not in sync");
    }
}

#[test]
fn a_leg_that_is_filled_anew_is_not_given_what_it_lacks_and_one_in_doubt_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut world = World::new(folder.path(), 0);
    let (all, in_sync) = (WrittenLegs::All, WrittenLegs::InSync);
    let mut service = world.begin();
    assert_eq!(
        said(&mut service),
        (true, all, all),
        "it is not written yet"
    );
    let during = world.said_until_in_sync(&mut service);
    assert!(during.contains(&(true, in_sync, all)), "{during:?}");
    assert_eq!(during.last(), Some(&(false, all, all)));
    let write = last_blocks(Direction::Write);
    world.submit(&mut service, Direction::Write, write.extent);
    world.drain(&mut service);
    world.crash(service);
    let mut service = world.begin();
    let during = world.said_until_in_sync(&mut service);
    assert!(during.contains(&(true, all, all)), "{during:?}");
    assert!(during.iter().all(|said| said.1 == all), "{during:?}");
    world.compare();
}
