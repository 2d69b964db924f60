//! `headtime serve` over other NBD servers: ours, QEMU's, killed ones, one that lies, and
//! one that has a cache, as we have.

#[path = "../scene/begun.rs"]
mod begun;
mod bytes;
mod levels;
mod lost;
mod process;
mod proxy;
mod tls;

#[allow(
    dead_code,
    reason = "shared with the tests of the server, which need more of it"
)]
#[path = "../../../server/tests/event_loop/client.rs"]
mod client;
#[allow(
    dead_code,
    reason = "shared with the tests of the server, which need more of it"
)]
#[path = "../../../server/tests/event_loop/ledger.rs"]
mod ledger;
