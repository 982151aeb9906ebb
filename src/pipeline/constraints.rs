//! `[constraints]`: which rules are put into which sessions, and where.
//!
//! Each rule is put into each session of its language, alone, at each of three positions, so that such a session
//! differs from the recorded one in a single message. A session that already mentions the object of a rule does not get
//! that rule: a context that names the object would not show whether the rule was kept.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use super::file::tables::{ConstraintsTable, RuleTable, read_rules};
use super::file::{Located, StringList, value};
use super::model::{Injection, LoadedFixture, RuleSource, SourceFile};
use super::problem::{Problem, Problems};
use super::validation::{ValidationContext, check_name, name_help};
use crate::action::Digest;
use lexical::claims::{Rule, RuleFinder, RulePosition, language_of};
use sessions::transcript::{estimate_tokens, fold_document};

/// A set of rules.
#[derive(Clone, Debug)]
pub(super) struct RuleSet {
    rules: Vec<Arc<Rule>>,
    pub(super) source: RuleSource,
}

static BUILT_IN: LazyLock<RuleSet> = LazyLock::new(|| {
    let text = include_str!("../../assets/constraints/rules.toml");
    let file = SourceFile {
        path: "the built-in rules".to_owned(),
        text: text.into(),
        digest: Digest::hash(text),
    };
    let mut problems = Problems::default();
    RuleSet::read(&file, &mut problems)
        .expect("the built-in rules are part of the program and read by its tests")
});

impl RuleSet {
    pub(super) fn built_in() -> &'static RuleSet {
        &BUILT_IN
    }

    /// Reads the rules of a file. `None` if one of them has an error, which is added to `problems`.
    fn read(file: &SourceFile, problems: &mut Problems) -> Option<RuleSet> {
        let before = problems.errors();
        let tables = read_rules(file, problems).filter(|_| problems.errors() == before)?;
        if tables.is_empty() {
            let problem = Problem::error(format!("{} has no rules", file.path))
                .at(file, 0..file.text.len().min(1));
            problems.push(
                problem.help(
                    "write a [[rule]] table with name, language, text and object for each rule",
                ),
            );
        }
        let mut names = BTreeSet::new();
        let rules: Vec<Arc<Rule>> = tables
            .iter()
            .filter_map(|table| {
                RuleReader {
                    file,
                    problems,
                    table,
                }
                .read(&mut names)
            })
            .collect();
        let source = RuleSource {
            path: file.path.clone(),
            digest: Digest::of_json(&rules),
        };
        (problems.errors() == before).then_some(RuleSet { rules, source })
    }
}

/// Reads one `[[rule]]` table.
struct RuleReader<'a> {
    file: &'a SourceFile,
    problems: &'a mut Problems,
    table: &'a Located<RuleTable>,
}

impl RuleReader<'_> {
    fn read(mut self, names: &mut BTreeSet<String>) -> Option<Arc<Rule>> {
        let RuleTable {
            name,
            language,
            text,
            object,
            prohibition,
            ..
        } = &self.table.value;
        let name = self.required("name", name.as_ref(), |name| is_blank(name));
        let language = self.required("language", language.as_ref(), |_| false);
        let text = self.required("text", text.as_ref(), |text| is_blank(text));
        let object = self.required("object", object.as_ref(), |words| has_blank(words));
        if let Some(words) = prohibition.as_ref().filter(|words| has_blank(&words.value)) {
            self.report(
                words,
                "`prohibition` is empty",
                "name the words that forbid it, or leave the key out",
            );
        }
        let (name, language, text, object) = (name?, language?.value, text?, object?);
        if let Err(message) = check_name(&name.value) {
            self.report(name, &message, name_help());
        } else if !names.insert(name.value.clone()) {
            self.report(
                name,
                &format!("two rules are named `{}`", name.value),
                "names identify results: use another one",
            );
        }
        let rule = Rule {
            name: name.value.as_str().into(),
            language,
            text: text.value.clone(),
            object: strings(object),
            prohibition: prohibition.as_ref().map(strings).unwrap_or_default(),
        };
        self.check_stated(&rule, text);
        Some(Arc::new(rule))
    }

    /// Reports a rule that its own text does not state: every context would seem to have lost it.
    fn check_stated(&mut self, rule: &Rule, text: &Located<String>) {
        let finder = RuleFinder::new(rule);
        if !finder.object().occurs_in(&fold_document(&rule.text)) {
            let message = format!(
                "the text of the rule `{}` does not have its object, `{}`",
                rule.name,
                rule.object.join("`, `")
            );
            self.report(
                text,
                &message,
                "write the object as it is written in the text",
            );
        } else if !finder.is_stated_in(&rule.text) {
            let message = format!(
                "no sentence in the text of the rule `{}` has its object and forbids something",
                rule.name
            );
            let help = "say \"never\", \"do not\" or the like beside the object, or name your words: prohibition = [\"…\"]";
            self.report(text, &message, help);
        }
    }

    fn required<'t, T>(
        &mut self,
        key: &str,
        value: Option<&'t Located<T>>,
        is_empty: impl Fn(&T) -> bool,
    ) -> Option<&'t Located<T>> {
        match value {
            Some(value) if is_empty(&value.value) => {
                self.report(value, &format!("`{key}` is empty"), "every rule needs it")
            }
            Some(value) => return Some(value),
            None if self.table.value.faulty.contains(&key) => {}
            None => {
                let problem = Problem::error(format!("this rule has no `{key}`"))
                    .at(self.file, self.table.place.clone());
                self.problems
                    .push(problem.help("a rule has `name`, `language`, `text` and `object`"));
            }
        }
        None
    }

    fn report<T>(&mut self, at: &Located<T>, message: &str, help: &str) {
        self.problems.push(
            Problem::error(message)
                .at(self.file, at.place.clone())
                .help(help),
        );
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Whether a list is empty or has a blank word.
fn has_blank(words: &[Located<String>]) -> bool {
    words.is_empty() || words.iter().any(|word| is_blank(&word.value))
}

fn strings(list: &Located<StringList>) -> Vec<String> {
    list.value.iter().map(|word| word.value.clone()).collect()
}

/// The rules of the pipeline. `None` if it has none, or if one of them has an error.
pub(super) fn rules(
    context: &mut ValidationContext<'_>,
    table: &ConstraintsTable,
) -> Option<RuleSet> {
    let is_enabled = value(&table.enabled).unwrap_or(false);
    let rules = match &table.set {
        None => Some(RuleSet::built_in().clone()),
        Some(path) => {
            let source = context.text_file("set of rules", path)?;
            RuleSet::read(&source, &mut context.problems)
        }
    };
    rules.filter(|_| is_enabled)
}

/// Puts the rules into the fixtures, by reference: no message is copied.
pub(super) fn inject(rules: &RuleSet, fixtures: &mut [LoadedFixture], problems: &mut Problems) {
    let finders: Vec<(&Arc<Rule>, RuleFinder)> = rules
        .rules
        .iter()
        .map(|rule| (rule, RuleFinder::new(rule)))
        .collect();
    let mut names_without_rule = Vec::new();
    for loaded in fixtures {
        let (messages, history) = (&loaded.fixture.messages, loaded.history());
        let language = language_of(messages);
        let tokens: Vec<_> = messages
            .iter()
            .map(|message| estimate_tokens(&message.countable_text()))
            .collect();
        let span = loaded.fixture.start()..loaded.points.first().copied().unwrap_or(messages.len());
        let fitting = finders.iter().filter(|(rule, finder)| {
            rule.language == language && !history.holds(finder.object(), 0..messages.len())
        });
        let places = RulePosition::ALL
            .map(|position| (position, position.place(messages, span.clone(), &tokens)));
        let injections = fitting.flat_map(|(rule, _)| {
            places.map(|(position, at)| Injection {
                rule: Arc::clone(rule),
                position,
                at,
            })
        });
        loaded.injections = injections.collect();
        if loaded.injections.is_empty() {
            names_without_rule.push(loaded.name().to_owned());
        }
    }
    if !names_without_rule.is_empty() {
        let message = format!(
            "no rule of the constraints can be put into {}",
            names_without_rule.join(", ")
        );
        let help = "a session gets the rules of its user's language (`language`) whose objects it does not name itself";
        problems.push(Problem::warning(message).help(help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::locale::Locale;

    #[test]
    fn the_built_in_rules_have_the_same_objects_in_both_languages() {
        let rules = &RuleSet::built_in().rules;
        let [english, chinese] = [Locale::En, Locale::Zh].map(|language| {
            let rules = rules.iter().filter(|rule| rule.language == language);
            rules.map(|rule| &rule.object).collect::<Vec<_>>()
        });
        assert!(english.len() >= 16);
        assert_eq!(english, chinese);
    }
}
