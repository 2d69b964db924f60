//! Engines with and without gaps for copies, and the memory of their commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{Command, Lba, Request, RequestId};
use engine::{Engine, Limits, ReadRule};
use scheduler::policy::find;

use super::drive::{BLOCK, LEG_BYTES};
use crate::arena::{Memory, Region};
use crate::disk::Disk;

/// An engine that knows nothing of its legs: copies go past it.
pub(super) fn without_gaps() -> Engine {
    let belief = crate::featureless::profile("a-test", LEG_BYTES / BLOCK, BLOCK as u32);
    engine_of(belief.expect("a profile"), "c-look")
}

/// An engine that reads in gaps and in idle time for copies.
pub(super) fn with_gaps() -> Engine {
    let entry = ::drive::catalog::find("dec-rz26").expect("it is shipped");
    let engine = engine_of(entry.profile().expect("a profile"), "sptf-sw60");
    engine.with_background(engine::Rules {
        // Often beside writes: few reads have all that is missing.
        idle_blocks: 16,
        ..engine::Rules::default()
    })
}

fn engine_of(belief: ::drive::Profile, policy: &str) -> Engine {
    let (belief, policy) = (Arc::new(belief), find(policy).expect("a policy"));
    let mut limits = Limits::suited_to(policy, &belief);
    limits.commands_at_drive = 3;
    let beliefs = [Arc::clone(&belief), belief];
    let engine = Engine::mirrored(beliefs, ReadRule::Nearest, &|| policy.make(), limits);
    engine.expect("two drives")
}

/// The memory of a command: its request's, and scratch memory for what tasks want.
pub(super) fn laid_out(
    disk: &mut Disk,
    buffers: &BTreeMap<RequestId, (Request, u64, Region)>,
    command: &Command,
) -> Vec<Memory> {
    let Some(extent) = command.action.extent() else {
        return Vec::new();
    };
    let (start, end) = (extent.start().0, extent.end().0);
    let request = disk.engine.request_of(command.id);
    let mut scratch = |from: u64, to: u64| {
        let length = ((to - from) * BLOCK) as usize;
        (from < to).then(|| disk.scratch(command.id, Lba(from), length))
    };
    let Some(request) = request else {
        return scratch(start, end).into_iter().collect();
    };
    let own = request.extent.intersection(extent).expect("its own blocks");
    let whole = buffers[&request.id].2.memory();
    let before = (own.start().0 - request.extent.start().0) * BLOCK;
    let part = whole.part(before as usize, (own.length().0 * BLOCK) as usize);
    let pieces = [
        scratch(start, own.start().0),
        Some(part),
        scratch(own.end().0, end),
    ];
    pieces.into_iter().flatten().collect()
}
