//! `headtime experiment --shard` and `--merge`, as a whole binary.

use crate::scene::Scene;

#[test]
fn shards_merge_to_the_bytes_of_the_whole() {
    let text = "name = \"e\"\nsummary = \"s\"\ndrive = \"quantum-atlas-10k\"\nworkload = \"oltp\"\n\
                requests = 60\nrepeat = 2\n[sweep]\npolicy = [\"fcfs\", \"sptf\"]\ndepth = [1, 2]\n\
                [figure]\nx = \"depth\"\ny = [\"mean_ms\"]\n";
    let scene = Scene::with(&[("e.toml", text)]);
    let whole = scene.prints("experiment e.toml --json --out whole.parquet");
    for shard in ["3/3", "1/3"] {
        scene.prints(&format!("experiment e.toml --shard {shard} --out shards"));
    }
    let said = scene.refuses("experiment --merge shards");
    assert!(said.contains("of 8 runs are missing"), "{said}");
    scene.prints("experiment e.toml --shard 2/3 --out shards --threads 2");
    assert_eq!(
        scene.prints("experiment --merge shards --json --out merged.parquet"),
        whole
    );
    let bytes = |name: &str| std::fs::read(scene.path(name)).expect("a file");
    assert_eq!(bytes("merged.parquet"), bytes("whole.parquet"));
    let said = scene.refuses("experiment e.toml --shard 4/3 --out shards");
    assert!(said.contains("I/N"), "{said}");
    assert!(
        scene
            .refuses("experiment --merge nowhere")
            .starts_with("nowhere: ")
    );
}
