//! Context and question to work.

use super::spec::Answerer;
use crate::action::{ComposedValue, INSTRUCTIONS, InputValue, ModelRequest, RequestTurn, TemplateFault, Work};
use crate::compress::{ContextRef, SpanText};
use models::{Endpoint, Operation};
use sessions::transcript::Role;

#[derive(Clone, Copy, Debug)]
pub struct AnswerInput<'a> {
    pub context: &'a ContextRef,
    /// The messages after the point, where the pipeline shows them verbatim.
    pub tail: Option<&'a SpanText>,
    pub question: &'a str,
}

/// Why no work could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// The prompt does not render with the values that happen to be empty here.
    #[error("the answer prompt does not render: line {}: {}", .0.line, .0.message)]
    Template(#[from] TemplateFault),
    /// The context belongs to another provider.
    #[error(
        "a context made at `{made}` can be read there only, but the answerer asks `{asked}`; \
         use an answerer of the same provider"
    )]
    OtherProvider {
        /// Where the context was made.
        made: Endpoint,
        /// Where the answerer would take it.
        asked: Endpoint,
    },
}

/// The work of answering one question.
///
/// # Errors
/// A context bound to another provider; a prompt that fails for just this pattern of empty values.
pub fn prepare(answerer: &Answerer, input: &AnswerInput<'_>) -> Result<Work, AnswerFault> {
    let mut turns = Vec::new();
    let context = match input.context {
        ContextRef::Readable { text } => with_tail(InputValue::Output(*text), input.tail),
        ContextRef::Bound { items, endpoint: made, .. } => {
            let asked = &answerer.model.provider.endpoint;
            if made != asked {
                return Err(AnswerFault::OtherProvider { made: made.clone(), asked: asked.clone() });
            }
            turns.push(RequestTurn::Items(InputValue::Output(*items)));
            turns.extend(input.tail.map(|tail| RequestTurn::Messages(tail.json.clone())));
            InputValue::from("")
        }
    };
    // No template can insert the instructions: only rules that stand in for a model read them.
    let instructions = (INSTRUCTIONS, answerer.template.text().into());
    let values = vec![("context", context), ("question", input.question.into()), instructions];
    turns.push(RequestTurn::Text(Role::User, answerer.template.fill("prompt", values)?));
    Ok(Work::request(ModelRequest::new(&answerer.model, Operation::Generate, turns)))
}

fn with_tail(context: InputValue, tail: Option<&SpanText>) -> InputValue {
    match tail.filter(|tail| !tail.text.is_empty()) {
        None => context,
        Some(tail) if context.is_empty() => tail.text.clone(),
        Some(tail) => {
            ComposedValue::builder().json("kept", context).literal("\n\n").json("tail", tail.text.clone()).build()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Digest, Template};
    use crate::answer::{AnswererName, VARIABLES};
    use models::{Dialect, Limits, ModelRef, ModelUse, ProviderSpec, Settings};
    use sessions::transcript::Message;
    use std::convert::Infallible;
    use std::sync::Arc;

    fn answerer(endpoint: &str, model: &str) -> Answerer {
        let provider = ProviderSpec {
            name: "p".into(),
            dialect: Dialect::Anthropic,
            base_url: String::new(),
            api_key: None,
            endpoint: endpoint.into(),
            limits: Limits::default(),
            lane: Default::default(),
        };
        let reference = ModelRef { provider: "p".into(), model: model.into() };
        Answerer {
            name: AnswererName("a".into()),
            model: ModelUse {
                reference,
                provider: Arc::new(provider),
                settings: Settings::default(),
                lane: Default::default(),
            },
            template: Template::new("C:{{ context }} Q:{{ question }}", VARIABLES).expect("compiles"),
            prompt_path: None,
            truncated_replies: Default::default(),
        }
    }

    fn turns(context: &ContextRef, tail: Option<&SpanText>) -> Result<Vec<RequestTurn>, AnswerFault> {
        let input = AnswerInput { context, tail, question: "why?" };
        prepare(&answerer("there", "m"), &input).map(|work| match work {
            Work::Ask(request) => request.turns,
            _ => Vec::new(),
        })
    }

    fn prompt_text(turn: &RequestTurn) -> String {
        let RequestTurn::Text(Role::User, prompt) = turn else { panic!("a prompt") };
        prompt.text(&|_| Ok::<_, Infallible>("S".into())).expect("resolves").to_string()
    }

    fn bound(endpoint: &str) -> ContextRef {
        ContextRef::Bound { items: Digest::of("[1]"), text: None, endpoint: endpoint.into(), model: "m0".into() }
    }

    #[test]
    fn a_readable_context_and_the_tail_stand_in_one_prompt() {
        let context = ContextRef::Readable { text: Digest::of("S") };
        let tail = SpanText::of(&[Message::text(Role::User, "go on")]);
        assert_eq!(prompt_text(&turns(&context, None).expect("work")[0]), "C:S Q:why?");
        assert_eq!(prompt_text(&turns(&context, Some(&tail)).expect("work")[0]), "C:S\n\n[user]\ngo on Q:why?");
        let empty = ContextRef::Readable { text: Digest::of("") };
        assert_eq!(prompt_text(&turns(&empty, Some(&tail)).expect("work")[0]), "C:[user]\ngo on Q:why?");
    }

    #[test]
    fn a_bound_context_goes_before_the_question_and_to_its_maker_alone() {
        let turns_there = turns(&bound("there"), None).expect("work");
        let [RequestTurn::Items(items), question] = turns_there.as_slice() else { panic!("two turns") };
        assert_eq!(items.digest(), Digest::of("[1]"));
        assert_eq!(prompt_text(question), "C: Q:why?");
        assert!(matches!(turns(&bound("elsewhere"), None), Err(AnswerFault::OtherProvider { .. })));
    }
}
