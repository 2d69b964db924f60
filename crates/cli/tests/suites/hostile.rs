//! Clients that say nothing, garbage, too much, or take none of their replies. Others go on.

use super::served::{SIZE, Served};
use super::wire::{FLUSH, HELLO, READ, WRITE, Wire};

/// `EINVAL` and `ENOSPC` as the protocol numbers them. Whoever did not agree on structured replies is
/// not told `EOVERFLOW`.
const INVALID: u32 = 22;
const NO_SPACE: u32 = 28;

/// Bytes that a kernel keeps in neither direction of a unix socket (its default is 208 KiB).
const LONG: u32 = 4 << 20;

/// Writes, reads and compares, as a client that does everything right.
fn works(wire: &mut Wire, seed: u8) {
    for round in 0..20u8 {
        let bytes = vec![seed.wrapping_add(round); 4096];
        let offset = u64::from(round) * (1 << 20);
        wire.write(offset, &bytes);
        assert!(wire.read(offset, 4096) == bytes);
    }
    let cookie = wire.ask(FLUSH, 0, 0);
    assert_eq!(wire.reply(), (0, cookie));
}

#[test]
fn garbage_ends_only_its_own_connection() {
    let served = Served::start();
    let mut good = Wire::agree(&served.socket());
    let garbage: [&[u8]; 6] = [
        &[0xff; 4096],
        &[0; 4096],
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\0\0\0\x03IHAVEOPT\0\0\0\x07\xff\xff\xff\xff",
        b"\0\0\0\x03IHAVEOP",
        b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\xff\xff\xff\xff\0\0",
    ];
    for (seed, bytes) in (0u8..).zip(garbage) {
        let mut bad = Wire::connect(&served.socket());
        bad.try_to_say(bytes);
        works(&mut good, seed);
    }
    // Behind an agreement: no request's magic.
    let mut bad = Wire::agree(&served.socket());
    bad.try_to_say(&[0x55; 4096]);
    assert!(bad.is_hung_up());
    works(&mut good, 99);
    served.stop();
}

#[test]
fn many_silent_clients_keep_nobody_out() {
    let served = Served::start();
    let mut old = Wire::agree(&served.socket());
    let silent: Vec<Wire> = (0..200).map(|_| Wire::connect(&served.socket())).collect();
    works(&mut old, 1);
    let mut new = Wire::agree(&served.socket());
    works(&mut new, 2);
    drop(silent);
    works(&mut new, 3);
    served.stop();
}

#[test]
fn a_slow_client_gets_there_and_disturbs_nobody() {
    let served = Served::start();
    let mut good = Wire::agree(&served.socket());
    let mut slow = Wire::connect(&served.socket());
    for (seed, byte) in (0u8..).zip(HELLO) {
        slow.say(&[*byte]);
        works(&mut good, seed);
    }
    slow.welcome();
    // A write's payload, a block at a time.
    let cookie = slow.ask(WRITE, 0, 4096);
    for seed in 0..8 {
        works(&mut good, seed);
        slow.say(&[0x77; 512]);
    }
    assert_eq!(slow.reply(), (0, cookie));
    assert_eq!(good.read(0, 4096), [0x77; 4096]);
    served.stop();
}

#[test]
fn a_client_that_takes_no_replies_waits_alone() {
    let served = Served::start();
    let mut good = Wire::agree(&served.socket());
    let mut greedy = Wire::agree(&served.socket());
    // 400 MiB: more than the server has memory for.
    let cookies: Vec<u64> = (0..100u64)
        .map(|n| greedy.ask(READ, n % 16 * u64::from(LONG), LONG))
        .collect();
    works(&mut good, 1);
    works(&mut good, 2);
    // It was slow, not wrong: when it takes them, all its replies are there.
    let mut answered: Vec<u64> = (0..cookies.len())
        .map(|_| {
            let (error, cookie) = greedy.reply();
            assert_eq!(error, 0);
            greedy.hear(LONG as usize);
            cookie
        })
        .collect();
    answered.sort_unstable();
    assert_eq!(answered, cookies);
    served.stop();
}

/// They use up all memory that is common. What is there for each client they do not have; they are
/// slow, not wrong, and none of them is cut off for it.
fn greedy_clients_leave_room_for_another(count: usize) {
    let served = Served::start();
    let mut all: Vec<Wire> = (0..count).map(|_| Wire::agree(&served.socket())).collect();
    for greedy in &mut all {
        for n in 0..100u64 {
            greedy.ask(READ, n % 16 * u64::from(LONG), LONG);
        }
    }
    let mut old = Wire::agree(&served.socket());
    works(&mut old, 1);
    let mut new = Wire::agree(&served.socket());
    works(&mut new, 2);
    // The first one has something to take. When it is gone, the others have its memory.
    let mut first = all.remove(0);
    assert_eq!(first.reply().0, 0);
    first.hear(LONG as usize);
    drop(first);
    works(&mut old, 3);
    drop(all);
    served.stop();
}

#[test]
fn eight_greedy_clients_leave_room_for_a_ninth() {
    greedy_clients_leave_room_for_another(8);
}

#[test]
fn thirty_greedy_clients_leave_room_for_another() {
    greedy_clients_leave_room_for_another(30);
}

/// Payloads that never come keep as much memory as replies that nobody takes.
#[test]
fn payloads_that_never_come_leave_room_for_another() {
    let served = Served::start();
    let mut all: Vec<Wire> = (0..30).map(|_| Wire::agree(&served.socket())).collect();
    for greedy in &mut all {
        greedy.ask(WRITE, 0, 32 << 20);
        greedy.say(&[0x55; 4096]);
    }
    let mut good = Wire::agree(&served.socket());
    works(&mut good, 1);
    assert_eq!(good.read(0, 512), [1; 512], "nothing of those was written");
    for greedy in &mut all {
        // It was not cut off.
        greedy.say(&[0x55; 4096]);
    }
    drop(all);
    served.stop();
}

/// `nbdcopy --allocated` hung on this: what was answered while a long reply was on its way stayed
/// until the next answer, which never came.
#[test]
fn what_is_answered_behind_a_long_reply_leaves_too() {
    let served = Served::start();
    let mut other = Wire::agree(&served.socket());
    let mut client = Wire::agree(&served.socket());
    let long = client.ask(READ, 0, LONG);
    // Its reply is on its way, and stuck: the socket holds less.
    assert_eq!(client.reply(), (0, long));
    let past_the_end = client.ask(READ, SIZE as u64, 512);
    // Requests are taken in the order in which they come: that one has been refused by now.
    works(&mut other, 1);
    client.hear(LONG as usize);
    assert_eq!(client.reply(), (INVALID, past_the_end));
    served.stop();
}

#[test]
fn what_is_too_long_or_past_the_end_is_refused_and_the_client_goes_on() {
    let served = Served::start();
    let mut client = Wire::agree(&served.socket());
    let end = SIZE as u64;
    for (command, offset, length, expected) in [
        (READ, 0, (32 << 20) + 512, INVALID),
        (READ, 0, !511, INVALID),
        (READ, end, 512, INVALID),
        (READ, end - 512, 1024, INVALID),
        (READ, u64::MAX - 511, 512, INVALID),
        (READ, end - 100, 101, INVALID),
        (READ, 0, 0, INVALID),
        (99, 0, 512, INVALID),
    ] {
        let cookie = client.ask(command, offset, length);
        assert_eq!(
            client.reply(),
            (expected, cookie),
            "{command} {offset} {length}"
        );
    }
    // Who did not ask for block sizes may address bytes.
    client.write(1001, &[0x33; 99]);
    assert_eq!(client.read(1000, 101)[..2], [0, 0x33]);
    works(&mut client, 1);
    // Their payloads are passed over.
    for (offset, length, expected) in [(end, 4096, NO_SPACE), (0, (32 << 20) + 512, INVALID)] {
        let cookie = client.ask(WRITE, offset, length);
        client.say(&vec![0x55; length as usize]);
        assert_eq!(client.reply(), (expected, cookie), "{offset} {length}");
    }
    works(&mut client, 2);
    served.stop();
}
