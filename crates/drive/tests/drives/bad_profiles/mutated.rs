//! Profiles with some lines lost, doubled, swapped, or with other numbers in them.

use drive::{Profile, catalog};
use proptest::prelude::*;

use super::{ZONED, indexed};

/// A text with some of its lines removed, doubled, swapped, or with other numbers in them.
fn mutate(text: &str, changes: &[(u8, usize, i64)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for &(kind, at, number) in changes {
        if lines.is_empty() {
            break;
        }
        let at = at % lines.len();
        match kind % 6 {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = number.unsigned_abs() as usize % lines.len();
                lines.swap(at, other);
            }
            3 => {
                if let Some((key, _)) = lines[at].split_once(" = ") {
                    lines[at] = format!("{key} = {number}");
                }
            }
            4 => {
                let mut digits: Vec<char> = lines[at].chars().collect();
                let spot = number.unsigned_abs() as usize % (digits.len() + 1);
                digits.insert(
                    spot,
                    ['9', '-', '.', '[', ']', '"', 'e'][number.unsigned_abs() as usize % 7],
                );
                lines[at] = digits.into_iter().collect();
            }
            _ => {
                let keep = number.unsigned_abs() as usize % (lines[at].len() + 1);
                lines[at] = lines[at].chars().take(keep).collect();
            }
        }
    }
    lines.join("\n")
}

fn changes() -> impl Strategy<Value = Vec<(u8, usize, i64)>> {
    let number = prop_oneof![
        -3i64..100,
        any::<i64>(),
        Just(i64::from(u32::MAX)),
        Just(1 << 31)
    ];
    proptest::collection::vec((any::<u8>(), any::<usize>(), number), 1..5)
}

/// A profile is one, or the error says where and why it is not. What loads can be used.
fn never_panics(text: &str) {
    match Profile::parse(text, "mutated.toml") {
        Ok(profile) => {
            let blocks = profile.geometry.sectors().0;
            for lba in [0, blocks / 3, blocks / 2, blocks - 1] {
                crate::oracle::check_block(&profile.geometry, lba, 9);
            }
        }
        Err(error) => {
            let lines = 1..=text.lines().count() + 1;
            assert!(
                error.line.is_some_and(|line| lines.contains(&line)),
                "{error}"
            );
            assert!(!error.problem.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn mutated_small_drives_never_panic(changes in changes(), nested in any::<prop::sample::Selector>()) {
        let texts = [ZONED.to_owned(), indexed()];
        never_panics(&mutate(nested.select(&texts), &changes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_shipped_drives_never_panic(changes in changes(), drive in any::<prop::sample::Selector>()) {
        let small = catalog::ALL.iter().filter(|entry| entry.text().len() < 100_000);
        never_panics(&mutate(drive.select(small).text(), &changes));
    }
}
