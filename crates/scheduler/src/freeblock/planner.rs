//! stub
#![allow(missing_docs)]
use super::*;
use block::*;
use drive::*;
use std::sync::Arc;
pub struct Planner {
    p: Arc<Profile>,
}
impl Planner {
    pub const TRACKS: u32 = 200;
    pub fn new(p: Arc<Profile>) -> Self {
        Planner { p }
    }
    pub fn idle(&mut self, _w: &Wanted, _f: Position, _l: Instant, _m: u32) -> Option<Stop> {
        None
    }
    pub fn plan(&mut self, w: &Wanted, gap: &Gap, reach: &Reach) -> Option<Plan> {
        let p = &self.p;
        let g = &p.geometry;
        let mut best: Option<Plan> = None;
        let dest = gap.destination.position;
        if gap.direction == Direction::Read {
            let t = g.track_of(gap.extent.start())?;
            let arr =
                gap.departs + p.reposition(gap.source, dest, Direction::Read) + reach.guard.to_free;
            let mut s = gap.extent.start().0;
            let mut n = 0;
            let mut first = s;
            let room = p.spindle.wait(arr, gap.destination.angle).as_nanos();
            let sector = p.spindle.time_of(t.width).as_nanos();
            if arr < gap.begins {
                let k = room / sector;
                for _ in 0..k {
                    if s == t.first.0 {
                        break;
                    }
                    s -= 1;
                    if w.is(s) {
                        n += 1;
                        first = s;
                    }
                }
            }
            if n > 0 {
                let e = Extent::new(Lba(first), Sectors(gap.extent.start().0 - first)).ok()?;
                best = Some(Plan::of(
                    Stop {
                        kind: Kind::Merged,
                        extent: e,
                        wanted: n,
                        slack: Duration::from_nanos(
                            reach.guard.to_free.as_nanos()
                                + (room - (gap.extent.start().0 - first) * sector),
                        ),
                        ends: gap.begins,
                    },
                    Duration::ZERO,
                ));
            }
        }
        let mut looked = 0;
        let max = g.cylinders();
        'o: for d in 0..64u32 {
            for (c, s) in [
                (gap.source.cylinder, 1i64),
                (gap.source.cylinder, -1),
                (dest.cylinder, 1),
                (dest.cylinder, -1),
            ] {
                let c = c as i64 + s * d as i64;
                if c < 0 || c >= max as i64 {
                    continue;
                }
                for h in 0..g.surfaces() {
                    let x = Position {
                        cylinder: c as u32,
                        head: h,
                    };
                    if x == gap.source || x == dest {
                        continue;
                    }
                    looked += 1;
                    if looked > reach.tracks {
                        break 'o;
                    }
                    let Some(t) = g.track_at(c as u32, h) else {
                        continue;
                    };
                    let arr = gap.leaves
                        + p.reposition(gap.source, x, Direction::Read)
                        + reach.guard.to_free;
                    let back = p.reposition(x, dest, gap.direction) + reach.guard.to_destination;
                    if arr + back >= gap.begins {
                        continue;
                    }
                    let sector = p.spindle.time_of(t.width).as_nanos();
                    let off = p.spindle.wait(Instant::ZERO, t.start).as_nanos();
                    let _ = off;
                    // first sector boundary after arr
                    let n = t.last.0 - t.first.0 + 1;
                    let w0 = p.spindle.wait(arr, t.start).as_nanos(); // until sector 0
                    let period = p.spindle.period().as_nanos();
                    let passed = period - w0; // since sector 0
                    let k = passed.div_ceil(sector);
                    let mut at = arr.as_nanos() + (k * sector - passed);
                    let deadline = gap.begins.as_nanos() - back.as_nanos();
                    let mut i = k % t.sectors as u64;
                    if k >= t.sectors as u64 {
                        i = 0;
                    }
                    let (mut first, mut last, mut cnt, mut fin) = (None, 0, 0, 0);
                    let mut fat = 0;
                    while at + sector <= deadline {
                        if i < n && w.is(t.first.0 + i) {
                            if first.is_none() {
                                first = Some(t.first.0 + i);
                                fat = at;
                            }
                            last = t.first.0 + i;
                            cnt += 1;
                            fin = at + sector;
                        }
                        at += sector;
                        i += 1;
                        if i >= t.sectors as u64 {
                            break;
                        }
                    }
                    if cnt > best.map_or(0, |b| b.wanted())
                        && let Some(f) = first
                    {
                        let e = Extent::new(Lba(f), Sectors(last - f + 1)).ok()?;
                        let end = fin.max(gap.follows.as_nanos());
                        best = Some(Plan::of(
                            Stop {
                                kind: Kind::Detour,
                                extent: e,
                                wanted: cnt,
                                slack: Duration::from_nanos(
                                    fat - arr.as_nanos() + reach.guard.to_free.as_nanos(),
                                ),
                                ends: Instant::from_nanos(fin),
                            },
                            Duration::from_nanos(
                                deadline + reach.guard.to_destination.as_nanos() - end,
                            ),
                        ));
                    }
                }
            }
        }
        best
    }
}
