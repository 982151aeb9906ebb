//! Who grades.

use super::request::JudgePrompts;
use crate::action::Template;
use base::text_name;
use models::ModelUse;

text_name! {
    /// The name of a judge in results; part of no cache key.
    pub struct JudgeName;
}

#[derive(Clone, Debug)]
pub struct JudgeSpec {
    pub name: JudgeName,
    pub model: ModelUse,
    /// The prompt (variable: `request`).
    pub template: Template,
    /// The prompt's file, relative to the pipeline; `None` for the built-in one.
    pub prompt_path: Option<String>,
    /// What stands in place of the built-in system message (variable: `criteria`), and its file.
    pub system: Option<(Template, String)>,
    /// How many replies that break the contract are taken before the cell fails.
    pub attempts: u32,
}

impl JudgeSpec {
    /// All that its prompts say of its own: results by judges that are asked in other words do not compare.
    pub fn text(&self) -> String {
        let system = self.system.as_ref().map_or("", |(template, _)| template.text());
        format!("{system}{}", self.template.text())
    }

    /// The prompts of its requests.
    pub fn prompts(&self) -> JudgePrompts<'_> {
        JudgePrompts { system: self.system.as_ref().map(|(template, _)| template), request: &self.template }
    }
}
