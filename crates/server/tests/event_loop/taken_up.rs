//! A belief that is taken up in service.

use block::Durability;
use block::operation::Ask;
use nbd::Style;
use nbd::request::Asked;
use server::disk::learning::LearningGrant;
use server::status::Mode;

use crate::client::Client;
use crate::station::{BLOCK, Medium, Served};

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
    served.assert_nothing_is_held();
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
