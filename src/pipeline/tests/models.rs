//! Faults in providers, models and keys; who may read what.

use insta::assert_snapshot;

use super::{Project, STAGES, listed, render, warnings_of};

fn answering_by(model: &str) -> String {
    STAGES.replacen("model = \"lexical\"", &format!("model = \"{model}\""), 1)
}

const OPAQUE: &str = r#"
[[compress]]
name = "sealed"
strategy = "opaque"
model = "openai-responses/m"
"#;

#[test]
fn mistakes_are_placed_with_what_was_expected() {
    let opaque = |judge_context: bool, model: &str| {
        Project::new(&format!(
            "[pipeline]\njudge_context = {judge_context}\n{OPAQUE}{}",
            answering_by(model)
        ))
    };
    let local = |keys: &str| Project::new(&format!("[providers.local]\n{keys}\n{STAGES}"));
    let projects = [
        Project::new(&answering_by("opnai/gpt-5.2")),
        Project::new(&answering_by("gpt-5.2")),
        local("kind = \"openai_chat\""),
        local("kind = \"openai-chat\"\nbase_url = \"localhost:8080/v1\""),
        local("kind = \"openai-chat\"\nbase_url = \"http://h\"\nidentity = \"lexical\""),
        Project::new(&answering_by("openai/gpt-5.2")).asking(|request| request.needs_keys = true),
        opaque(true, "openai-responses/m"),
        opaque(false, "openai/m"),
        Project::new(STAGES).asking(|request| request.overrides.model = Some("olama/x".into())),
    ];
    assert_snapshot!(listed(projects), @r#"
    pipeline.toml:8:9: unknown provider `opnai` in `opnai/gpt-5.2` -> did you mean `openai`? A provider of your own is declared by [providers.opnai]
    pipeline.toml:8:9: the model `gpt-5.2` has no provider -> write PROVIDER/MODEL; providers: `anthropic`, `lexical`, `ollama`, `openai`, `openai-responses`, `openrouter`
    pipeline.toml:2:8: unknown kind `openai_chat` -> did you mean `openai-chat`?
    pipeline.toml:3:12: base_url `localhost:8080/v1` has no scheme -> write https://localhost:8080/v1, or http://localhost:8080/v1 for a local server
    pipeline.toml:4:12: `lexical` cannot be an identity -> an identity is what cache keys call this endpoint: any name of your own
    pipeline.toml:8:9: OPENAI_API_KEY is not set, and provider `openai` needs the key in it -> export OPENAI_API_KEY=…, or name another variable: api_key_env in [providers.openai]
    pipeline.toml:2:1: judge_context = true does not go with the opaque method `sealed` -> the judge cannot be shown an opaque context, and a missing context would reveal the method. With judge_context = false under [pipeline] the judge sees no context of any method: every grade is computed again, the judge can no longer check an answer against the context, and new grades do not compare with old ones. Or leave the method out by --methods
    pipeline.toml:6:12: `agent` (openai/m) cannot read the opaque items of `sealed` -> only openai-responses can: name an answerer of that provider by answerers = ["…"] in this table
    unknown provider `olama` in `olama/x` -> did you mean `ollama`? A provider of your own is declared by [providers.olama]
    "#);
}

#[test]
fn a_missing_key_is_only_a_warning_where_none_is_needed() {
    let opened = Project::new(&answering_by("openai/gpt-5.2")).opened();
    assert_eq!(
        (opened.missing_keys.0.len(), opened.missing_keys.errors()),
        (1, 0)
    );
}

#[test]
fn a_key_is_asked_for_only_of_providers_that_are_used() {
    let text = format!(
        "[providers.other]\nkind = \"openai-chat\"\nbase_url = \"https://h/v1\"\napi_key_env = \"OTHER\"\n{STAGES}"
    );
    let strict = |text: &str| Project::new(text).asking(|request| request.needs_keys = true);
    assert!(strict(&text).open().is_ok());
    let methods = r#"
[[compress]]
name = "paid"
strategy = "anchored-iterative"
model = "openai/m"
answerers = ["paid"]
[[answer]]
name = "paid"
model = "anthropic/m"
"#;
    let both = strict(&format!(
        "{}{methods}",
        STAGES.replace(
            "strategy = \"full\"",
            "strategy = \"full\"\nanswerers = [\"agent\"]"
        )
    ));
    assert_eq!(both.messages().len(), 2);
    assert!(
        both.asking(|request| request.selection.methods = Some(vec!["full".into()]))
            .open()
            .is_ok()
    );
}

#[test]
fn a_key_written_into_the_file_is_never_shown() {
    let text = format!(
        "[providers.local]\nkind = \"openai-chatt\"\nbase_url = \"https://user:hunter2@h/v1\"\napi_key = \"sk-secret-1\"\napi_key_env = \"sk-secret-2\"\n{STAGES}"
    );
    let shown = Project::new(&text).refusal();
    assert!(
        !shown.contains("secret") && !shown.contains("hunter2"),
        "{shown}"
    );
    assert!(
        shown.contains("did you mean `api_key_env`?") && shown.contains("openai-chatt"),
        "{shown}"
    );
}

#[test]
fn a_key_written_into_a_stage_is_not_shown_either() {
    let text = STAGES.replacen(
        "[[compress]]\n",
        "[[compress]]\napi_key = \"sk-proj-0123456789abcdef\"\n",
        1,
    );
    assert!(text.contains("sk-proj"), "{text}");
    let shown = Project::new(&text).refusal();
    assert!(
        shown.contains("unknown key `api_key`") && !shown.contains("0123456789"),
        "{shown}"
    );
}

#[test]
fn a_key_in_the_environment_is_never_shown() {
    let project =
        Project::new(&answering_by("openai/gpt-5.2")).variable("OPENAI_API_KEY", "sk-secret");
    let opened = project.opened();
    assert!(!format!("{opened:?}").contains("sk-secret"));
}

#[test]
fn a_local_server_needs_no_key() {
    let project = Project::new(&answering_by("openai/m"))
        .variable("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/");
    let opened = project.asking(|request| request.needs_keys = true).opened();
    let provider = &opened.pipeline.answerers[0].model.provider;
    assert_eq!(
        (provider.base_url.as_str(), &provider.api_key),
        ("http://127.0.0.1:9/v1", &None)
    );
    assert_eq!(&*provider.endpoint.0, "openai-chat http://127.0.0.1:9/v1");
    let named = format!(
        "[providers.openai]\napi_key_env = \"MY_KEY\"\n{}",
        answering_by("openai/m")
    );
    let named = Project::new(&named).variable("OPENAI_BASE_URL", "http://127.0.0.1:9/v1/");
    assert_eq!(named.opened().missing_keys.0.len(), 1);
}

#[test]
fn an_opaque_context_is_read_by_its_own_provider_only() {
    let text = format!(
        "[pipeline]\njudge_context = false\n{OPAQUE}{}",
        answering_by("openai/m")
    );
    let own = "\n[[answer]]\nname = \"own\"\nmodel = \"openai-responses/m\"\n";
    let paired = text.replace(
        "strategy = \"opaque\"",
        "strategy = \"opaque\"\nanswerers = [\"own\"]",
    ) + own;
    let readers = Project::new(&paired).opened().pipeline.method_answerers;
    assert_eq!(readers.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn another_model_of_the_provider_answers_from_opaque_items_under_a_warning() {
    let text = |model: &str| {
        format!(
            "[pipeline]\njudge_context = false\n{OPAQUE}{}",
            answering_by(model)
        )
    };
    let warned = Project::new(&text("openai-responses/other")).opened();
    let words = render(&warnings_of(&warned));
    assert!(
        words.contains("`agent` (openai-responses/other) reads the opaque items that"),
        "{words}"
    );
    let same = Project::new(&text("openai-responses/m")).opened();
    assert!(!render(&warnings_of(&same)).contains("opaque items"));
}

#[test]
fn a_compaction_block_is_bound_to_its_provider_and_suffers_under_another_model() {
    let text = |answerer: &str| {
        format!(
            "[[compress]]\nname = \"block\"\nstrategy = \"provider-compaction\"\nmodel = \"anthropic/big\"\n{}",
            answering_by(answerer)
        )
    };
    assert!(
        Project::new(&text("lexical")).messages()[0].contains("cannot read the compaction block")
    );
    let warned = Project::new(&text("anthropic/small")).opened();
    assert_snapshot!(render(&warnings_of(&warned)), @r#"
    warning: `agent` (anthropic/small) reads the compaction block that anthropic/big made for `block`
       ╭─[pipeline.toml:3:12]
     2 │ name = "block"
     3 │ strategy = "provider-compaction"
       ·            ─────────────────────
     4 │ model = "anthropic/big"
       ╰────
    help: the vendor does not say that another model can use them: name an answerer of the same model
    "#);
    assert!(
        Project::new(&text("anthropic/big"))
            .opened()
            .warnings
            .0
            .iter()
            .all(|w| !w.message().contains("block"))
    );
    let wrong = text("lexical").replace("anthropic/big", "openai/big");
    assert!(Project::new(&wrong).messages()[0].contains("cannot use `openai/big`"));
}

#[test]
fn the_command_line_puts_a_model_in_the_place_of_all() {
    let project = Project::new(STAGES).asking(|request| {
        request.overrides.model = Some("ollama/small".into());
        request.overrides.judge_model = Some("ollama/big".into());
    });
    let pipeline = project.opened().pipeline;
    assert_eq!(
        pipeline.answerers[0].model.reference.to_string(),
        "ollama/small"
    );
    assert_eq!(pipeline.judges[0].model.reference.to_string(), "ollama/big");
}

#[test]
fn the_main_model_is_that_of_stages_that_name_none() {
    let stages = STAGES.replacen("model = \"lexical\"\n", "", 1);
    let text = format!("[pipeline]\nmodel = \"ollama/small\"\n{stages}");
    let pipeline = Project::new(&text).opened().pipeline;
    let answerer = &pipeline.answerers[0].model;
    assert_eq!(answerer.reference.to_string(), "ollama/small");
    assert!(!pipeline.judges[0].model.is_asked());
}

#[test]
fn a_price_in_another_base_is_the_same_number() {
    let text = format!("{STAGES}\n[prices.\"openai/gpt\"]\ninput = 0x10\noutput = 1_000\n");
    let prices = Project::new(&text).opened().pipeline.prices;
    assert_eq!(
        prices
            .values()
            .map(|price| (price.input, price.output))
            .collect::<Vec<_>>(),
        [(16.0, 1000.0)]
    );
}
