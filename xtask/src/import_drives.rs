//! `cargo xtask import-drives [--check]`: makes `drives/*.toml` from the published parameters in
//! `../shared/drives`, so that every number can be traced and made again.
//!
//! A `[fitted]` table, always the last of a file, is not from there: it is kept as it is.

mod convert;

use std::fs;

use serde_json::Value;

use crate::repository;

/// A drive to import.
struct Drive {
    /// Its name here, and its directory in the shared data.
    name: &'static str,
    directory: &'static str,
    /// What the data do not say.
    model: &'static str,
    year: u16,
    provenance: &'static str,
    /// Whose numbers they are.
    origin: &'static str,
    /// A block count other than the published one, and why.
    blocks: Option<(u64, &'static str)>,
    /// Remarks for the top of the file.
    remarks: &'static [&'static str],
}

/// Where most drives come from.
const DISKSIM: &str =
    "westerndigitalcorporation/DiskSim @ dc21ab0 (2015-04-06; CMU DiskSim 4.0), STABLE/.../valid";

/// All drives that are imported. The years are those of the drives' introduction, from the
/// vendors' announcements.
const DRIVES: [Drive; 15] = [
    Drive {
        name: "dec-rz26",
        directory: "dec_rz26",
        model: "DEC RZ26",
        year: 1992,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "hp-c2247a",
        directory: "hp_c2247a",
        model: "HP C2247A",
        year: 1992,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "hp-c2249a",
        directory: "hp_c2249a",
        model: "HP C2249A",
        year: 1992,
        provenance: "approximate",
        origin: DISKSIM,
        blocks: None,
        remarks: &[
            "The C2247A's numbers with other surfaces and spares; no trace was measured on one.",
        ],
    },
    Drive {
        name: "hp-c2490a",
        directory: "hp_c2490a",
        model: "HP C2490A",
        year: 1993,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &["The published number of cylinders is 2629, but the last zone ends at 2629."],
    },
    Drive {
        name: "hp-c3323a",
        directory: "hp_c3323a",
        model: "HP C3323A",
        year: 1994,
        provenance: "measured",
        origin: DISKSIM,
        blocks: Some((
            2_056_008,
            "CMU's number. WD changed it to 1743672, but the zones hold 2056008 and the trace \
             that was measured on the drive goes up to 2049218.",
        )),
        remarks: &[],
    },
    Drive {
        name: "ibm-ultrastar-18es",
        directory: "ibm_dnes309170w_ultrastar18es",
        model: "IBM DNES-309170W (Ultrastar 18ES)",
        year: 1998,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "maxtor-atlas-10k5-300",
        directory: "maxtor_atlas10k5_300",
        model: "Maxtor Atlas 10K V, 300 GB",
        year: 2004,
        provenance: "measured",
        origin: "westerndigitalcorporation/DiskSim @ dc21ab0 (2015-04-06), dualseek_example",
        blocks: Some((
            585_937_500,
            "What the tracks hold without slips, and 300 GB; published is the number of the last \
             block.",
        )),
        remarks: &["No trace was measured on it."],
    },
    Drive {
        name: "quantum-atlas-10k",
        directory: "quantum_atlas10k_tornado",
        model: "Quantum Atlas 10K (Tornado)",
        year: 1999,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "quantum-atlas-3",
        directory: "quantum_qm39100td_atlas3",
        model: "Quantum QM39100TD-SW (Atlas III)",
        year: 1997,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "seagate-barracuda-4lp",
        directory: "seagate_st32171w_barracuda4lp",
        model: "Seagate ST32171W (Barracuda 4LP)",
        year: 1996,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "seagate-cheetah-15k5",
        directory: "seagate_st3146855fc_cheetah15k5",
        model: "Seagate ST3146855FC (Cheetah 15K.5)",
        year: 2006,
        provenance: "measured",
        origin: "jinwei-chang/disksim64 @ 011d4d9, models/Seagate-Cheetah15k5.tar.gz (CMU PDL, 2008)",
        blocks: Some((
            286_749_488,
            "The raw map that was read out of the drive ends with block 286749487; published is \
             that number.",
        )),
        remarks: &[],
    },
    Drive {
        name: "seagate-cheetah-4lp",
        directory: "seagate_st34501n_cheetah4lp",
        model: "Seagate ST34501N (Cheetah 4LP)",
        year: 1996,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "seagate-cheetah-9lp",
        directory: "seagate_st39102lw_cheetah9lp",
        model: "Seagate ST39102LW (Cheetah 9LP)",
        year: 1998,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "seagate-elite-st41601n",
        directory: "seagate_st41601n_elite",
        model: "Seagate ST41601N (Elite)",
        year: 1991,
        provenance: "measured",
        origin: DISKSIM,
        blocks: None,
        remarks: &[],
    },
    Drive {
        name: "wd-4tb-test",
        directory: "wd_g4_4tb_test",
        model: "WD test disk of 4 TB",
        year: 2015,
        provenance: "invented",
        origin: "westerndigitalcorporation/DiskSim @ dc21ab0 (2015-04-06), \
                 EXPERIMENTAL/Linux_64bit_LBA_.../valid/test_debug_LBA_64bit",
        blocks: Some((
            7_542_225_920,
            "What the tracks hold; the published 7725673570 goes past their end.",
        )),
        remarks: &["Made up for tests: the electronics of the Cheetah 15K.5, a coarse seek table."],
    },
];

/// Runs the command; the result is its report.
pub fn run(arguments: &[String]) -> Result<String, String> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("usage: cargo xtask import-drives [--check]".to_owned()),
    };
    let workspace = repository::root();
    let shared = repository::shared(&workspace);
    let mut different = Vec::new();
    for drive in &DRIVES {
        let source = shared
            .join("drives")
            .join(drive.directory)
            .join("drive.json");
        let target = workspace
            .join("drives")
            .join(format!("{}.toml", drive.name));
        let json = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let value: Value =
            serde_json::from_str(&json).map_err(|e| format!("{}: {e}", source.display()))?;
        let mut text = convert::convert(drive, &value)
            .ok_or_else(|| format!("{}: not the expected shape", source.display()))?;
        let before = fs::read_to_string(&target).unwrap_or_default();
        text.push_str(fitted(&before));
        if text == before {
            continue;
        }
        different.push(drive.name);
        if !check {
            fs::write(&target, text).map_err(|e| format!("{}: {e}", target.display()))?;
        }
    }
    match (check, different.is_empty()) {
        (_, true) => Ok(format!("{} drives are as published", DRIVES.len())),
        (false, false) => Ok(format!("written: {}", different.join(", "))),
        (true, false) => Err(format!(
            "not as published: {}; run `cargo xtask import-drives`",
            different.join(", ")
        )),
    }
}

/// The `[fitted]` table of a file, with the blank line and the comments before it.
fn fitted(text: &str) -> &str {
    let Some(table) = text.find("\n[fitted]") else {
        return "";
    };
    let before = &text[..table];
    let start = before.rfind("\n\n").map_or(table, |blank| blank + 1);
    let comments = before[start..].trim();
    if comments.is_empty() || comments.lines().all(|line| line.starts_with('#')) {
        &text[start..]
    } else {
        &text[table..]
    }
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn the_fitted_table_is_found_with_its_comments() {
        assert_eq!(fitted("a = 1\n"), "");
        assert_eq!(fitted("a = 1\n\n[fitted]\nb = 2\n"), "\n[fitted]\nb = 2\n");
        assert_eq!(
            fitted("a = 1\n\n# by hand\n[fitted]\nb = 2\n"),
            "\n# by hand\n[fitted]\nb = 2\n"
        );
    }
}
