//! A belief that is taken up in service.

use std::sync::{Arc, mpsc};

use block::Durability;
use block::operation::Ask;
use engine::explanation::Known;
use engine::{Engine, Limits};
use nbd::Style;
use nbd::request::Asked;
use scheduler::policy::find;
use server::disk::learning::LearningGrant;
use server::event_loop::EventLoop;
use server::status::Mode;

use crate::client::Client;
use crate::drives;
use crate::station::{BLOCK, Medium, Served};

impl Served {
    /// Lets the engine of a belief in the drive's truth take the place of the present one.
    pub fn take_up(&self) -> (Result<(), &'static str>, mpsc::Receiver<()>) {
        let (taken, told) = mpsc::channel();
        let begun = self.ask(move |event_loop| begin(event_loop, taken));
        (begun, told)
    }

    /// The belief was taken up, and nothing is held. An engine that follows its drive has memory for each
    /// calibration read, of which there are many here.
    pub fn assert_follows_with_calibrations_only(&self) {
        self.wait_for_connections(0);
        let tallies = self.ask(|event_loop| event_loop.engine().tallies());
        assert!(tallies.is_some(), "the belief was taken up");
        let holds = || self.ask(|event_loop| event_loop.holds());
        while holds().bytes > 0 {
            std::thread::yield_now();
        }
        assert_eq!(holds().operations, 0);
    }
}

fn begin(event_loop: &mut EventLoop, taken: mpsc::Sender<()>) -> Result<(), &'static str> {
    let make = |now| {
        let belief = Arc::new(drives::shipped());
        let policy = find("sptf-sw").expect("a policy");
        let limits = Limits::suited_to(policy, &belief);
        let engine = Engine::new(belief, &|| policy.make(), limits).starting_at(now);
        let engine = engine.with_explanations(Known::Profile);
        let engine = engine.with_background(engine::Rules::default());
        engine.with_tracking(policy)
    };
    event_loop.take_up(Box::new(make), taken)
}

fn mode(served: &Served) -> Mode {
    served.ask(|event_loop| event_loop.picture().mode)
}

/// Many operations wait when the belief is taken up. All are answered, and the connection stays.
#[test]
fn clients_go_on_when_a_belief_is_taken_up() {
    let served = Served::plain(Medium::Unknown, 4096 * BLOCK);
    let mut client = Client::connect(&served.socket(), Style::Structured);
    let durability = Durability::Volatile;
    let submit = |client: &mut Client, round: u64| {
        for number in 0..40 {
            let first = (number * 1021 + round * 97) % 4000;
            let payload = vec![number as u8; BLOCK as usize];
            client.submit(
                Asked::Of(Ask::Write { durability }),
                first * BLOCK,
                BLOCK,
                &payload,
            );
            client.submit(Asked::Of(Ask::Flush), 0, 0, &[]);
        }
    };
    assert_eq!(mode(&served), Mode::Plain);
    submit(&mut client, 0);
    let (begun, told) = served.take_up();
    assert_eq!(begun, Ok(()));
    submit(&mut client, 1);
    while client.under_way() > 0 {
        let end = client.end().expect("an answer");
        assert_eq!(end.result, Ok(()));
    }
    assert_eq!(told.recv(), Ok(()), "it was taken up");
    assert!(served.ask(|event_loop| event_loop.engine().background().is_on()));
    assert_ne!(mode(&served), Mode::Plain);
    let learned = served.ask(|event_loop| {
        let grant = LearningGrant {
            budget: block::Duration::from_secs(1),
            granted_ppm: 0,
        };
        event_loop.learn("it", &grant)
    });
    assert!(learned.is_err(), "it has a belief now");
    assert_eq!(served.take_up().0, Err("it has a belief that it follows"));
    drop(client);
    served.assert_follows_with_calibrations_only();
}

/// A belief that is not taken up changes nothing: operations that waited go on.
#[test]
fn an_engine_that_stays_goes_on() {
    let served = Served::plain(Medium::Unknown, 4096 * BLOCK);
    let grant = LearningGrant {
        budget: block::Duration::from_secs(3600),
        granted_ppm: 0,
    };
    let begun = served.ask(move |event_loop| event_loop.learn("it", &grant));
    assert_eq!(begun, Ok(()));
    let refused = served.take_up().0.expect_err("it is being profiled");
    assert!(refused.contains("being profiled"), "{refused}");
    served.ask(|event_loop| event_loop.stop_learning());
    assert!(
        !served.ask(|event_loop| event_loop.keep_engine()),
        "none was to come"
    );
    let mut client = Client::connect(&served.socket(), Style::Structured);
    let end = client.ask(Asked::Of(Ask::Read), 0, BLOCK, &[]);
    assert_eq!(end.result, Ok(()));
    assert_eq!(mode(&served), Mode::Plain);
    drop(client);
    served.assert_nothing_is_held();
}

/// The engine that goes would leave probes at the drive (seed 226 of the swarm, whose service panicked).
#[test]
fn a_drive_is_not_profiled_while_a_belief_is_taken_up() {
    let served = Served::plain(Medium::Unknown, 4096 * BLOCK);
    let (taken, told) = mpsc::channel();
    let learned = served.ask(move |event_loop| {
        assert_eq!(begin(event_loop, taken), Ok(()));
        let grant = LearningGrant {
            budget: block::Duration::from_secs(1),
            granted_ppm: 0,
        };
        event_loop.learn("it", &grant)
    });
    let refused = learned.expect_err("a belief is being taken up");
    assert!(refused.contains("being taken up"), "{refused}");
    assert_eq!(told.recv(), Ok(()), "it was taken up");
    served.assert_follows_with_calibrations_only();
}
