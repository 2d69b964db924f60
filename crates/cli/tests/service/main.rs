//! The commands that serve and operate, as a whole binary.

mod adopted;
mod alone;
mod awake;
mod backed_up;
mod begun;
mod behind;
mod classified;
mod ctl;
mod demo;
mod described;
mod doctor;
mod existing;
mod first_contact;
mod here;
mod hooks;
mod initial;
mod into_file;
mod judged;
mod killed;
mod known;
mod mirrored;
mod programs;
mod recipe;
mod recorded;
mod resize;
mod restored;
mod scan_resumed;
mod scanned;
mod schemas;
mod scrubbed;
mod serve;
mod states;
mod streams;
mod topped;
mod two_writers;
mod unplugged;
mod users;
mod verbose;
mod why;

#[allow(
    dead_code,
    reason = "shared with the tests of the server, which need more of it"
)]
#[path = "../../../server/tests/event_loop/client.rs"]
mod client;
#[path = "../../../server/tests/control/fake.rs"]
mod fake;
#[allow(
    dead_code,
    reason = "shared with the tests of the server, which need more of it"
)]
#[path = "../../../server/tests/event_loop/ledger.rs"]
mod ledger;
