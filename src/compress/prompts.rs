//! The built-in prompts, and the headings they ask for.

use super::spec::PromptStyle;
use crate::action::{BuiltInTemplate, Template, Variable};
use base::locale::Locale;

/// The variables a compress prompt may use.
pub const VARIABLES: &[Variable] = &[
    "transcript",
    "previous_summary",
    "focus_topic",
    "target_tokens",
];

static ANCHORED: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/anchored-iterative.md"),
    include_str!("../../assets/prompts/zh/anchored-iterative.md"),
    VARIABLES,
);
static REGENERATIVE: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/regenerative.md"),
    include_str!("../../assets/prompts/zh/regenerative.md"),
    VARIABLES,
);
/// Instructions for a vendor's compaction, where its own cannot carry what the user asked for.
pub(super) static COMPACTION: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/provider-compaction.md"),
    include_str!("../../assets/prompts/zh/provider-compaction.md"),
    VARIABLES,
);

pub fn built_in(style: PromptStyle, locale: Locale) -> Template {
    match style {
        PromptStyle::Anchored => ANCHORED.get(locale),
        PromptStyle::Regenerative => REGENERATIVE.get(locale),
    }
}

/// Begins a conversation that goes on from a summary, where the prompt is the system message.
pub(super) static EARLIER_SUMMARY: BuiltInTemplate = BuiltInTemplate::new(
    "Summary of the session so far, in place of its messages:\n\n{{ previous_summary }}",
    "此前会话的摘要，代替其中的消息：\n\n{{ previous_summary }}",
    VARIABLES,
);
/// The session's own system message, where a prompt comes last.
pub(super) static SESSION_SYSTEM: BuiltInTemplate =
    BuiltInTemplate::new("{{ system }}", "{{ system }}", &["system"]);
/// Ends a conversation that is to be summarised by the system message.
pub(super) static SUMMARY_REQUEST: BuiltInTemplate = BuiltInTemplate::new(
    "Write the summary of this conversation now, as the system message says.",
    "现在请按照系统消息的要求，写出这段对话的摘要。",
    VARIABLES,
);

const ANCHORED_EN: &[&str] = &[
    "Session intent",
    "Files created",
    "Files modified",
    "Files read",
    "Decisions and why",
    "Errors and exact messages",
    "Current state",
    "Next steps",
];
const ANCHORED_ZH: &[&str] = &[
    "会话目标",
    "新建的文件",
    "修改的文件",
    "读过的文件",
    "决定及理由",
    "错误与原文",
    "当前状态",
    "后续步骤",
];
const REGENERATIVE_EN: &[&str] = &["Analysis", "Files", "Pending tasks", "Current state"];
const REGENERATIVE_ZH: &[&str] = &["分析", "文件", "待办事项", "当前状态"];

/// The headings that the built-in prompt of a style asks for.
pub fn sections(style: PromptStyle, locale: Locale) -> &'static [&'static str] {
    match (style, locale) {
        (PromptStyle::Anchored, Locale::En) => ANCHORED_EN,
        (PromptStyle::Anchored, Locale::Zh) => ANCHORED_ZH,
        (PromptStyle::Regenerative, Locale::En) => REGENERATIVE_EN,
        (PromptStyle::Regenerative, Locale::Zh) => REGENERATIVE_ZH,
    }
}

/// Built-in headings that `template` asks for and `summary` lacks in both languages. A user's own prompt with other
/// sections is not blamed, nor is a summary in the session's language.
pub(super) fn missing_sections(
    template: &Template,
    style: PromptStyle,
    summary: &str,
) -> Vec<&'static str> {
    let pairs = sections(style, Locale::En)
        .iter()
        .zip(sections(style, Locale::Zh));
    pairs
        .filter(|(english, chinese)| {
            !has_heading(summary, english) && !has_heading(summary, chinese)
        })
        .flat_map(|(english, chinese)| [*english, *chinese])
        .filter(|name| has_heading(template.text(), name))
        .collect()
}

/// Whether a line of `text` is `name` as a heading: after `#` marks, in bold, or with a colon.
fn has_heading(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let marks = |c: char| {
            c.is_whitespace()
                || matches!(c, '#' | '*' | ':' | '：' | '.' | ')')
                || c.is_ascii_digit()
        };
        line.len() != line.trim_start_matches(['#', '*']).len()
            && line.trim_matches(marks).eq_ignore_ascii_case(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(PromptStyle, Locale); 4] = [
        (PromptStyle::Anchored, Locale::En),
        (PromptStyle::Anchored, Locale::Zh),
        (PromptStyle::Regenerative, Locale::En),
        (PromptStyle::Regenerative, Locale::Zh),
    ];

    #[test]
    fn built_in_prompts_compile_and_ask_for_every_section() {
        for (style, locale) in ALL {
            let template = built_in(style, locale);
            for name in sections(style, locale) {
                assert!(has_heading(template.text(), name), "{name}");
            }
        }
        for locale in [Locale::En, Locale::Zh] {
            assert!(COMPACTION.get(locale).text().contains("{{ focus_topic }}"));
        }
    }

    #[test]
    fn built_in_prompts_use_every_variable() {
        for (style, locale) in ALL {
            let values = VARIABLES
                .iter()
                .map(|name| (*name, (*name).into()))
                .collect();
            let prompt = built_in(style, locale)
                .fill("prompt", values)
                .expect("fills");
            assert_eq!(prompt.used().count(), VARIABLES.len());
        }
    }

    #[test]
    fn a_missing_heading_is_named_and_a_bold_one_counts() {
        let template = built_in(PromptStyle::Regenerative, Locale::En);
        let summary = "**Analysis**\nx\n### files:\ny\n## 3. Pending tasks\n";
        assert_eq!(
            missing_sections(&template, PromptStyle::Regenerative, summary),
            ["Current state"]
        );
        let own = Template::new("Sum up: {{ transcript }}", VARIABLES).expect("compiles");
        assert!(missing_sections(&own, PromptStyle::Regenerative, "short").is_empty());
    }
}
