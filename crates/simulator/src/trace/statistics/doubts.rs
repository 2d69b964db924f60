//! Whether the units of a trace look wrong: blocks taken for bytes, microseconds taken for seconds.

use super::Quantiles;

/// The figures by which units are judged.
pub(super) struct UnitFigures {
    pub(super) requests: u64,
    /// Requests whose length is a multiple of a sector.
    pub(super) whole_sizes: u64,
    /// Requests whose address is a multiple of a sector.
    pub(super) whole_addresses: u64,
    pub(super) size_bytes: Quantiles,
    /// The byte after the last touched one of any device.
    pub(super) end_byte: u64,
    pub(super) span_seconds: f64,
}

/// Requests below which nothing is judged. A choice: a handful may be anything.
const LEAST_REQUESTS: u64 = 16;

/// The smallest length of a request to a disk: a sector.
const LEAST_BYTES: u64 = 512;

/// A median length that no trace of block requests has. A choice: kernels split requests of some megabytes
/// (Linux: `max_sectors_kb` is 1280 by default).
const GREATEST_MEDIAN: u64 = 64 << 20;

/// An address that no disk has, 256 TiB. A choice: eight times the largest disks of 2025.
const GREATEST_ADDRESS: u64 = 256 << 40;

/// The longest trace, five years, and the shortest one of many requests, in seconds. A choice: the longest published
/// ones have months, and a disk serves no ten thousand requests in a millisecond.
const LONGEST_S: f64 = 5.0 * 365.0 * 86_400.0;
const SHORTEST_S: f64 = 1e-3;
const MANY_REQUESTS: u64 = 1000;

/// What looks like another unit, in words.
pub(super) fn of(figures: &UnitFigures) -> Vec<String> {
    if figures.requests < LEAST_REQUESTS {
        return Vec::new();
    }
    let parts = [size(figures), address(figures), time(figures)];
    parts.into_iter().flatten().collect()
}

fn size(figures: &UnitFigures) -> Option<String> {
    let sizes = &figures.size_bytes;
    if sizes.max < LEAST_BYTES {
        return Some(format!(
            "the longest request has {} bytes: sizes look like a number of blocks",
            sizes.max
        ));
    }
    if sizes.p50 > GREATEST_MEDIAN {
        return Some(format!(
            "half of the requests have {} bytes or more: sizes look like bytes that were taken for blocks",
            sizes.p50
        ));
    }
    let odd = figures.requests - figures.whole_sizes;
    (odd > figures.requests / 2).then(|| {
        format!(
            "{} of {} sizes are no multiples of {LEAST_BYTES} bytes: they look like another unit than bytes",
            odd, figures.requests
        )
    })
}

fn address(figures: &UnitFigures) -> Option<String> {
    if figures.end_byte > GREATEST_ADDRESS {
        return Some(format!(
            "addresses reach {} TB: they look like bytes that were taken for blocks",
            figures.end_byte / 1_000_000_000_000
        ));
    }
    let odd = figures.requests - figures.whole_addresses;
    (odd > figures.requests / 2).then(|| {
        format!(
            "{} of {} addresses are no multiples of {LEAST_BYTES} bytes: they look like block numbers",
            odd, figures.requests
        )
    })
}

fn time(figures: &UnitFigures) -> Option<String> {
    let span = figures.span_seconds;
    if span > LONGEST_S {
        return Some(format!(
            "the trace has {:.0} years: times look like a smaller unit than the one they were taken for",
            span / (365.0 * 86_400.0)
        ));
    }
    (figures.requests >= MANY_REQUESTS && span < SHORTEST_S).then(|| {
        format!(
            "{} requests arrive within {:.0} us: times look like a larger unit than the one they were taken for",
            figures.requests,
            span * 1e6
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(median: u64, max: u64) -> Quantiles {
        Quantiles {
            mean: median as f64,
            min: 1,
            p50: median,
            p90: max,
            p99: max,
            p999: max,
            max,
        }
    }

    fn good() -> UnitFigures {
        UnitFigures {
            requests: 2000,
            whole_sizes: 2000,
            whole_addresses: 1900,
            size_bytes: sizes(4096, 1 << 20),
            end_byte: 1 << 40,
            span_seconds: 3600.0,
        }
    }

    #[test]
    fn usual_units_raise_no_doubt_and_few_requests_none_at_all() {
        assert_eq!(of(&good()), Vec::<String>::new());
        let few = UnitFigures {
            requests: 15,
            whole_sizes: 0,
            whole_addresses: 0,
            ..good()
        };
        assert_eq!(of(&few), Vec::<String>::new());
    }

    #[test]
    fn each_wrong_unit_is_doubted() {
        for (figures, doubt) in [
            (
                UnitFigures {
                    size_bytes: sizes(8, 256),
                    whole_sizes: 0,
                    ..good()
                },
                "the longest request has 256 bytes",
            ),
            (
                UnitFigures {
                    size_bytes: sizes(128 << 20, 1 << 30),
                    ..good()
                },
                "half of the requests have 134217728 bytes",
            ),
            (
                UnitFigures {
                    whole_sizes: 999,
                    ..good()
                },
                "1001 of 2000 sizes",
            ),
            (
                UnitFigures {
                    end_byte: 300 << 40,
                    ..good()
                },
                "addresses reach 329 TB",
            ),
            (
                UnitFigures {
                    whole_addresses: 999,
                    ..good()
                },
                "look like block numbers",
            ),
            (
                UnitFigures {
                    span_seconds: 3.2e9,
                    ..good()
                },
                "the trace has 101 years",
            ),
            (
                UnitFigures {
                    span_seconds: 2e-5,
                    ..good()
                },
                "arrive within 20 us",
            ),
        ] {
            let found = of(&figures);
            assert_eq!(found.len(), 1, "{doubt}: {found:?}");
            assert!(found[0].contains(doubt), "{doubt}: {found:?}");
        }
    }
}
