//! Prompt templates: a strict subset of minijinja, with placeholders in place of long values.
//!
//! A template can insert variables and test whether they are empty, nothing else. Its rendering therefore depends on
//! *which* variables are empty and never on their values. It is rendered once for each such set, with a placeholder
//! where each variable goes (`Skeleton`). A key is made from the skeleton's digest and the digests of the values, without
//! the bytes of a transcript; the request is assembled from the same two, so key and request cannot disagree.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use minijinja::value::{Object, ObjectRepr, Value};
use minijinja::{Environment, UndefinedBehavior};
use regex::Regex;

use super::value::InputValue;
use base::locale::Locale;
use base::text::line_and_column;
use base::threads::lock;
use store::{Digest, DigestBuilder};

/// The value that gives the built-in model the text of a prompt as its author wrote it, without the values of its
/// variables.
pub const INSTRUCTIONS: Variable = "instructions";

/// The value that says how many searches of the history the built-in model may still ask for.
pub const SEARCHES_LEFT: Variable = "searches_left";

/// The name of a template variable.
pub type Variable = &'static str;

const OPEN: char = '\u{F8F0}';
const CLOSE: char = '\u{F8F1}';
const NAME: &str = "template";

/// A compiled template that uses only the variables of its stage.
#[derive(Clone)]
pub struct Template {
    text: Arc<str>,
    /// Its file, relative to the pipeline; `None` for a built-in one.
    pub path: Option<String>,
    variables: &'static [Variable],
    environment: Arc<Environment<'static>>,
    skeletons: Arc<Mutex<BTreeMap<Vec<Variable>, Arc<Skeleton>>>>,
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateFault {
    /// Line in the template, from 1.
    pub line: usize,
    /// What is wrong and what was expected.
    pub message: String,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.text)
    }
}

impl Template {
    /// Compiles `text` and renders it with all variables and with none, so that a faulty template is reported when the
    /// pipeline is read. Only `variables` are allowed, and no filter or function.
    pub fn new(text: &str, variables: &'static [Variable]) -> Result<Template, TemplateFault> {
        if let Some(at) = text.find([OPEN, CLOSE]) {
            let (line, _) = line_and_column(text, at);
            return Err(TemplateFault {
                line,
                message:
                    "the private-use characters U+F8F0 and U+F8F1 are not allowed in a template"
                        .into(),
            });
        }
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment
            .add_template_owned(NAME, text.to_owned())
            .map_err(|e| fault(&e))?;
        only_insertions(text)?;
        let template = Template {
            text: text.into(),
            path: None,
            variables,
            environment: Arc::new(environment),
            skeletons: Arc::default(),
        };
        template.check_variables()?;
        template.render(variables)?;
        template.render(&[])?;
        Ok(template)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    fn check_variables(&self) -> Result<(), TemplateFault> {
        let compiled = self.environment.get_template(NAME).map_err(|e| fault(&e))?;
        let mut unknown: Vec<String> = compiled
            .undeclared_variables(false)
            .into_iter()
            .filter(|name| !self.variables.contains(&name.as_str()))
            .collect();
        unknown.sort();
        let Some(name) = unknown.first() else {
            return Ok(());
        };
        let line = self
            .text
            .lines()
            .position(|line| line.contains(name.as_str()))
            .map_or(1, |at| at + 1);
        let known = self.variables.join("`, `");
        Err(TemplateFault {
            line,
            message: format!("unknown variable `{name}`; this prompt may use `{known}`"),
        })
    }

    /// Fills in `values`. A variable that is not given is empty.
    ///
    /// # Errors
    /// A fault in a branch that is only rendered for this set of empty values.
    pub fn fill(
        &self,
        name: &'static str,
        values: Vec<(Variable, InputValue)>,
    ) -> Result<Prompt, TemplateFault> {
        let set: Vec<Variable> = values
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, _)| *name)
            .collect();
        let skeleton = self.skeleton(set)?;
        Ok(Prompt {
            name,
            skeleton,
            values,
        })
    }

    fn skeleton(&self, set: Vec<Variable>) -> Result<Arc<Skeleton>, TemplateFault> {
        let mut skeletons = lock(&self.skeletons);
        if let Some(known) = skeletons.get(&set) {
            return Ok(known.clone());
        }
        let skeleton = Arc::new(Skeleton::parse(&self.render(&set)?, self.variables));
        skeletons.insert(set, skeleton.clone());
        Ok(skeleton)
    }

    fn render(&self, set: &[Variable]) -> Result<String, TemplateFault> {
        let context: BTreeMap<&str, Value> = self
            .variables
            .iter()
            .map(|name| {
                (
                    *name,
                    if set.contains(name) {
                        Value::from_object(Placeholder(name))
                    } else {
                        Value::from("")
                    },
                )
            })
            .collect();
        let compiled = self.environment.get_template(NAME).map_err(|e| fault(&e))?;
        compiled.render(context).map_err(|e| fault(&e))
    }
}

/// A template of the program in each of its languages, compiled at first use.
#[derive(Debug)]
pub struct BuiltInTemplate {
    english: &'static str,
    chinese: &'static str,
    variables: &'static [Variable],
    compiled: [OnceLock<Template>; 2],
}

impl BuiltInTemplate {
    pub const fn new(
        english: &'static str,
        chinese: &'static str,
        variables: &'static [Variable],
    ) -> BuiltInTemplate {
        BuiltInTemplate {
            english,
            chinese,
            variables,
            compiled: [const { OnceLock::new() }; 2],
        }
    }

    pub fn get(&self, locale: Locale) -> Template {
        let [english, chinese] = &self.compiled;
        let (compiled, text) = match locale {
            Locale::En => (english, self.english),
            Locale::Zh => (chinese, self.chinese),
        };
        // The texts are our own and a test compiles each: this cannot fail on anything a user sends.
        let template = compiled.get_or_init(|| {
            Template::new(text, self.variables).unwrap_or_else(|fault| unreachable!("{fault}"))
        });
        template.clone()
    }
}

/// A tag: an expression in `{{ }}`, a statement in `{% %}`, a comment, or a block that is not interpreted.
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    let raw = r"\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\}";
    pattern(&format!(
        r"(?s){raw}|\{{#.*?#\}}|\{{\{{[-+]?(?<expression>.*?)[-+]?\}}\}}|\{{%[-+]?(?<statement>.*?)[-+]?%\}}"
    ))
});
/// A variable, or a string, which is how literal braces are written. A bare filter passes too: there is none, and the
/// engine's own error names it. Arguments do not: they would be computed before that error.
static INSERTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\s*(?:\w+|"[^"]*"|'[^']*'|\w+\s*\|\s*\w+)\s*$"#));
/// A test of variables for emptiness.
static CONDITION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r#"^\s*(?:(?:if|elif)\s(?:[\w\s()]|[=!]=|""|'')*|else\s*|endif\s*)$"#)
});

#[expect(clippy::expect_used, reason = "three constants, compiled by the tests")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// Refuses everything but insertions and tests for emptiness. Loops and assignments could make a short template render
/// to gigabytes, and would make a rendering depend on more than which variables are empty.
fn only_insertions(text: &str) -> Result<(), TemplateFault> {
    for tag in TAG.captures_iter(text) {
        let (found, allowed) = match (tag.name("expression"), tag.name("statement")) {
            (Some(expression), _) => (expression, &INSERTION),
            (_, Some(statement)) => (statement, &CONDITION),
            _ => continue,
        };
        if !allowed.is_match(found.as_str()) {
            let (line, _) = line_and_column(text, found.start());
            let tag_text = found.as_str().trim();
            let message = format!(
                "`{tag_text}` is not allowed: a template inserts `{{{{ variables }}}}` and tests them with `{{% if %}}`"
            );
            return Err(TemplateFault { line, message });
        }
    }
    Ok(())
}

fn fault(error: &minijinja::Error) -> TemplateFault {
    let detail = error.detail().map(|d| format!(": {d}")).unwrap_or_default();
    TemplateFault {
        line: error.line().unwrap_or(1),
        message: format!("{}{detail}", error.kind()),
    }
}

/// Stands in for a non-empty value while a template is rendered.
#[derive(Debug)]
struct Placeholder(Variable);

impl Object for Placeholder {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        true
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{OPEN}{}{CLOSE}", self.0)
    }
}

#[derive(Debug, PartialEq)]
enum TemplateSegment {
    Literal(String),
    Placeholder(Variable),
}

/// A rendered template with placeholders for its values.
#[derive(Debug, PartialEq)]
struct Skeleton {
    segments: Vec<TemplateSegment>,
    digest: Digest,
}

impl Skeleton {
    fn parse(rendered: &str, variables: &[Variable]) -> Skeleton {
        let mut segments = Vec::new();
        for (index, part) in rendered.split(OPEN).enumerate() {
            let mut literal = part;
            if let Some((name, rest)) = part.split_once(CLOSE).filter(|_| index > 0) {
                segments.extend(
                    variables
                        .iter()
                        .find(|v| **v == name)
                        .map(|v| TemplateSegment::Placeholder(v)),
                );
                literal = rest;
            }
            if !literal.is_empty() {
                segments.push(TemplateSegment::Literal(literal.to_owned()));
            }
        }
        Skeleton {
            segments,
            digest: Digest::hash(rendered),
        }
    }
}

/// A template with its values. Its digest is known without assembling the text.
#[derive(Clone, Debug)]
pub struct Prompt {
    name: &'static str,
    skeleton: Arc<Skeleton>,
    values: Vec<(Variable, InputValue)>,
}

impl Prompt {
    /// A text without variables.
    pub fn fixed(name: &'static str, text: &str) -> Prompt {
        let skeleton = Skeleton {
            segments: vec![TemplateSegment::Literal(text.to_owned())],
            digest: Digest::hash(text),
        };
        Prompt {
            name,
            skeleton: Arc::new(skeleton),
            values: Vec::new(),
        }
    }

    /// Its name among an action's inputs.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn skeleton_digest(&self) -> Digest {
        self.skeleton.digest
    }

    /// The values that the text contains.
    pub fn used(&self) -> impl Iterator<Item = (Variable, &InputValue)> {
        self.values
            .iter()
            .filter(|(name, _)| {
                self.skeleton
                    .segments
                    .iter()
                    .any(|segment| matches!(segment, TemplateSegment::Placeholder(variable) if variable == name))
            })
            .map(|(name, value)| (*name, value))
    }

    /// Length in bytes of the text around the values.
    pub fn literal_len(&self) -> usize {
        let literals = self.skeleton.segments.iter().map(|segment| {
            if let TemplateSegment::Literal(text) = segment {
                text.len()
            } else {
                0
            }
        });
        literals.sum()
    }

    /// All values, whether or not the text contains them.
    pub fn values(&self) -> &[(Variable, InputValue)] {
        &self.values
    }

    /// The whole text; `resolve` fetches the values that are not in memory.
    ///
    /// # Errors
    /// The first error of `resolve`.
    pub fn text<E>(
        &self,
        resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>,
    ) -> Result<Arc<str>, E> {
        Ok(self.text_until("", resolve)?.0.into())
    }

    /// The whole text, and the length of the prefix before `variable`, or before the part of a value with that name:
    /// providers cache by prefix.
    ///
    /// # Errors
    /// The first error of `resolve`.
    pub fn text_until<E>(
        &self,
        variable: &str,
        resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>,
    ) -> Result<(String, usize), E> {
        /// Most texts fit, which avoids reallocation.
        const CAPACITY: usize = 16 << 10;
        let (mut text, mut split) = (String::with_capacity(CAPACITY), None);
        for segment in &self.skeleton.segments {
            match segment {
                TemplateSegment::Literal(literal) => text.push_str(literal),
                TemplateSegment::Placeholder(placeholder) => {
                    if *placeholder == variable {
                        split.get_or_insert(text.len());
                    }
                    if let Some((_, value)) =
                        self.values.iter().find(|(name, _)| name == placeholder)
                    {
                        let (value, until) = value.text_until(variable, resolve)?;
                        if let Some(until) = until {
                            split.get_or_insert(text.len() + until);
                        }
                        text.push_str(&value);
                    }
                }
            }
        }
        let split = split.unwrap_or(text.len());
        Ok((text, split))
    }

    /// Digest of the skeleton and the used values: prompts with equal digests have equal texts.
    pub fn digest(&self) -> Digest {
        let mut builder = DigestBuilder::new("prompt");
        builder.field("skeleton", self.skeleton.digest.0);
        for (name, value) in self.used() {
            builder.field(name, value.digest().0);
        }
        builder.finish()
    }
}

/// Splits a text at the last blank line in its first `shared` bytes, which several requests share, because a provider's
/// prompt cache ends at a turn. Dialects join turns of one speaker by a blank line again.
pub fn at_paragraph(text: &str, shared: usize) -> (Option<&str>, &str) {
    const BLANK_LINE: &str = "\n\n";
    let end = text
        .get(..shared)
        .filter(|shared| shared.len() < text.len())
        .and_then(|text| text.rfind(BLANK_LINE));
    match end.map(|end| (&text[..end], &text[end + BLANK_LINE.len()..])) {
        Some((before, after)) if !before.trim().is_empty() => (Some(before), after),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const VARIABLES: &[Variable] = &["transcript", "previous_summary"];

    fn text(prompt: &Prompt) -> String {
        prompt
            .text(&|_| Ok::<_, Infallible>("".into()))
            .unwrap()
            .to_string()
    }

    #[test]
    fn inserts_values_and_tests_emptiness() {
        let template = Template::new(
            "{% if previous_summary %}Was: {{ previous_summary }}\n{% endif %}Now: {{ transcript }}!",
            VARIABLES,
        )
        .unwrap();
        let full = template
            .fill(
                "prompt",
                vec![
                    ("transcript", "a{{b}}".into()),
                    ("previous_summary", "p".into()),
                ],
            )
            .unwrap();
        assert_eq!(text(&full), "Was: p\nNow: a{{b}}!");
        let first = template
            .fill(
                "prompt",
                vec![("transcript", "a".into()), ("previous_summary", "".into())],
            )
            .unwrap();
        assert_eq!(text(&first), "Now: a!");
    }

    #[test]
    fn strict_about_variables_filters_and_syntax() {
        let message = |text: &str| Template::new(text, VARIABLES).expect_err("a fault");
        assert_eq!(message("\n{{ transcrip }}").line, 2);
        assert!(
            message("{{ transcrip }}")
                .message
                .contains("unknown variable `transcrip`")
        );
        assert!(message("{{ transcript|upper }}").message.contains("filter"));
        assert!(
            message("{% for c in transcript %}x{% endfor %}")
                .message
                .contains("`for c in transcript` is not allowed")
        );
        assert_eq!(message("a\nb {{").line, 2);
    }

    #[test]
    fn whatever_could_grow_is_refused_where_it_stands() {
        for grows in [
            "{% set a = 'x' %}",
            "{{ 'x' * 1000000000 }}",
            "{{ transcript ~ transcript }}",
            "{% if 'x' * 1000000000 %}{% endif %}",
            "{{ transcript|upper('x' * 1000000000) }}",
            "{{ range('x' * 1000000000) }}",
            "{% macro a() %}{% endmacro %}",
            "{% for a in [1, 2] %}{% endfor %}",
        ] {
            let fault = Template::new(&format!("one\ntwo {grows}"), VARIABLES).expect_err(grows);
            assert_eq!(fault.line, 2, "{grows}: {fault}");
        }
        for sound in [
            "{{ '{{' }} {% raw %}{% for %}{{ x * 2 }}{% endraw %}{# {% set %} #}",
            "{% if not (transcript or previous_summary) -%} a {%- elif transcript != '' %}b{% else %}c{% endif %}",
        ] {
            Template::new(sound, VARIABLES).expect(sound);
        }
    }

    #[test]
    fn a_comment_changes_no_digest() {
        let digest = |text: &str| {
            Template::new(text, VARIABLES)
                .unwrap()
                .fill("prompt", vec![("transcript", "t".into())])
                .unwrap()
                .digest()
        };
        assert_eq!(
            digest("{# note #}Now: {{ transcript }}"),
            digest("Now: {{ transcript }}")
        );
        assert_ne!(
            digest("Now: {{ transcript }}"),
            digest("now: {{ transcript }}")
        );
    }
}
