//! Every kind of call that an adapter can be given.

use std::sync::Arc;

use base::message::{Message, Role, ToolCall};
use base::units::Tokens;
use compeval_models::{
    ApiKeyVariable, Call, CallResult, Dialect, Limits, Operation, OutputSchema, ProviderSpec,
    Settings, Tool, ToolOffer, Turn,
};
use serde_json::json;

pub fn spec(dialect: Dialect, base_url: &str) -> ProviderSpec {
    ProviderSpec {
        name: "sim".into(),
        dialect,
        base_url: base_url.to_owned(),
        api_key: Some(ApiKeyVariable("SIM_KEY".into())),
        endpoint: "sim".into(),
        limits: Limits {
            max_in_flight: Some(64),
            ..Limits::default()
        },
        lane: Default::default(),
        key_place: None,
    }
}

pub fn say(role: Role, text: &str) -> Turn {
    Turn::Text {
        role,
        text: text.into(),
    }
}

pub fn ask(text: &str) -> Call {
    Call {
        model: "m-1".into(),
        operation: Operation::Generate,
        turns: vec![say(Role::User, text)],
        instructions: None,
        settings: Settings::default(),
        schema: None,
        tools: None,
        prefix_uses: 2,
    }
}

pub fn verdict() -> Arc<OutputSchema> {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["score"],
        "properties": {"score": {"type": "integer"}}});
    Arc::new(OutputSchema {
        name: "verdict",
        schema,
    })
}

pub fn recorded() -> Arc<[Message]> {
    let calls = vec![
        ToolCall::new("c1", "read", r#"{"path":"a.rs"}"#),
        ToolCall::new("c2", "run", "not json"),
    ];
    Arc::new([
        Message::text(Role::System, "You are careful."),
        Message::text(Role::User, "My locker code is 4711."),
        Message {
            tool_calls: calls,
            ..Message::text(Role::Assistant, "")
        },
        Message::result("c1", ""),
        Message::text(Role::Assistant, "Noted."),
        Message::result("c2", "late"),
        Message::text(Role::System, "The date changed."),
    ])
}

/// A session replayed with its tools declared, before a demand for its summary.
pub fn with_recorded_tools() -> Call {
    let declared = [
        json!({"type": "function", "function": {"name": "read", "description": "", "parameters": {}}}),
        json!({"name": "run", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}),
    ];
    let turns = vec![
        Turn::Messages(recorded()),
        say(Role::User, "Write the summary."),
    ];
    Call {
        turns,
        tools: ToolOffer::from_recorded(&declared),
        ..ask("")
    }
}

/// One call of each kind: plain, with a schema, replayed, with system texts, with the tools of a session.
pub fn generations() -> Vec<Call> {
    let settings = Settings {
        max_output_tokens: Some(Tokens(400)),
        temperature: None,
        effort: Some("low".into()),
    };
    let tuned = Settings {
        temperature: Some(0.0),
        ..settings.clone()
    };
    let replay = vec![
        Turn::Messages(recorded()),
        say(Role::User, "What is my locker code?"),
    ];
    let system = vec![
        say(Role::System, "Grade."),
        say(Role::User, &"context ".repeat(3000)),
        say(Role::User, "q"),
    ];
    vec![
        ask("hello"),
        Call {
            schema: Some(verdict()),
            settings: settings.clone(),
            ..ask("grade this")
        },
        Call {
            turns: replay,
            settings: tuned,
            ..ask("")
        },
        Call {
            turns: system,
            settings,
            ..ask("")
        },
        with_recorded_tools(),
    ]
}

/// The first and the last step of a conversation with a tool; `reply` is the model's reply in between.
pub fn steps(reply: &str) -> [Call; 2] {
    let parameters = json!({"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]});
    let tools: Arc<[Tool]> = Arc::new([Tool {
        name: "search".into(),
        description: "Searches.".into(),
        parameters,
    }]);
    let offer = |is_open| {
        Some(ToolOffer {
            tools: tools.clone(),
            is_open,
        })
    };
    let first = Call {
        operation: Operation::UseTools,
        tools: offer(true),
        ..ask("Which port?")
    };
    let results: Arc<[CallResult]> = Arc::new([CallResult {
        id: "call_1".into(),
        text: "8081".into(),
    }]);
    let turns = first
        .turns
        .iter()
        .cloned()
        .chain([Turn::Reply(reply.into()), Turn::Results(results)])
        .collect();
    let last = Call {
        turns,
        tools: offer(false),
        ..first.clone()
    };
    [first, last]
}

pub const OPENAI_ITEMS: &str = r#"[{"id":"msg_0","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"My locker code is 4711."}]}, {"id":"cmp_1" ,"type":"compaction","encrypted_content":"gA\u0041"}]"#;

pub const ANTHROPIC_ITEMS: &str =
    r#"[{"type":"compaction", "content":"The code is 4711.","signature":"E\u0075YB"}]"#;

/// A question after the stored `items` of a compaction.
pub fn from_items(items: &str) -> Call {
    let turns = vec![
        say(Role::System, "Be brief."),
        Turn::Items(items.into()),
        say(Role::User, "Which code?"),
    ];
    Call { turns, ..ask("") }
}

/// A conversation that is compacted for the second time.
pub fn compaction(operation: Operation, items: &str) -> Call {
    let turns = vec![Turn::Items(items.into()), Turn::Messages(recorded())];
    Call {
        turns,
        operation,
        instructions: Some("Keep every code.".into()),
        ..ask("")
    }
}
