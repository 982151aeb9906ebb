//! What a harness writes in the place of a result that it took out of the context: notes that are known by their shape.

use base::words::WordList;

/// Whether a result is only the note of a harness that it took the result out: a note in brackets or tags, or of one line
/// about what a tool gave.
pub(super) fn is_placeholder(text: &str) -> bool {
    const LONGEST: usize = 300;
    const BRACKETS: [(char, char); 3] = [('[', ']'), ('(', ')'), ('<', '>')];
    const GIVERS: WordList = WordList("tool environment observation function result");
    let text = text.trim();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    if let Some(tag) = tag_around(text)
        && tells_of_removal(&words_of(tag))
    {
        return true;
    }
    if text.len() > LONGEST || text.contains(['"', '=']) {
        return false;
    }
    let inside = |(open, close)| text.strip_prefix(open)?.strip_suffix(close);
    let is_one = |inside: &&str| !text.starts_with('<') || inside.matches('<').count() <= 1;
    let words = words_of(text);
    match BRACKETS.into_iter().find_map(inside).filter(is_one) {
        Some(_) => tells_of_removal(&words) || words.len() == 1 && is_removal(&words.concat()),
        None => {
            let is_line = !text.contains('\n');
            // A path is no word of a note.
            let said = text.split_whitespace().filter(|word| !word.contains('/'));
            let words = words_of(&said.collect::<Vec<_>>().join(" "));
            let of_tool = words
                .iter()
                .any(|word| GIVERS.has(word) || word.contains("工具"));
            is_line && of_tool && tells_of_removal(&words)
        }
    }
}

/// The name of the tag that a text consists of.
fn tag_around(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?.strip_suffix('>')?;
    let name = inside.split(['>', ' ', '\n']).next()?;
    let is_whole = !inside.contains('>') || inside.ends_with(&format!("</{name}"));
    is_whole.then_some(name)
}

fn words_of(note: &str) -> Vec<String> {
    let words = note.split(|c: char| !c.is_alphabetic());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn is_removal(word: &str) -> bool {
    const REMOVALS: WordList = WordList(
        "evicted cleared expired duplicate condensed pruned compacted omitted trimmed removed masked elided truncated dropped persisted offloaded \
        stripped purged discarded deleted collapsed snipped snip hidden longer summarized redacted archived moved",
    );
    REMOVALS.has(word)
        || [
            "清除", "移除", "省略", "截断", "删除", "摘要", "折叠", "裁剪",
        ]
        .iter()
        .any(|part| word.contains(part))
}

fn tells_of_removal(words: &[String]) -> bool {
    const HELD: WordList = WordList(
        "read result results output outputs history content context observation response lines tokens image",
    );
    let is_held = |word: &String| {
        let mut parts = ["结果", "输出", "内容"].iter();
        HELD.has(word) || parts.any(|part| word.contains(part))
    };
    words.iter().any(|word| is_removal(word)) && words.iter().any(is_held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_a_result_was_taken_out_is_told_from_a_short_result() {
        for note in [
            "<output-persisted>\nOutput too large.\n\nPreview:\nabc = \"x\"\n</output-persisted>",
            "<results-masked id=\"1\">",
            "[[INFO] The outdated response was dropped, read the file again.]",
            "(tool output omitted)",
            "Old environment output: (9 lines omitted)",
            "Error: [result removed]",
            "[elided]",
            "<STRIPPED>",
            "[... 300 lines omitted ...]",
            "[tool call result no longer available]",
            "[旧的工具结果内容已清除]",
            "[以前的输出已折叠]",
            "[that result was summarized: tests failed]",
            "[ARCHIVED TOOL OUTPUT]",
            "Result moved to /tmp/r2.txt",
            "[Pruned: read of lib/b.py]",
            "[tool result expired]",
            "[DUPLICATE FILE READ]",
            "[condensed]",
            "[12034 tokens elided]",
            "[旧输出已裁剪]",
        ] {
            assert!(is_placeholder(note), "{note}");
        }
        for result in [
            "[ok]",
            "[]",
            "(no output)",
            "[removed 3 packages]",
            "[\"removed\", \"result\"]",
            "<p>removed</p>\n<p>content</p>",
            "The cache was cleared.",
            "Removed stale history files.",
            "Deleted src/context/theme.tsx",
            "Successfully moved src/result/old.ts to src/new.ts",
            "context deadline exceeded: request dropped",
            "content\nremoved by the tool",
        ] {
            assert!(!is_placeholder(result), "{result}");
        }
    }
}
