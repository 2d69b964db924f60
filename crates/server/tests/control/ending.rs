//! The end of the plane: what was asked before it is answered.

use std::io::Write as _;
use std::sync::mpsc;

use server::control::protocol::{self, Ask};

use crate::plane::{answer, ask, is_closed, open, scene};

/// A request that was read is answered, though the plane ends meanwhile: `headtime ctl drain` ends the
/// very service that answers it.
#[test]
fn an_answer_under_way_reaches_its_client_when_the_plane_ends() {
    let scene = scene(open());
    let (begin, begun) = mpsc::channel();
    let (let_through, open_gate) = mpsc::channel();
    *scene.fake.gate.lock().unwrap() = Some((begin, open_gate));
    let (mut idle, mut drains) = (scene.client(), scene.client());
    // Its answer shows that the connection was accepted before the plane ends.
    assert!(ask(&mut idle, &protocol::request(&Ask::Streams))["ok"].is_array());
    let drain = protocol::request(&Ask::Drain);
    drains.get_mut().write_all(drain.as_bytes()).unwrap();
    begun.recv().unwrap();
    let plane = scene.plane;
    let ends = std::thread::spawn(move || drop(plane));
    // Idle connections are closed at once: this one shows that the plane is ending.
    assert!(is_closed(&mut idle));
    let_through.send(()).unwrap();
    let drained = answer(&mut drains);
    assert_eq!(drained["ok"], serde_json::json!({ "waits_for": [] }));
    ends.join().unwrap();
}
