//! Turns a context and a question into work; with the built-in prompt.

use super::Answerer;
use super::exchange::{Exchange, Round, call_ids};
use crate::action::{
    BuiltInTemplate, ComposedValue, INSTRUCTIONS, InputValue, ModelRequest, RequestTurn,
    SEARCHES_LEFT, Template, TemplateFault, Variable, Work,
};
use crate::compress::{ContextRef, SpanText, session_system};
use base::locale::Locale;
use models::{CallResult, Endpoint, Lane, Operation, ToolOffer};
use sessions::transcript::Role;

/// The variables an answer prompt may use.
pub const VARIABLES: &[Variable] = &["context", QUESTION];

/// The variable in which the requests from one context differ.
pub const QUESTION: Variable = "question";

static PROMPT: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/answer.md"),
    include_str!("../../assets/prompts/zh/answer.md"),
    VARIABLES,
);

/// The built-in answer prompt: the context first and the question last, so that all questions to one context begin
/// with the same text and a provider's prompt cache can serve it.
pub fn built_in(locale: Locale) -> Template {
    PROMPT.get(locale)
}

#[derive(Clone, Copy, Debug)]
pub struct AnswerInput<'a> {
    pub context: &'a ContextRef,
    /// The leading system message of the session: it stays after a compaction in every product.
    pub system: Option<&'a str>,
    /// The language of built-in words.
    pub locale: Locale,
    /// The messages after the point, where the pipeline shows them verbatim.
    pub tail: Option<&'a SpanText>,
    pub question: &'a str,
    /// The steps before; empty where there is no search.
    pub exchange: &'a Exchange,
}

/// Why no work could be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// The prompt does not render with the values that happen to be empty here.
    #[error("the answer prompt does not render: line {}: {}", _0.line, _0.message)]
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
    let Some(recovery) = &answerer.recovery else {
        return closed_request(answerer, input).map(Work::request);
    };
    if !answerer.model.is_asked() {
        return closed_request(answerer, input).map(Work::request);
    }
    let ModelRequest {
        mut turns, lane, ..
    } = closed_request(answerer, input)?;
    let prompt = RequestTurn::Text(Role::System, recovery.prompt()?);
    let rounds = &input.exchange.rounds;
    // After the system message of the session, if there is one.
    let is_system = |turn: &RequestTurn| matches!(turn, RequestTurn::Text(Role::System, _));
    turns.insert(usize::from(turns.first().is_some_and(is_system)), prompt);
    turns.extend(turns_of(rounds));
    let is_open = input.exchange.left(recovery) > 0;
    let tools = Some(ToolOffer {
        tools: recovery.tools(),
        is_open,
    });
    // A batch may take a day, and the steps after the first wait for one another.
    let lane = if lane == Lane::Batch && !rounds.is_empty() {
        Lane::Live
    } else {
        lane
    };
    Ok(Work::request(ModelRequest {
        tools,
        lane,
        ..ModelRequest::new(&answerer.model, Operation::UseTools, turns)
    }))
}

/// The conversation after the question: the replies that asked for searches, and the results.
fn turns_of(rounds: &[Round]) -> Vec<RequestTurn> {
    let mut used = 0;
    let mut turns = Vec::new();
    for round in rounds {
        let reply = InputValue::from(&*round.request.reply);
        let texts = round
            .returned
            .iter()
            .map(|returned| returned.text.to_string());
        let calls = round.request.asked.len();
        let results = call_ids(used, calls)
            .zip(texts)
            .map(|(id, text)| CallResult { id, text });
        let results = serde_json::json!(results.collect::<Vec<_>>()).to_string();
        turns.extend([
            RequestTurn::Reply(reply),
            RequestTurn::Results(results.into()),
        ]);
        used += calls;
    }
    turns
}

/// The request without a conversation of searches, as for a closed-book answer. The stand-in for a model gets the
/// results of its searches as a part of the context, because it reads values, not a conversation.
fn closed_request(
    answerer: &Answerer,
    input: &AnswerInput<'_>,
) -> Result<ModelRequest, AnswerFault> {
    let is_asked = answerer.model.is_asked();
    // Rules that stand in for a model read values, not a conversation.
    let system = session_system(input.system.filter(|_| is_asked), input.locale)?;
    let mut turns: Vec<RequestTurn> = system.into_iter().collect();
    let context = match input.context {
        ContextRef::Readable { text } => match input.tail {
            Some(tail) => joined(InputValue::Output(*text), "tail", tail.text.clone()),
            None => InputValue::Output(*text),
        },
        ContextRef::Bound {
            items,
            endpoint: made,
            ..
        } => {
            let asked = &answerer.model.provider.endpoint;
            if made != asked {
                return Err(AnswerFault::OtherProvider {
                    made: made.clone(),
                    asked: asked.clone(),
                });
            }
            turns.push(RequestTurn::Items(InputValue::Output(*items)));
            turns.extend(
                input
                    .tail
                    .map(|tail| RequestTurn::Messages(tail.json.clone())),
            );
            InputValue::from("")
        }
    };
    let context = if is_asked {
        context
    } else {
        with_excerpts(context, &input.exchange.excerpts_text())
    };
    // No template can insert the instructions: only rules that stand in for a model read them.
    let instructions = (INSTRUCTIONS, answerer.template.text().into());
    let mut values = vec![
        ("context", context),
        ("question", input.question.into()),
        instructions,
    ];
    if let Some(recovery) = answerer.recovery.as_ref().filter(|_| !is_asked) {
        // Rules have one query for a question: to ask again would return the same.
        let left = if input.exchange.rounds.is_empty() {
            input.exchange.left(recovery)
        } else {
            0
        };
        values.push((SEARCHES_LEFT, left.to_string().into()));
    }
    turns.push(RequestTurn::Text(
        Role::User,
        answerer.template.fill("prompt", values)?,
    ));
    Ok(ModelRequest::new(
        &answerer.model,
        Operation::Generate,
        turns,
    ))
}

/// A context followed by the results of searches; the context alone if there are none.
pub fn with_excerpts(context: InputValue, excerpts: &str) -> InputValue {
    joined(context, "found", excerpts.into())
}

/// A context followed by another text; one of the two alone if the other is empty.
fn joined(context: InputValue, name: &'static str, text: InputValue) -> InputValue {
    if text.is_empty() {
        context
    } else if context.is_empty() {
        text
    } else {
        ComposedValue::builder()
            .raw("kept", context)
            .literal("\n\n")
            .raw(name, text)
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Digest;
    use crate::answer::AnswererName;
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
            key_place: None,
        };
        let reference = ModelRef {
            provider: "p".into(),
            model: model.into(),
        };
        Answerer {
            name: AnswererName("a".into()),
            model: ModelUse {
                reference,
                provider: Arc::new(provider),
                settings: Settings::default(),
                lane: Default::default(),
            },
            template: Template::new("C:{{ context }} Q:{{ question }}", VARIABLES)
                .expect("compiles"),
            recovery: None,
        }
    }

    fn turns(
        context: &ContextRef,
        tail: Option<&SpanText>,
    ) -> Result<Vec<RequestTurn>, AnswerFault> {
        let exchange = &Exchange::default();
        let input = AnswerInput {
            system: None,
            locale: Locale::En,
            context,
            tail,
            question: "why?",
            exchange,
        };
        prepare(&answerer("there", "m"), &input).map(|work| match work {
            Work::Ask(request) => request.turns,
            _ => Vec::new(),
        })
    }

    fn prompt_text(turn: &RequestTurn) -> String {
        let RequestTurn::Text(Role::User, prompt) = turn else {
            panic!("a prompt")
        };
        prompt
            .text(&|_| Ok::<_, Infallible>("S".into()))
            .expect("resolves")
            .to_string()
    }

    fn bound(endpoint: &str) -> ContextRef {
        ContextRef::Bound {
            items: Digest::hash("[1]"),
            text: None,
            endpoint: endpoint.into(),
            model: "m0".into(),
        }
    }

    #[test]
    fn a_readable_context_and_the_tail_stand_in_one_prompt() {
        let context = ContextRef::Readable {
            text: Digest::hash("S"),
        };
        let tail = SpanText::from_messages(&[Message::text(Role::User, "go on")]);
        assert_eq!(
            prompt_text(&turns(&context, None).expect("work")[0]),
            "C:S Q:why?"
        );
        assert_eq!(
            prompt_text(&turns(&context, Some(&tail)).expect("work")[0]),
            "C:S\n\n[user]\ngo on Q:why?"
        );
        let empty = ContextRef::Readable {
            text: Digest::hash(""),
        };
        assert_eq!(
            prompt_text(&turns(&empty, Some(&tail)).expect("work")[0]),
            "C:[user]\ngo on Q:why?"
        );
    }

    #[test]
    fn a_bound_context_goes_before_the_question_and_to_its_maker_alone() {
        let turns_there = turns(&bound("there"), None).expect("work");
        let [RequestTurn::Items(items), question] = turns_there.as_slice() else {
            panic!("two turns")
        };
        assert_eq!(items.digest(), Digest::hash("[1]"));
        assert_eq!(prompt_text(question), "C: Q:why?");
        assert!(matches!(
            turns(&bound("elsewhere"), None),
            Err(AnswerFault::OtherProvider { .. })
        ));
    }

    #[test]
    fn questions_to_one_context_differ_only_at_the_end() {
        for locale in [Locale::En, Locale::Zh] {
            let text = |question: &str| {
                let values = vec![
                    ("context", "C".repeat(500).into()),
                    ("question", question.into()),
                ];
                let prompt = built_in(locale).fill("prompt", values).expect("fills");
                prompt
                    .text(&|_| Ok::<_, Infallible>("".into()))
                    .expect("text")
                    .to_string()
            };
            let (one, two) = (text("Which port?"), text("Why that port?"));
            let common = one
                .bytes()
                .zip(two.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            assert!(
                one.len() - common <= "Which port?\n".len() + 1,
                "{common} of {}",
                one.len()
            );
        }
    }

    #[test]
    fn an_empty_context_is_not_quoted_as_one() {
        for locale in [Locale::En, Locale::Zh] {
            let prompt = built_in(locale).fill(
                "prompt",
                vec![("context", "".into()), ("question", "q".into())],
            );
            let text = prompt
                .expect("fills")
                .text(&|_| Ok::<_, Infallible>("".into()))
                .expect("text");
            assert!(!text.contains("<context>"));
        }
    }
}
