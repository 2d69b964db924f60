//! Every shipped drive can be drawn, the largest ones too, as SVG and in the terminal.

use assert_cmd::Command;

#[test]
fn every_shipped_drive_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in drive::catalog::ALL {
        let svg = folder.path().join(format!("{}.svg", entry.name));
        let mut show = Command::cargo_bin("headtime").expect("the binary");
        show.args(["drives", "show", entry.name, "--svg"]).arg(&svg);
        // Integer axes of more than 2^19 cylinders once kept the plotting library busy for ever.
        let shown = show
            .timeout(std::time::Duration::from_secs(60))
            .assert()
            .success();
        let text = String::from_utf8_lossy(&shown.get_output().stdout).into_owned();
        assert!(
            text.contains("seek in ms over cylinders"),
            "{}: {text}",
            entry.name
        );
        let drawing = std::fs::read_to_string(&svg).expect("the drawing");
        assert!(
            drawing.contains("cylinders") && drawing.ends_with("</svg>\n"),
            "{}",
            entry.name
        );
    }
}
