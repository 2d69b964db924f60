//! Any bytes as what a SCSI drive answers: parsed into what makes sense, or one error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use server::disk::back_end::scsi::{Caching, Capacity, Identity, Rotation, Sense, Switch, serial};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(identity) = Identity::parse(bytes) {
        assert!(identity.vendor.chars().count() <= 8);
        assert!(identity.product.chars().count() <= 16);
    }
    if let Ok(capacity) = Capacity::parse(bytes) {
        let whole = capacity.blocks.checked_mul(u64::from(capacity.block_bytes));
        assert!(whole.is_some_and(|bytes| bytes > 0));
    }
    if let Ok(page) = Caching::parse(bytes) {
        for to in [Switch::On, Switch::Off] {
            assert_eq!(page.clone().with_look_ahead(to).look_ahead(), to);
            assert_eq!(page.clone().with_write_cache(to).write_cache(), to);
        }
        assert!(page.to_select().len() <= bytes.len());
    }
    if let Some(sense) = Sense::parse(bytes) {
        assert!(sense.to_string().starts_with("sense "));
    }
    for failed in [serial(bytes).err(), Rotation::parse(bytes).err()] {
        assert!(failed.is_none_or(|failed| failed.to_string().contains("makes no sense")));
    }
});
