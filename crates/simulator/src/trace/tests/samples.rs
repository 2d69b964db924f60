//! A small trace of every format, and what it says.

use block::Direction;

/// A small trace of one format by hand, and what it says.
pub(super) struct Sample {
    pub(super) format: &'static str,
    pub(super) text: &'static str,
    /// Nanoseconds, device, direction, offset, length.
    pub(super) records: &'static [(u64, &'static str, Direction, u64, u64)],
    pub(super) passed_over: u64,
}

const READ: Direction = Direction::Read;
const WRITE: Direction = Direction::Write;

/// A sample of every format.
pub(super) static SAMPLES: &[Sample] = &[
    Sample {
        format: "canonical",
        text: "0.000000,0,R,336756736,8192\n\
               0.0113,web3,W,0,1\n\
               0.011300001,0,R,18446744073709551614,1\n",
        records: &[
            (0, "0", READ, 336_756_736, 8192),
            (11_300_000, "web3", WRITE, 0, 1),
            (11_300_001, "0", READ, u64::MAX - 1, 1),
        ],
        passed_over: 0,
    },
    Sample {
        format: "spc",
        text: "0,20941264,8192,W,0.551706\n\
               01, 3436288 ,15872,r,1.25,optional,0\r\n",
        records: &[
            (551_706_000, "0", WRITE, 20_941_264 * 512, 8192),
            (1_250_000_000, "1", READ, 3_436_288 * 512, 15_872),
        ],
        passed_over: 0,
    },
    Sample {
        format: "msr",
        text: "128166372003061629,web,3,Read,32256,8192,113736\n\
               128166372003061632,web,0,Write,512,4096,0\n",
        records: &[
            (0, "web_3", READ, 32_256, 8192),
            (300, "web_0", WRITE, 512, 4096),
        ],
        passed_over: 0,
    },
    Sample {
        format: "alibaba",
        text: "419,W,8792731648,16384,1577808144360767\n\
               725,R,59110326272,360448,1577808144360768\n",
        records: &[
            (0, "419", WRITE, 8_792_731_648, 16_384),
            (1_000, "725", READ, 59_110_326_272, 360_448),
        ],
        passed_over: 0,
    },
    Sample {
        format: "tencent",
        text: "1538323200,12910952,128,0,1063\n\
               1538323201,6338688,8,1,1627\n",
        records: &[
            (0, "1063", READ, 12_910_952 * 512, 65_536),
            (1_000_000_000, "1627", WRITE, 6_338_688 * 512, 4096),
        ],
        passed_over: 0,
    },
    Sample {
        format: "cloudphysics",
        text: "1315000000000,24,r,4096\n\
               1315000000250,16,w,8704\n",
        records: &[
            (0, "0", READ, 24 * 512, 4096),
            (250_000, "0", WRITE, 16 * 512, 8704),
        ],
        passed_over: 0,
    },
    Sample {
        format: "baleen",
        text: "block_id io_offset io_size op_time op_name user_namespace user_name rs_shard_id op_count host_name\n\
               3151 1048576 131072 1631059214.25 2 4 7 0 1 12\n\
               7 0 4096 1631059214.5 3 4 7 0\n",
        records: &[
            (0, "0", READ, 3151 * (8 << 20) + (1 << 20), 131_072),
            (250_000_000, "0", WRITE, 7 * (8 << 20), 4096),
        ],
        passed_over: 1,
    },
    Sample {
        format: "headed",
        text: "\u{feff};\"Timestamp_us\";lba;Size;is_write;volume;latency\n\
               0;1700000000000000;8;4096;False;sda;12.5\n\
               1;1700000000000250.5;16;512;True;\"sdb\";3\n",
        records: &[
            (0, "sda", READ, 4096, 4096),
            (250_500, "sdb", WRITE, 8192, 512),
        ],
        passed_over: 1,
    },
    Sample {
        format: "disksim",
        text: "0.000000 0 4096 8 1\n\
                  10.5\t2   16 1 0\n\
               11 0 8 2 1D\n",
        records: &[
            (0, "0", READ, 4096 * 512, 4096),
            (10_500_000, "2", WRITE, 8192, 512),
            (11_000_000, "0", READ, 4096, 1024),
        ],
        passed_over: 0,
    },
    Sample {
        format: "validate",
        text: "R Miss  564347     2     14095.370     13876.270\n\
               W Hit   564349     2      1414.2704     0.0006\n\
               R Trip  1 1 0 0\n",
        records: &[
            (0, "0", READ, 564_347 * 512, 1024),
            (27_971_640, "0", WRITE, 564_349 * 512, 1024),
            (29_385_911, "0", READ, 512, 512),
        ],
        passed_over: 0,
    },
    Sample {
        format: "blkparse",
        text: "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n\
               \x20 8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n\
               \x20 8,0    3        3     0.000002197   697  D   W 223490 + 8 [kjournald]\n\
               \x20 8,0    0        0     0.000003000     0  m   N cfq697 dispatch a request\n\
               259,16   1        4     1.5         0  Q  RA 16 + 256 [cat of nine]\n\
               \x20 8,0    1        5     1.500000001     0  Q FWS [fsync]\n\
               \x20 8,0    1        6     1.600000000     0  Q  DS 64 + 8 [fstrim]\n\
               CPU0 (8,0):\n\
               \x20Reads Queued:          32,      128KiB\t Writes Queued:           0,        0KiB\n\
               \n\
               Throughput (R/W): 1KiB/s / 0KiB/s\n",
        records: &[
            (1_829, "8:0", WRITE, 223_490 * 512, 4096),
            (1_500_000_000, "259:16", READ, 8192, 131_072),
        ],
        passed_over: 9,
    },
    Sample {
        format: "fio-v3",
        text: "fio version 3 iolog\n\
               0 /dev/sda add\n\
               0 /dev/sda open\n\
               1500 /dev/sda read 4096 8192\n\
               1600 /dev/sda sync 0 0\n\
               1601 /dev/sda write 0 512\n\
               2000 /dev/sda close\n",
        records: &[
            (1_500_000, "/dev/sda", READ, 4096, 8192),
            (1_601_000, "/dev/sda", WRITE, 0, 512),
        ],
        passed_over: 5,
    },
    Sample {
        format: "fio-v2",
        text: "fio version 2 iolog\n\
               /dev/sda add\n\
               /dev/sda open\n\
               /dev/sda wait 1500 0\n\
               /dev/sda read 4096 8192\n\
               /dev/sda datasync\n\
               /dev/sda wait 250\n\
               /dev/sda write 0 512\n\
               /dev/sda trim 0 512\n\
               /dev/sda close\n",
        records: &[
            (1_500_000, "/dev/sda", READ, 4096, 8192),
            (1_750_000, "/dev/sda", WRITE, 0, 512),
        ],
        passed_over: 8,
    },
];

/// The sample of the format of that name.
pub(super) fn sample(name: &str) -> &'static Sample {
    SAMPLES
        .iter()
        .find(|sample| sample.format == name)
        .unwrap_or_else(|| panic!("the format {name} needs a sample"))
}
