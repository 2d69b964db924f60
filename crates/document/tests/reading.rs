//! Every error has the file, the line, the key and the expectation.

use document::{Document, DocumentError, Section};

const TEXT: &str = "name = \"a\"\nsizes = [1, 2.5, \"three\"]\n\n[[part]]\nsize.kib = 4\n\n[[part]]\nsize = { kib = -1 }\n";

/// What `read` says of [`TEXT`].
fn error<T>(read: impl FnOnce(Section<'_>) -> Result<T, DocumentError>) -> String {
    let document = Document::parse("f.toml", TEXT).expect("TOML");
    match read(document.root()) {
        Ok(_) => String::from("fine"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_error_of_a_value_has_its_path_and_repeats_it() {
    let size = error(|root| {
        let part = root.sections("part")?[1];
        let size = part.need_section("size", &["kib"])?;
        size.need("kib", "KiB")?.whole(0..=9, "0 to 9")
    });
    assert_eq!(size, "f.toml:8: part[1].size.kib: -1: expected 0 to 9");
    let third = error(|root| {
        root.need("sizes", "sizes")?
            .list_of(|size| size.number_within(0.0..=4.0))
    });
    assert_eq!(
        third,
        "f.toml:2: sizes[2]: \"three\": expected a number from 0 to 4"
    );
    let length = error(|root| {
        root.need("sizes", "sizes")?
            .array::<2>("two numbers")
            .map(drop)
    });
    assert_eq!(
        length,
        "f.toml:2: sizes: [1, 2.5, \"three\"]: expected two numbers"
    );
    let choice = error(|root| root.need("name", "a name")?.choice(&[("as", 1), ("b", 2)]));
    assert_eq!(
        choice,
        "f.toml:1: name: \"a\": expected one of \"as\", \"b\""
    );
}

#[test]
fn unknown_and_missing_keys_are_named() {
    let unknown = error(|root| root.only(&["name", "size", "part"]));
    assert_eq!(
        unknown,
        "f.toml:2: sizes: unknown key: did you mean `size`?"
    );
    let unknown = error(|root| root.only(&["name", "part"]));
    assert_eq!(
        unknown,
        "f.toml:2: sizes: unknown key: expected one of name, part"
    );
    let missing = error(|root| root.sections("part")?[0].need("rate", "a rate").map(drop));
    assert_eq!(
        missing,
        "f.toml:4: part[0].rate: missing key: expected a rate"
    );
}

#[test]
fn a_text_that_is_not_toml_has_a_line_and_no_key() {
    let error = Document::parse("f.toml", "a = 1\nb = = 2\n").expect_err("not TOML");
    assert_eq!((error.line, error.key.as_str()), (Some(2), ""));
    assert!(
        error.to_string().starts_with("f.toml:2: not TOML: "),
        "{error}"
    );
}

#[test]
fn lines_outlive_the_text() {
    let lines = {
        let document = Document::parse("f.toml", TEXT).expect("TOML");
        let part = document.root().sections("part").expect("parts")[1];
        part.lines()
    };
    let at = |key| lines.error(key, "wrong").to_string();
    assert_eq!(at("size.kib"), "f.toml:8: size.kib: wrong");
    assert_eq!(at("size.mib"), "f.toml:8: size.mib: wrong");
    assert_eq!(at("rate"), "f.toml:7: rate: wrong");
    assert_eq!(document::Lines::default().error("rate", "wrong").line, None);
}
