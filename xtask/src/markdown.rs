//! Markdown as the checks of documentation see it: its lines without code blocks, links, anchors.

/// The lines outside of fenced code blocks, with their numbers from 1.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"]
            .into_iter()
            .find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => return Some((index + 1, line)),
            (Some(_), _) => {}
        }
        None
    })
}

/// The line with each inline code span replaced by `with`.
pub fn without_code(line: &str, with: &str) -> String {
    let mut pieces = line.split('`');
    let mut text = pieces.next().unwrap_or_default().to_string();
    while let Some(code) = pieces.next() {
        match pieces.next() {
            Some(after) => {
                text.push_str(with);
                text.push_str(after);
            }
            // A backtick without its partner is text.
            None => text.push_str(code),
        }
    }
    text
}

/// The targets of the links and images in a line without code.
pub fn link_targets(line: &str) -> Vec<String> {
    let starts = line.match_indices("](").map(|(at, mark)| at + mark.len());
    starts
        .filter_map(|start| {
            let end = line[start..].find(')')?;
            let target = line[start..start + end].split_whitespace().next()?;
            Some(target.trim_matches(['<', '>']).to_string())
        })
        .collect()
}

/// The anchors of all headings, as GitHub and mdBook make them: lower case, blanks as hyphens,
/// punctuation left out, and a number behind a name that occurs again.
pub fn anchors(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in lines(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let name: String = title
            .trim()
            .chars()
            .filter_map(|letter| match letter {
                ' ' => Some('-'),
                '-' | '_' => Some(letter),
                _ if letter.is_alphanumeric() => letter.to_lowercase().next(),
                _ => None,
            })
            .collect();
        let again = (1..)
            .map(|number| format!("{name}-{number}"))
            .find(|numbered| !found.contains(numbered));
        found.push(if found.contains(&name) {
            again.unwrap_or(name)
        } else {
            name
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{anchors, lines, link_targets, without_code};

    #[test]
    fn code_blocks_are_left_out() {
        let text = "a\n```sh\n# no heading\n```\nb\n~~~\n```\n~~~\nc\n";
        let left: Vec<_> = lines(text).collect();
        assert_eq!(left, [(1, "a"), (5, "b"), (9, "c")]);
    }

    #[test]
    fn code_spans_are_replaced() {
        assert_eq!(without_code("a `b c` d `e", "X"), "a X d e");
    }

    #[test]
    fn every_target_of_a_line_is_found() {
        let line = "see [a](b.md#c), ![d](e.svg \"f\") and [g](<h.md>)";
        assert_eq!(link_targets(line), ["b.md#c", "e.svg", "h.md"]);
        assert_eq!(link_targets("none [a] (b)"), [""; 0]);
    }

    #[test]
    fn anchors_are_those_of_the_renderers() {
        let text = "# One `two`: three\n## A-b_c\n```\n# code\n```\n## A-b_c\n#no heading\n";
        assert_eq!(anchors(text), ["one-two-three", "a-b_c", "a-b_c-1"]);
    }
}
