//! Prompt templates: strict, with holes for long values, so that a prompt can be named without its bytes.
//!
//! A template inserts variables and tests them for emptiness, nothing else. So its rendering depends on *which*
//! variables are empty, never on what they hold: it is rendered once per such pattern, with a hole where each
//! variable goes. Key and request are both made from that one value.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use minijinja::value::{Object, ObjectRepr, Value};
use minijinja::{Environment, UndefinedBehavior};
use regex::Regex;

use super::digest::{Digest, DigestBuilder};
use super::work::Material;

/// The name of a template variable.
pub type Variable = &'static str;

const OPEN: char = '\u{F8F0}';
const CLOSE: char = '\u{F8F1}';
const NAME: &str = "template";

/// A template that compiled and uses only the variables of its stage.
#[derive(Clone)]
pub struct Template {
    text: Arc<str>,
    variables: &'static [Variable],
    environment: Arc<Environment<'static>>,
    skeletons: Arc<Mutex<BTreeMap<Vec<Variable>, Arc<Skeleton>>>>,
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateFault {
    /// 1-based line in the template.
    pub line: usize,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.text)
    }
}

impl Template {
    /// Compiles `text` and proves it: it renders with every variable set and with none, uses none but
    /// `variables`, no filter and no function.
    ///
    /// # Errors
    /// The first fault, with its line.
    pub fn new(text: &str, variables: &'static [Variable]) -> Result<Template, TemplateFault> {
        if let Some(at) = text.find([OPEN, CLOSE]) {
            let line = text.get(..at).unwrap_or("").matches('\n').count() + 1;
            return Err(TemplateFault {
                line,
                message: "the private-use characters U+F8F0 and U+F8F1 cannot stand in a template".into(),
            });
        }
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.add_template_owned(NAME, text.to_owned()).map_err(|e| fault(&e))?;
        only_insertions(text)?;
        let template =
            Template { text: text.into(), variables, environment: Arc::new(environment), skeletons: Arc::default() };
        template.unknown_variable()?;
        template.render(variables)?;
        template.render(&[])?;
        Ok(template)
    }

    /// The template as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn unknown_variable(&self) -> Result<(), TemplateFault> {
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
        let line = self.text.lines().position(|line| line.contains(name.as_str())).map_or(1, |at| at + 1);
        let known = self.variables.join("`, `");
        Err(TemplateFault { line, message: format!("unknown variable `{name}`; this prompt may use `{known}`") })
    }

    /// Puts `values` into the template. What is not given, and what is empty, counts as empty.
    ///
    /// # Errors
    /// A construct whose fault shows only for this pattern of empty values.
    pub fn fill(&self, name: &'static str, values: Vec<(Variable, Material)>) -> Result<Prompt, TemplateFault> {
        let set: Vec<Variable> = values.iter().filter(|(_, value)| !value.is_empty()).map(|(name, _)| *name).collect();
        let skeleton = self.skeleton(set)?;
        Ok(Prompt { name, skeleton, values })
    }

    fn skeleton(&self, set: Vec<Variable>) -> Result<Arc<Skeleton>, TemplateFault> {
        let mut skeletons = self.skeletons.lock().unwrap_or_else(PoisonError::into_inner);
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
            .map(|name| (*name, if set.contains(name) { Value::from_object(Hole(name)) } else { Value::from("") }))
            .collect();
        let compiled = self.environment.get_template(NAME).map_err(|e| fault(&e))?;
        compiled.render(context).map_err(|e| fault(&e))
    }
}

/// A tag: an expression in `{{ }}`, a statement in `{% %}`, a comment, or a block that is not interpreted.
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    let raw = r"\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\}";
    pattern(&format!(
        r"(?s){raw}|\{{#.*?#\}}|\{{\{{[-+]?(?<expression>.*?)[-+]?\}}\}}|\{{%[-+]?(?<statement>.*?)[-+]?%\}}"
    ))
});
/// A variable, or a string, which is how literal braces are written.
static INSERTION: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\s*(?:\w+|"[^"]*"|'[^']*'|\w+\s*(?:\||\().*)\s*$"#));
/// A test of variables for emptiness.
static CONDITION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"^\s*(?:(?:if|elif)\s(?:[\w\s()]|[=!]=|""|'')*|else\s*|endif\s*)$"#));

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
            let line = text.get(..found.start()).unwrap_or("").matches('\n').count() + 1;
            let what = found.as_str().trim();
            let message = format!(
                "`{what}` is not allowed: a template inserts `{{{{ variables }}}}` and tests them with `{{% if %}}`"
            );
            return Err(TemplateFault { line, message });
        }
    }
    Ok(())
}

fn fault(error: &minijinja::Error) -> TemplateFault {
    let detail = error.detail().map(|d| format!(": {d}")).unwrap_or_default();
    TemplateFault { line: error.line().unwrap_or(1), message: format!("{}{detail}", error.kind()) }
}

/// Stands for a non-empty value while a template is rendered.
#[derive(Debug)]
struct Hole(Variable);

impl Object for Hole {
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
enum Piece {
    Literal(String),
    Hole(Variable),
}

#[derive(Debug, PartialEq)]
struct Skeleton {
    pieces: Vec<Piece>,
    digest: Digest,
}

impl Skeleton {
    fn parse(rendered: &str, variables: &[Variable]) -> Skeleton {
        let mut pieces = Vec::new();
        for (index, part) in rendered.split(OPEN).enumerate() {
            let mut literal = part;
            if let Some((name, rest)) = part.split_once(CLOSE).filter(|_| index > 0) {
                pieces.extend(variables.iter().find(|v| **v == name).map(|v| Piece::Hole(v)));
                literal = rest;
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.to_owned()));
            }
        }
        Skeleton { pieces, digest: Digest::of(rendered) }
    }
}

/// A template with its values: a text that need not be assembled to be named.
#[derive(Clone, Debug)]
pub struct Prompt {
    name: &'static str,
    skeleton: Arc<Skeleton>,
    values: Vec<(Variable, Material)>,
}

impl Prompt {
    /// A fixed text without holes.
    pub fn fixed(name: &'static str, text: &str) -> Prompt {
        let skeleton = Skeleton { pieces: vec![Piece::Literal(text.to_owned())], digest: Digest::of(text) };
        Prompt { name, skeleton: Arc::new(skeleton), values: Vec::new() }
    }

    /// What this prompt is called among an action's inputs.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Digest of the text with holes in place of values.
    pub fn skeleton_digest(&self) -> Digest {
        self.skeleton.digest
    }

    /// The values whose holes the text really has, by name.
    pub fn used(&self) -> impl Iterator<Item = (Variable, &Material)> {
        self.values
            .iter()
            .filter(|(name, _)| {
                self.skeleton.pieces.iter().any(|piece| matches!(piece, Piece::Hole(hole) if hole == name))
            })
            .map(|(name, value)| (*name, value))
    }

    /// Bytes of the text that are not values.
    pub fn literal_len(&self) -> usize {
        let literals =
            self.skeleton.pieces.iter().map(|piece| if let Piece::Literal(text) = piece { text.len() } else { 0 });
        literals.sum()
    }

    /// All values handed over, used by the text or not.
    pub fn values(&self) -> &[(Variable, Material)] {
        &self.values
    }

    /// The whole text, each value fetched by `resolve`.
    ///
    /// # Errors
    /// The first that `resolve` raises.
    pub fn text<E>(&self, resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>) -> Result<Arc<str>, E> {
        Ok(self.text_until("", resolve)?.0.into())
    }

    /// The whole text, and how much of it comes before the first hole of `variable`: requests that differ in that
    /// variable alone have so many bytes in common.
    ///
    /// # Errors
    /// The first that `resolve` raises.
    pub fn text_until<E>(
        &self,
        variable: &str,
        resolve: &impl Fn(&Digest) -> Result<Arc<str>, E>,
    ) -> Result<(String, usize), E> {
        /// Most texts fit, so that they do not move while they grow.
        const USUAL: usize = 16 << 10;
        let (mut text, mut split) = (String::with_capacity(USUAL), None);
        for piece in &self.skeleton.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Hole(hole) => {
                    if *hole == variable {
                        split.get_or_insert(text.len());
                    }
                    if let Some((_, value)) = self.values.iter().find(|(name, _)| name == hole) {
                        text.push_str(&value.text(resolve)?);
                    }
                }
            }
        }
        let split = split.unwrap_or(text.len());
        Ok((text, split))
    }

    /// Digest of skeleton and used values together: two prompts of equal digest have equal text.
    pub fn digest(&self) -> Digest {
        let mut builder = DigestBuilder::new("prompt");
        builder.field("skeleton", self.skeleton.digest.0);
        for (name, value) in self.used() {
            builder.field(name, value.digest().0);
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    const VARIABLES: &[Variable] = &["transcript", "previous_summary"];

    fn text(prompt: &Prompt) -> String {
        prompt.text(&|_| Ok::<_, Infallible>("".into())).unwrap().to_string()
    }

    #[test]
    fn inserts_values_and_tests_emptiness() {
        let template = Template::new(
            "{% if previous_summary %}Was: {{ previous_summary }}\n{% endif %}Now: {{ transcript }}!",
            VARIABLES,
        )
        .unwrap();
        let full =
            template.fill("prompt", vec![("transcript", "a{{b}}".into()), ("previous_summary", "p".into())]).unwrap();
        assert_eq!(text(&full), "Was: p\nNow: a{{b}}!");
        let first = template.fill("prompt", vec![("transcript", "a".into()), ("previous_summary", "".into())]).unwrap();
        assert_eq!(text(&first), "Now: a!");
    }

    #[test]
    fn strict_about_variables_filters_and_syntax() {
        let message = |text: &str| Template::new(text, VARIABLES).expect_err("a fault");
        assert_eq!(message("\n{{ transcrip }}").line, 2);
        assert!(message("{{ transcrip }}").message.contains("unknown variable `transcrip`"));
        assert!(message("{{ transcript|upper }}").message.contains("filter"));
        assert!(
            message("{% for c in transcript %}x{% endfor %}").message.contains("`for c in transcript` is not allowed")
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
            Template::new(text, VARIABLES).unwrap().fill("prompt", vec![("transcript", "t".into())]).unwrap().digest()
        };
        assert_eq!(digest("{# note #}Now: {{ transcript }}"), digest("Now: {{ transcript }}"));
        assert_ne!(digest("Now: {{ transcript }}"), digest("now: {{ transcript }}"));
    }
}
