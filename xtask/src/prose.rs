//! `cargo xtask prose`: how long the sentences of the documentation are.
//!
//! A figure for the eye, not a rule: goals are a median of 15 words and a 90th percentile of 25.
//!
//! What counts is prose:
//!
//! - Left out are code blocks, tables, headings, images and the targets of links. An inline code
//!   span is one word.
//! - A list item is a paragraph of its own. A paragraph that does not end in `.`, `!`, `?` or `:`
//!   ends in a fragment (`addresses, extents, time`), and the fragment is left out.
//! - A sentence ends with `.`, `!` or `?` before a capital, a digit or code, and at the end of its
//!   paragraph. `et al.` and the like end none. Neither do colons and semicolons inside of a
//!   paragraph: a long sentence cannot hide behind them.
//! - A word is what stands between blanks and has a letter or a digit.

use crate::Failure;
use crate::markdown;
use crate::repository::{self, Repository};

/// The goals of issue 19: words a sentence, median and 90th percentile.
const GOAL: (usize, usize) = (15, 25);

/// Abbreviations that end no sentence.
const ABBREVIATIONS: &[&str] = &["al.", "e.g.", "i.e.", "cf.", "vs.", "Fig.", "No.", "pp."];

/// `cargo xtask prose [FILE...]`: README, ARCHITECTURE and docs, or these files.
///
/// # Errors
/// If a file is not there.
pub fn run(words: &[String]) -> Result<(), Failure> {
    let repository = Repository::read(&repository::root()).map_err(Failure::Usage)?;
    let is_default = |path: &str| {
        matches!(path, "README.md" | "ARCHITECTURE.md")
            || (path.starts_with("docs/") && path.ends_with(".md"))
    };
    let paths: Vec<&str> = if words.is_empty() {
        let paths = repository.files.iter().map(|file| file.path.as_str());
        paths.filter(|path| is_default(path)).collect()
    } else {
        words.iter().map(String::as_str).collect()
    };
    let mut all = Vec::new();
    println!(
        "sentences  median  90 %  words a sentence, goal {} and {}",
        GOAL.0, GOAL.1
    );
    for path in paths {
        let file = repository.file(path);
        let text = file.and_then(repository::SourceFile::text);
        let text = text.ok_or_else(|| Failure::Usage(format!("{path}: expected a text file")))?;
        let lengths = sentence_lengths(text);
        println!("{}  {path}", figures(lengths.clone()));
        all.extend(lengths);
    }
    println!("{}  all", figures(all));
    Ok(())
}

/// The number of sentences, their median and their 90th percentile.
fn figures(mut lengths: Vec<usize>) -> String {
    lengths.sort_unstable();
    let at = |percent: usize| match (lengths.len() * percent).div_ceil(100) {
        0 => String::from("-"),
        rank => lengths[rank - 1].to_string(),
    };
    format!("{:>9}  {:>6}  {:>4}", lengths.len(), at(50), at(90))
}

/// The number of words of each sentence of a page.
fn sentence_lengths(text: &str) -> Vec<usize> {
    paragraphs(text)
        .iter()
        .flat_map(|paragraph| sentences(paragraph))
        .collect()
}

/// The paragraphs of a page, each as one line of plain text.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut previous = 0;
    for (number, line) in markdown::lines(text) {
        let line = line.trim_start_matches(['>', ' ']);
        let item = line
            .strip_prefix("- ")
            .or_else(|| line.strip_prefix("* "))
            .or_else(|| numbered_item(line));
        let is_break = line.trim().is_empty() || number != previous + 1 || item.is_some();
        let is_prose = !line.starts_with(['#', '|']) && !line.starts_with("![");
        if is_break || !is_prose {
            paragraphs.push(String::new());
        }
        previous = number;
        if is_prose && let Some(paragraph) = paragraphs.last_mut() {
            paragraph.push(' ');
            paragraph.push_str(&markdown::without_code(item.unwrap_or(line), "Code"));
        }
    }
    paragraphs.iter().map(|text| without_links(text)).collect()
}

/// What follows the number of a list item.
fn numbered_item(line: &str) -> Option<&str> {
    let (number, rest) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.chars().all(|letter| letter.is_ascii_digit());
    is_number.then_some(rest)
}

/// The text with each link's words in place of the link.
fn without_links(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        left.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    left.push_str(rest);
    left.replace(['[', ']', '*', '_'], "")
}

/// The number of words of each sentence of a paragraph.
fn sentences(paragraph: &str) -> Vec<usize> {
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let mut lengths = Vec::new();
    let mut length = 0;
    for (index, word) in words.iter().enumerate() {
        length += usize::from(word.contains(char::is_alphanumeric));
        let end = word.trim_end_matches(['"', ')', '\'']);
        let ends = match words.get(index + 1) {
            None => end.ends_with(['.', '!', '?', ':']),
            Some(next) => {
                let begin = next.trim_start_matches(['"', '(', '\'']);
                end.ends_with(['.', '!', '?'])
                    && !ABBREVIATIONS.contains(&end)
                    && begin.starts_with(|letter: char| !letter.is_lowercase())
            }
        };
        if ends && length > 0 {
            lengths.push(length);
            length = 0;
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::{figures, sentence_lengths};

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        assert_eq!(
            sentence_lengths("One two. Three four five! Six?\n"),
            [2, 3, 1]
        );
        assert_eq!(sentence_lengths("One\ntwo three.\n\nFour five:\n"), [3, 2]);
        assert_eq!(
            sentence_lengths("At 2.5 MB/s, by Zhang et al. Four.\n"),
            [8]
        );
        assert_eq!(sentence_lengths("One (two.) Three. 4 five.\n"), [2, 1, 2]);
        assert_eq!(sentence_lengths("One: two; three.\n"), [3]);
    }

    #[test]
    fn code_tables_headings_and_targets_are_left_out() {
        let text =
            "# A title.\n\n| A cell. |\n|---|\n\n```\nSome code. More.\n```\n\n![Alt.](a.svg)\n";
        assert_eq!(sentence_lengths(text), [0; 0]);
        assert_eq!(
            sentence_lengths("See [the page](a b.md) of `x y z`.\n"),
            [5]
        );
        assert_eq!(sentence_lengths("One. `Two` three.\n"), [1, 2]);
    }

    #[test]
    fn list_items_are_paragraphs_and_fragments_are_left_out() {
        let text = "- addresses, extents\n- One two.\n  Three.\n1. Four five.\n> Six.\n";
        assert_eq!(sentence_lengths(text), [2, 1, 2, 1]);
    }

    #[test]
    fn figures_are_the_nearest_ranks() {
        assert_eq!(figures((1..=10).rev().collect()), "       10       5     9");
        assert_eq!(figures(Vec::new()), "        0       -     -");
    }
}
