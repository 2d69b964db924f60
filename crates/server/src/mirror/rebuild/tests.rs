//! Each rule of the copy by itself.

use super::*;

const REGION: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// Three regions that are all to be copied; the last one is half as long.
fn begun() -> Rebuild {
    let mut rebuild = Rebuild::new(REGION, 5 * REGION / 2);
    rebuild.begin(&Bitmap::full(3));
    rebuild
}

/// A read of these bytes in a gap that nothing disturbs.
fn read(rebuild: &mut Rebuild, command: u64, bytes: Range<u64>) -> Vec<Range<u64>> {
    rebuild.read_began(command, bytes, Validity::Sound);
    rebuild.read_ended(command)
}

/// Takes the lowest run of held copies.
fn take_lowest(rebuild: &mut Rebuild) -> Vec<u64> {
    let runs = rebuild.held_runs(0, 1);
    let run = runs.first().map(|run| rebuild.take_run(run.start));
    let run = run.unwrap_or_default();
    run.iter().map(|held| held.key).collect()
}

/// Reads these bytes in a gap and copies them.
fn copy(rebuild: &mut Rebuild, bytes: Range<u64>) -> (Vec<u64>, u64) {
    for found in read(rebuild, 99, bytes) {
        rebuild.hold(99, found);
    }
    take_lowest(rebuild);
    rebuild.copied()
}

#[test]
fn what_a_gap_brings_is_held_then_locked_then_copied_and_counts_once() {
    let mut rebuild = begun();
    assert_eq!(rebuild.left_bytes(), (5 * REGION / 2, 0));
    let bytes = REGION - BLOCK..REGION + BLOCK;
    assert_eq!(
        read(&mut rebuild, 1, bytes.clone()),
        std::slice::from_ref(&bytes)
    );
    rebuild.hold(7, bytes.clone());
    assert!(rebuild.has_held() && rebuild.may_write(&bytes));
    assert_eq!(rebuild.held_runs(0, 1), std::slice::from_ref(&bytes));
    assert_eq!(take_lowest(&mut rebuild), [7]);
    assert!(!rebuild.may_write(&(0..REGION)) && rebuild.may_write(&(0..REGION - BLOCK)));
    rebuild.hold(8, 4 * BLOCK..5 * BLOCK);
    assert!(take_lowest(&mut rebuild).is_empty(), "one run at a time");
    assert_eq!(rebuild.take_run(4 * BLOCK), []);
    assert_eq!(rebuild.copied(), (vec![], 2 * BLOCK));
    assert!(rebuild.may_write(&bytes));
    assert_eq!(rebuild.left_bytes().0, 5 * REGION / 2 - 2 * BLOCK);
    assert_eq!(read(&mut rebuild, 2, bytes.clone()), [], "it has them");
    let wider = REGION - 2 * BLOCK..REGION + BLOCK;
    assert_eq!(
        read(&mut rebuild, 3, wider),
        std::slice::from_ref(&(REGION - 2 * BLOCK..REGION - BLOCK))
    );
}

#[test]
fn a_region_is_whole_when_all_its_bytes_were_copied() {
    let mut rebuild = begun();
    assert_eq!(
        copy(&mut rebuild, 0..REGION - BLOCK),
        (vec![], REGION - BLOCK)
    );
    assert!(rebuild.is_stale(0));
    let rest = REGION - BLOCK..2 * REGION;
    assert_eq!(copy(&mut rebuild, rest), (vec![0, 1], REGION + BLOCK));
    assert!(!rebuild.is_stale(0) && rebuild.is_stale(2) && !rebuild.is_done());
    let last = 2 * REGION..5 * REGION / 2;
    assert_eq!(copy(&mut rebuild, last), (vec![2], REGION / 2));
    assert!(rebuild.is_done());
    assert_eq!(rebuild.left_bytes(), (0, 0));
}

#[test]
fn a_read_that_began_under_a_write_is_not_used() {
    let mut rebuild = begun();
    rebuild.read_began(1, 0..BLOCK, Validity::Spoiled);
    assert_eq!(rebuild.read_ended(1), []);
    assert_eq!(
        rebuild.wanted().bytes(),
        5 * REGION / 2,
        "it is still wanted"
    );
}

#[test]
fn a_write_that_begins_spoils_the_reads_under_way_and_the_copies_held_of_its_bytes_only() {
    let mut rebuild = begun();
    rebuild.read_began(1, 0..8 * BLOCK, Validity::Sound);
    rebuild.read_began(2, 8 * BLOCK..9 * BLOCK, Validity::Sound);
    rebuild.hold(5, 20 * BLOCK..30 * BLOCK);
    rebuild.hold(6, 30 * BLOCK..40 * BLOCK);
    rebuild.write_began(&(7 * BLOCK..8 * BLOCK));
    rebuild.write_began(&(29 * BLOCK..30 * BLOCK));
    assert_eq!(rebuild.read_ended(1), []);
    assert_eq!(rebuild.read_ended(2).len(), 1);
    assert_eq!(
        (rebuild.poll_dropped(), rebuild.poll_dropped()),
        (Some(5), None)
    );
    assert_eq!(take_lowest(&mut rebuild), [6]);
}

#[test]
fn a_region_that_is_to_be_copied_again_voids_what_is_read_held_locked_and_copied_of_it() {
    let mut rebuild = begun();
    copy(&mut rebuild, 0..BLOCK);
    rebuild.read_began(1, 2 * BLOCK..3 * BLOCK, Validity::Sound);
    rebuild.hold(5, 4 * BLOCK..5 * BLOCK);
    rebuild.hold(6, 6 * BLOCK..7 * BLOCK);
    take_lowest(&mut rebuild);
    rebuild.again(0);
    assert_eq!(rebuild.copied(), (vec![], 0));
    assert!(take_lowest(&mut rebuild).is_empty());
    assert_eq!(rebuild.read_ended(1), []);
    assert_eq!(rebuild.left_bytes().0, 5 * REGION / 2);
    // One that was whole is copied again, too.
    copy(&mut rebuild, 0..REGION);
    rebuild.again(0);
    assert!(rebuild.is_stale(0));
    assert_eq!(copy(&mut rebuild, 0..REGION).0, [0]);
}

#[test]
fn nothing_that_was_read_before_a_new_begin_or_before_the_leg_went_counts() {
    for is_new in [true, false] {
        let mut rebuild = begun();
        copy(&mut rebuild, 0..BLOCK);
        rebuild.read_began(1, 2 * BLOCK..3 * BLOCK, Validity::Sound);
        rebuild.hold(5, 4 * BLOCK..5 * BLOCK);
        rebuild.hold(6, 6 * BLOCK..7 * BLOCK);
        take_lowest(&mut rebuild);
        match is_new {
            true => rebuild.begin(&Bitmap::full(3)),
            false => {
                rebuild.give_up();
                assert!(rebuild.is_done());
                rebuild.begin(&Bitmap::full(3));
            }
        }
        assert_eq!(rebuild.read_ended(1), []);
        assert_eq!(rebuild.copied(), (vec![], 0));
        assert!(take_lowest(&mut rebuild).is_empty());
        assert_eq!(rebuild.left_bytes().0, 5 * REGION / 2);
    }
}

#[test]
fn bytes_that_a_gap_fails_to_read_are_left_to_pieces() {
    let mut rebuild = begun();
    let bad = REGION + BLOCK..REGION + 3 * BLOCK;
    rebuild.read_began(1, bad.clone(), Validity::Sound);
    rebuild.read_failed(1);
    assert!(rebuild.has_failed());
    assert_eq!(rebuild.wanted().bytes(), 5 * REGION / 2 - 2 * BLOCK);
    let next = rebuild.next_piece(PieceRule::Failed, |_| false);
    assert_eq!(next, NextPiece::Piece(bad.clone()));
    assert!(!rebuild.lacks(&bad), "it is on its way");
    rebuild.unreadable();
    assert!(!rebuild.has_failed());
    // Its region is not read again: whoever writes it writes both legs.
    assert!(!rebuild.lacks(&bad) && !rebuild.lacks(&(0..2 * REGION)));
    assert!(rebuild.lacks(&(0..BLOCK)));
    assert_eq!(rebuild.left_bytes(), (5 * REGION / 2, REGION));
    assert_eq!(
        rebuild.wanted().bytes(),
        3 * REGION / 2,
        "its region stays as it is"
    );
    assert_eq!(
        rebuild.next_piece(PieceRule::Failed, |_| false),
        NextPiece::Done
    );
    rebuild.begin(&Bitmap::full(3));
    assert_eq!(
        rebuild.left_bytes(),
        (5 * REGION / 2, 0),
        "it is tried again"
    );
}

#[test]
fn pieces_pass_by_what_was_copied_and_bytes_under_a_write() {
    let mut rebuild = begun();
    copy(&mut rebuild, BLOCK..REGION);
    let piece = rebuild.next_piece(PieceRule::Any, |_| false);
    assert_eq!(piece, NextPiece::Piece(REGION..REGION + PIECE));
    assert_eq!(
        rebuild.next_piece(PieceRule::Any, |_| false),
        NextPiece::Later
    );
    assert!(!rebuild.may_write(&(REGION..REGION + BLOCK)));
    rebuild.not_copied();
    let begun = |bytes: &Range<u64>| bytes.start < 2 * REGION;
    let piece = rebuild.next_piece(PieceRule::Any, begun);
    assert_eq!(piece, NextPiece::Piece(2 * REGION..2 * REGION + PIECE));
    rebuild.copied();
    let piece = rebuild.next_piece(PieceRule::Any, |_| true);
    assert_eq!(piece, NextPiece::Later);
}

#[test]
fn what_is_held_or_locked_is_not_wanted_and_a_piece_takes_its_place() {
    let mut rebuild = begun();
    rebuild.hold(1, 0..BLOCK);
    rebuild.hold(2, 2 * BLOCK..3 * BLOCK);
    take_lowest(&mut rebuild);
    let wanted = rebuild.wanted();
    assert!(
        wanted
            .iter()
            .eq(&[BLOCK..2 * BLOCK, 3 * BLOCK..5 * REGION / 2])
    );
    rebuild.not_copied();
    let piece = rebuild.next_piece(PieceRule::Any, |_| false);
    assert_eq!(piece, NextPiece::Piece(0..PIECE));
    assert_eq!(rebuild.poll_dropped(), Some(2));
}

#[test]
fn copies_that_are_left_when_all_has_been_copied_are_dropped() {
    let mut rebuild = begun();
    rebuild.hold(1, 0..5 * REGION / 2);
    take_lowest(&mut rebuild);
    rebuild.hold(2, 0..BLOCK);
    rebuild.copied();
    assert!(rebuild.is_done() && !rebuild.has_held());
    assert_eq!(rebuild.poll_dropped(), Some(2));
}
