//! Recorded names made fit for the vendors: names of tools and ids of calls. The same name becomes the same one
//! everywhere in a request, because the rule looks at nothing else.

use std::borrow::Cow;

/// The longest name of a tool: OpenAI's limit, the strictest of the vendors'.
pub(crate) const TOOL: usize = 64;
/// The longest id of a call: OpenAI's Chat Completions.
pub(crate) const ID: usize = 40;

/// A name of letters, digits, `_` and `-` that begins with a letter or `_`, `most` characters long. Of any other name the
/// fitting characters are kept, with a checksum that distinguishes it from similar ones.
pub(crate) fn fit(name: &str, most: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins_well = most == ID || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && (1..=most).contains(&name.len()) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mut kept: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    kept.truncate(most - 10);
    if !begins_well {
        kept.insert(0, '_');
    }
    Cow::Owned(format!("{kept}_{:08x}", crc32fast::hash(name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_that_no_vendor_takes_are_made_fit_and_stay_different() {
        let long = "mcp__".repeat(20);
        let names = [
            "functions.exec",
            "functions/exec",
            "a b",
            "a:b",
            "读取文件",
            "写入文件",
            "",
            "9lives",
            "tool\n",
            "émile",
            &long,
            &format!("{long}x"),
            "-x",
        ];
        for most in [TOOL, ID] {
            let fitted: HashSet<_> = names.iter().map(|name| fit(name, most)).collect();
            assert_eq!(fitted.len(), names.len());
            for name in &fitted {
                assert!(
                    (1..=most).contains(&name.len()) && *fit(name, most) == **name,
                    "{name}"
                );
            }
        }
        for plain in [
            "edit_file",
            "mcp__server__list-files",
            "_x",
            &"a".repeat(64),
        ] {
            assert_eq!(fit(plain, TOOL), plain);
        }
        assert_eq!(fit("call_1", ID), "call_1");
    }
}
