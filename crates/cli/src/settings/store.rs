//! The bound of old bytes that a checkpoint keeps.

/// The default of `--store-bytes`: that of the service. Help has it in its text, without the quotes of a value with a
/// blank.
pub const STORE_BYTES: &str = "256 MiB";

#[cfg(test)]
mod tests {
    use super::*;
    use lab::amount::amount;
    use server::checkpoint::store::StoreOrder;

    #[test]
    fn the_default_is_that_of_the_service() {
        assert_eq!(amount(STORE_BYTES), Ok(StoreOrder::default().bytes));
    }
}
