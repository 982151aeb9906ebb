//! A project in Chinese says everything about its results in Chinese.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::project::Project;

/// Names that are the same in any language: methods, files, fields, flags, commands, models, units.
const NAMES: &[&str] = &[
    // methods and stages
    "anchored",
    "index",
    "regenerative",
    "extract",
    "mask",
    "truncate",
    "full",
    "none",
    "agent",
    "judge",
    "lexical",
    "rules",
    "compress",
    "answer",
    "probes",
    "rule", // files, commands, flags
    "report",
    "html",
    "results",
    "contexts",
    "jsonl",
    "details",
    "compeval",
    "show",
    "observe",
    "economics",
    "label",
    "json",
    "all",
    "allow",
    "weak",
    "unproven",
    "selftest",
    "md",
    "utc",
    "claude",
    "code",
    "codex",
    "openhands",
    "copilot",
    "cli",
    "hermes", // vendors
    "factory",
    "anthropic",
    "openai",
    "gpt", // units and signs
    "kb",
    "min",
    "usd",
    "pareto",
    "pipeline",
    "toml",
];

/// The words of three letters or more that are in no list of names and not in the user's own text.
pub(super) fn english(text: &str, own: &BTreeSet<String>) -> Vec<String> {
    let words = text
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 2)
        .map(str::to_lowercase);
    words
        .filter(|word| !NAMES.contains(&word.as_str()) && !own.contains(word))
        .collect()
}

pub(super) fn words_of(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphabetic())
        .map(str::to_lowercase)
        .collect()
}

/// A project in Chinese with the sample session, whose own words are English.
fn project() -> (Project, BTreeSet<String>) {
    let project = Project::empty();
    project.expect(0, "init --locale zh");
    let mut own = BTreeSet::new();
    for file in [
        "fixtures/tally-bank-export.json",
        "probes/tally-bank-export.probes.json",
    ] {
        own.extend(words_of(&project.read(file)));
    }
    own.extend(words_of(&project.path("results").display().to_string()));
    for prompt in project.files("prompts") {
        own.extend(words_of(
            &std::fs::read_to_string(prompt).expect("a prompt"),
        ));
    }
    (project, own)
}

#[test]
fn the_terminal_the_report_and_the_page_of_a_run_have_no_english_words() {
    let (project, own) = project();
    let ended = project.expect(0, "run --label a --all --runs 1");
    let terminal = format!("{}\n{}", ended.stdout, ended.stderr);
    assert_eq!(english(&terminal, &own), Vec::<String>::new(), "{terminal}");
    project.expect(0, "report a --reference");
    let report = project.read("results/a/report.md");
    let prose: String = report
        .lines()
        .filter(|line| !line.contains("`accuracy_") && !line.contains("0/5"))
        .collect();
    assert_eq!(english(&prose, &own), Vec::<String>::new(), "{report}");
    assert!(
        report.contains("锚定式迭代（Factory）") && report.contains("不透明压缩（OpenAI）"),
        "{report}"
    );
    let page = project.read("results/a/report.html");
    for words in [
        "锚定式迭代（Factory）",
        "\"type_recall\":\"召回\"",
        "\"type_continuation\":\"连续性\"",
    ] {
        let compact = page.replace("\": \"", "\":\"");
        assert!(compact.contains(words), "{words} is not in the page");
    }
}

/// The words of ids and facts in the bank of the sample.
fn facts(project: &Project) -> BTreeSet<String> {
    let bank: serde_json::Value =
        serde_json::from_str(&project.read("probes/tally-bank-export.probes.json"))
            .expect("a bank");
    let probes = bank["probes"].as_array().expect("probes");
    let mut own: BTreeSet<String> = probes
        .iter()
        .flat_map(|probe| words_of(&format!("{}{}", probe["id"], probe["expected_facts"])))
        .collect();
    own.extend(words_of("tally-bank-export"));
    own.extend(words_of(&project.path(".").display().to_string()));
    own
}

/// The output of a command, without quotations, flags, paths, keys, and the commands that it names.
fn prose(text: &str) -> String {
    let is_quoted_command = |line: &&str| line.trim_start().starts_with("compeval ");
    let without_commands = |line: &str| match line.split_once("compeval ") {
        Some((before, command)) => format!(
            "{before} {}",
            command.split_once("   ").map_or("", |(_, note)| note)
        ),
        None => line.to_owned(),
    };
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !is_quoted_command(line))
        .map(without_commands)
        .collect();
    let unquoted: String = lines.join("\n").split('`').step_by(2).collect();
    let is_prose = |word: &&str| {
        !word.contains("--") && !word.contains(|c: char| "/_=".contains(c) || c.is_ascii_digit())
    };
    unquoted
        .split_whitespace()
        .filter(is_prose)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn everyday_commands_print_no_english_words() {
    let (project, of_session) = project();
    // Most commands quote nothing of the session but the facts that were asked for.
    let of_bank = facts(&project);
    let commands = [
        "check",
        "check --all",
        "plan",
        "plan --all",
        "plan --power",
        "run --label a --all --runs 1 --no-progress",
        "run --label b --runs 1 --compare-to a",
        "run --label b --runs 2",
        "run --label a --max-cost=-1",
        "report a",
        "compare a b",
        "compare a c",
        "labels ls",
        "labels trend",
        "labels protect a",
        "labels rm a",
        "show tally-bank-export --label a",
        "show tally-bank-export --label a --method mask --probe bag",
        "show tally-bank-export --label a --method none --probe first-error",
        "show nowhere --label a",
        "judge selftest",
        "cache ls",
        "cache stats",
        "cache verify",
        "cache show 0000",
        "cache prune --unreachable --dry-run",
        "fixture scrub tally-bank-export",
        "probes generate",
        "probes review",
        "batch ls",
        "observe fixtures",
        "show tally-bank-export --label a --method nobody",
        "show tally-bank-export --label a --probe nobody",
        "why tally-bank-export --label a --method none --probe nobody",
        "cache ls --method nobody",
        "check --profile nobody",
        "check -c nowhere.toml",
        "plan --fixtures nobody",
        "plan --methods nobody",
        "probes generate nobody",
        "run --points 1",
        "run --part auto --label z --remote fs:///no/such/place",
        "judge agreement nowhere.csv",
        "judge grade nowhere.json",
        "judge selftest --cases nowhere.json",
        "fixture scrub nowhere",
        "fixture import nowhere.jsonl",
        "cache pull --remote ftp://nowhere",
        "cache push --remote fs:///no/such/place",
    ];
    let mut left = Vec::new();
    for command in commands {
        let ended = project.compeval(command);
        let text = format!("{}\n{}", ended.stdout, ended.stderr);
        let own = if command.starts_with("show") {
            &of_session
        } else {
            &of_bank
        };
        let words = english(&prose(&text), own)
            .into_iter()
            .filter(|word| !words_of(command).contains(word));
        let words: Vec<String> = words.collect();
        left.extend(
            (!words.is_empty()).then(|| format!("compeval {command}: {}\n{text}", words.join(" "))),
        );
    }
    assert!(left.is_empty(), "{}", left.join("\n"));
}

#[test]
fn json_counts_what_was_dropped_by_the_same_words_in_both_languages() {
    let project = Project::empty();
    project.expect(0, "init . --quiet --locale zh");
    let made = project.expect(0, "probes generate --force --json").json();
    let dropped = made["banks"][0]["dropped"].as_object().expect("reasons");
    assert!(
        !dropped.is_empty() && dropped.keys().all(|why| why.is_ascii()),
        "{made}"
    );
}

/// Whether it is the English name of a built-in rule.
fn is_rule(model: &str) -> bool {
    model.starts_with("rule ")
}

#[test]
fn json_names_rules_and_repairs_in_english() {
    let (project, _) = project();
    project.expect(0, "run --label a --runs 1");
    let stats = project.expect(0, "cache stats --json").json();
    assert!(
        stats["by_model"]
            .as_object()
            .expect("models")
            .keys()
            .any(|name| is_rule(name)),
        "{stats}"
    );
    project.expect(0, "cache stats").stdout_says(&["规则 "]);
    let pruned = project
        .expect(0, "cache prune --stage compress --dry-run --json")
        .json();
    let mut groups = pruned["groups"].as_array().expect("groups").iter();
    assert!(
        groups.any(|group| group["model"].as_str().is_some_and(is_rule)),
        "{pruned}"
    );
    let keys = project.keys("a");
    let difference = project
        .expect(0, &format!("cache show {} {} --json", keys[0], keys[1]))
        .json();
    let statuses =
        ["a_status", "b_status"].map(|side| difference[side].as_str().unwrap_or_default());
    assert!(
        statuses
            .iter()
            .all(|status| !status.is_empty() && status.is_ascii()),
        "{difference}"
    );
    let call =
        json!({ "id": "c", "type": "function", "function": { "name": "run", "arguments": "{}" } });
    let asked = json!({ "role": "user", "content": "Run it." });
    let called = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
    project.write(
        "session.jsonl",
        &format!(
            "{asked}\n{called}\n{}\n",
            json!({ "role": "user", "content": "And?" })
        ),
    );
    let imported = project
        .expect(0, "fixture import session.jsonl --json")
        .json();
    let repairs = json!({ "call without a result: a note takes its place": 1 });
    assert_eq!(imported["fixtures"][0]["put_right"], repairs, "{imported}");
}

#[test]
fn what_is_wrong_with_a_pipeline_and_a_bank_is_said_in_chinese() {
    let (project, _) = project();
    let own = facts(&project);
    let sound = project.read("pipeline.toml");
    let wrong = [
        ("runs     = 3", "runs = \"three\""),
        ("runs     = 3", "runs = 0"),
        ("runs     = 3", "rums = 3"),
        ("[[answer]]\nname  = \"agent\"", "[[answer]]\nname  = \"-\""),
        (
            "model = \"lexical\"\n\n[[judge]]",
            "model = \"nobody/m\"\n\n[[judge]]",
        ),
        ("strategy = \"extract\"", "strategy = \"extrakt\""),
        (
            "prompt   = \"prompts/anchored.md\"",
            "prompt = \"prompts/gone.md\"",
        ),
        ("target_tokens = 2000", "target_tokens = [2000]"),
        ("name     = \"extract\"", "name     = \"mask\""),
    ];
    for (from, to) in wrong {
        project.write("pipeline.toml", &sound.replacen(from, to, 1));
        let ended = project.expect(2, "check --all");
        // The excerpt is the user's text; the words beside its carets are ours.
        let is_excerpt = |line: &&str| line.contains('│') && line.contains(" = ");
        let said: String = format!("{}\n{}", ended.stdout, ended.stderr)
            .lines()
            .filter(|line| !is_excerpt(line))
            .map(|line| format!("{line}\n"))
            .collect();
        let mut own = own.clone();
        own.extend(words_of(&format!(
            "{sound} {to} provider model openai anthropic openrouter ollama toml pipeline"
        )));
        assert_eq!(
            english(&prose(&said), &own),
            Vec::<String>::new(),
            "{to}: {said}"
        );
    }
    project.write("pipeline.toml", &sound);
    let bank = project.read("probes/tally-bank-export.probes.json");
    project.write(
        "probes/tally-bank-export.probes.json",
        &bank.replacen("\"type\"", "\"kind\"", 1),
    );
    project.expect(2, "check").says(&["问题 中有未知键 `kind`"]);
}

/// The messages and the advice of all findings of `check`.
fn findings(project: &Project) -> Vec<String> {
    let found = project.compeval("check --json").json();
    let all = ["errors", "warnings"]
        .map(|kind| found[kind].as_array().cloned().unwrap_or_default())
        .concat();
    let texts = all
        .iter()
        .flat_map(|finding| [&finding["message"], &finding["help"]]);
    texts
        .filter_map(|text| text.as_str().map(str::to_owned))
        .collect()
}

/// Demands that `check` finds what holds `words`, and says all that it finds in Chinese; `names` may stand in it.
fn expect_chinese_finding(project: &Project, words: &str, names: &BTreeSet<String>) {
    let found = findings(project);
    assert!(
        found.iter().any(|text| text.contains(words)),
        "`{words}` is not in {found:#?}"
    );
    for text in found {
        assert_eq!(
            english(&prose(&text), names),
            Vec::<String>::new(),
            "{text}"
        );
    }
}

/// A method whose modules are inputs.
fn modules(protocol: &str, roots: &str) -> String {
    format!(
        "strategy = \"command\"\ncommand = [\"sh\"]\nprotocol = {protocol}\ninputs_from = \"modules\"\n\
         module_roots = [{roots}]"
    )
}

#[test]
fn rarer_findings_of_a_pipeline_are_said_in_chinese_alone() {
    let (project, _) = project();
    let names = words_of(
        "strategy command provider model kind base url shell text object name language never not prohibition http https \
         inputs chat path prompt summary api true criteria anchors recall artifact modules protocol lines agent",
    );
    project.write(
        "rubric.toml",
        "[[criteria]]\nid = \"a\"\ndimension = \"speed\"\nweight = 0\napplies_to = []\n",
    );
    project.write(
        "rules.toml",
        "[[rule]]\nname = \"a\"\nlanguage = \"de\"\ntext = \"Never push.\"\nobject = [\"push\"]\n\
         [[rule]]\nname = \"b\"\nlanguage = \"en\"\ntext = \"We pull.\"\nobject = [\"push\"]\n\
         [[rule]]\nname = \"c\"\nlanguage = \"en\"\ntext = \"We push.\"\nobject = [\"push\"]\n\
         [[rule]]\nname = \"d\"\nprohibition = []\n",
    );
    let full = "strategy = \"full\"";
    let with = |key: &str| format!("{full}\n{key}");
    let before_judge = |tables: &str| format!("{tables}\n\n[[judge]]");
    let edits: [(&str, String, &str); 24] = [
        (full, String::new(), "没有 strategy"),
        (full, with("keep_results = 2"), "不接受 `keep_results`"),
        (
            full,
            with("answerers = [\"nobody\"]"),
            "没有作答模型 `nobody`",
        ),
        (
            full,
            "strategy = \"command\"".to_owned(),
            "需要一个要运行的程序",
        ),
        (
            full,
            "strategy = \"command\"\ncommand = [\"no-such-program\"]".to_owned(),
            "此处没有程序",
        ),
        (
            full,
            "preset = \"codex\"\nmodel = \"lexical\"".to_owned(),
            "预设只有形式而没有提示词",
        ),
        (full, modules("2", "\"/agent\""), "是绝对路径"),
        (full, modules("2", "\"../agent\""), "在项目文件夹之外"),
        (full, modules("2", "\"agent\""), "没有这个文件夹"),
        (full, modules("1", ""), "请加上 protocol = 2"),
        (
            full,
            modules("2", "").replace("inputs_from = \"modules\"\n", ""),
            "`inputs_from` 所要的模块",
        ),
        (
            full,
            "strategy = \"truncate\"".to_owned(),
            "需要 `target_tokens`",
        ),
        (
            "strategy = \"regenerative\"",
            "strategy = \"regenerative\"\nextract = \"<s>\"".to_owned(),
            "这不是标签名",
        ),
        ("runs     = 3", "runs     = 2000".to_owned(), "至多为 1000"),
        (
            "runs     = 3",
            "runs     = 3\nrubric   = \"rubric.toml\"".to_owned(),
            "缺少 `anchors`",
        ),
        (
            "fixtures = \"fixtures\"",
            "fixtures = \"elsewhere\"".to_owned(),
            "没有样本文件夹 `elsewhere`",
        ),
        (
            "fixtures = \"fixtures\"",
            "fixtures = [\"/etc/*.json\"]".to_owned(),
            "是绝对路径",
        ),
        (
            "probes   = \"probes\"",
            "probes   = \"../probes\"".to_owned(),
            "在项目文件夹之外",
        ),
        (
            "[[judge]]\nname  = \"judge\"\nmodel = \"lexical\"",
            String::new(),
            "没有声明 [[judge]] 表",
        ),
        (
            "[[judge]]",
            before_judge("[providers.local]\nkind = \"openai-chat\""),
            "没有 base_url",
        ),
        (
            "[[judge]]",
            before_judge("[providers.openai.limits]\nmax_in_flight = 0"),
            "限制至少为 1",
        ),
        (
            "[[judge]]",
            before_judge("[prices.\"openai/m\"]\ninput = -1.0"),
            "价格不小于 0",
        ),
        (
            "[[judge]]",
            before_judge("[cache]\nremote = \"ftp://x\"\ntrust = [\"ci\"]"),
            "这不是写入者",
        ),
        (
            "[[judge]]",
            before_judge("[constraints]\nenabled = true\nset = \"rules.toml\""),
            "没有一句既含其 object",
        ),
    ];
    let sound = project.read("pipeline.toml");
    for (from, to, words) in edits {
        assert!(sound.contains(from), "{from}");
        project.write("pipeline.toml", &sound.replacen(from, &to, 1));
        expect_chinese_finding(&project, words, &names);
    }
}

#[test]
fn faults_of_a_fixture_are_said_in_chinese_alone() {
    let (project, _) = project();
    let (path, no_names) = ("fixtures/tally-bank-export.json", BTreeSet::new());
    let sound: Value = serde_json::from_str(&project.read(path)).expect("a fixture");
    let mut fixture = sound.clone();
    fixture["points"] = json!([9999]);
    project.write(path, &fixture.to_string());
    expect_chinese_finding(&project, "超出范围或次序不对", &no_names);
    let mut fixture = sound.clone();
    let orphan = json!({ "role": "tool", "tool_call_id": "gone", "content": "x" });
    fixture["messages"]
        .as_array_mut()
        .expect("messages")
        .push(orphan);
    project.write(path, &fixture.to_string());
    expect_chinese_finding(&project, "没有带该 id 的未结调用", &no_names);
    let mut fixture = sound;
    fixture["name"] = "other".into();
    project.write(path, &fixture.to_string());
    expect_chinese_finding(&project, "名称与文件名相同", &no_names);
}

#[test]
fn an_import_says_in_chinese_what_it_replaced_and_lost() {
    let (project, _) = project();
    let asked = json!({ "role": "user", "content": "Mail ada@harbor.dev what is in /home/ada/app, please." });
    let reply = json!({ "role": "assistant", "content": "Done." });
    project.write(
        "session.jsonl",
        &format!("{asked}\n{reply}\n{{\"role\": \"user\",\n"),
    );
    let ended = project.expect(0, "fixture import session.jsonl");
    let text = format!("{}\n{}", ended.stdout, ended.stderr);
    for words in ["已写入", "已替换", "电子邮件地址", "该行被截断"] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
    let own = words_of("session openai messages ada app");
    assert_eq!(english(&prose(&text), &own), Vec::<String>::new(), "{text}");
}

#[test]
fn what_a_program_did_wrong_is_said_in_chinese() {
    let (project, _) = project();
    let program = "strategy = \"command\"\ncommand = [\"sh\", \"mine.sh\"]\ninputs = [\"mine.sh\"]";
    project.write("mine.sh", "");
    project.edit(
        "pipeline.toml",
        "strategy = \"extract\"\ntarget_tokens = 2000",
        program,
    );
    let mut own = facts(&project);
    own.extend(words_of("mine"));
    for (script, words) in [
        ("echo '{}'", "程序违反协议：`messages` 与 `summary` 都没有"),
        (
            "echo '{\"summary\":3}'",
            "`summary` 不是文字；应为：JSON 字符串",
        ),
        (
            "echo '{\"summary\":\"s\",\"degraded\":\"-\"}'",
            "程序说其结果不完善",
        ),
        ("exit 3", "退出码 3 结束"),
    ] {
        project.write("mine.sh", &format!("cat >/dev/null; {script}\n"));
        let ended = project.expect(
            5,
            "run --label a --runs 1 --methods extract --replace --no-progress",
        );
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(
            english(&prose(&ended.stderr), &own),
            Vec::<String>::new(),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn modules_that_cannot_be_inputs_are_said_in_chinese() {
    let (project, _) = project();
    let program = "strategy = \"command\"\ncommand = [\"sh\", \"mine.sh\"]\nprotocol = 2\ninputs_from = \"modules\"";
    project.edit(
        "pipeline.toml",
        "strategy = \"extract\"\ntarget_tokens = 2000",
        program,
    );
    let mut own = facts(&project);
    own.extend(words_of(
        "mine modules packages name version path serve agent",
    ));
    for (answer, words) in [
        ("{\"summary\":\"s\"}", "应答没有列出程序已加载的内容"),
        (
            "{\"summary\":\"s\",\"modules\":[{}],\"packages\":[]}",
            "模块列表中有一项没有 `path`",
        ),
        (
            "{\"summary\":\"s\",\"modules\":[{\"path\":\"/dev/null\"}],\"packages\":[]}",
            "程序加载了 `/dev/null`",
        ),
        (
            "{\"summary\":\"s\",\"modules\":[{\"path\":\"gone\"}],\"packages\":[]}",
            "没有这个文件",
        ),
    ] {
        project.write("mine.sh", &format!("cat >/dev/null; echo '{answer}'\n"));
        let ended = project.expect(
            5,
            "run --label a --runs 1 --methods extract --replace --no-progress",
        );
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(
            english(&prose(&ended.stderr), &own),
            Vec::<String>::new(),
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn damage_of_the_cache_is_said_in_chinese() {
    let (project, _) = project();
    project.expect(0, "run --label a --runs 1");
    let pack = project
        .files("cache/packs")
        .into_iter()
        .next()
        .expect("a pack");
    let mut bytes = std::fs::read(&pack).expect("its bytes");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&pack, bytes).expect("the damage");
    let ended = project.expect(1, "cache verify");
    let text = format!("{}\n{}", ended.stdout, ended.stderr);
    assert!(text.contains("发现并删除"), "{text}");
    let own = words_of(&project.path(".").display().to_string());
    assert_eq!(english(&prose(&text), &own), Vec::<String>::new(), "{text}");
}

/// The columns of a terminal that each line takes up to the place that `find` finds in it.
fn widths(lines: &str, find: impl Fn(&str) -> Option<usize>) -> BTreeSet<usize> {
    lines
        .lines()
        .filter_map(|line| find(line).map(|end| line[..end].width()))
        .collect()
}

#[test]
fn columns_beside_chinese_names_are_aligned() {
    let (project, _) = project();
    project.edit(
        "pipeline.toml",
        "name     = \"extract\"",
        "name     = \"按规则摘录的方法\"",
    );
    project.expect(0, "run --label 基线 --runs 1 --no-progress");
    project.expect(0, "run --label second-label --runs 1 --no-progress");
    let listed = project.expect(0, "labels ls").stdout;
    assert_eq!(widths(&listed, |line| line.find('/')).len(), 1, "{listed}");
    let scores = project
        .expect(0, "show tally-bank-export --label 基线")
        .stdout;
    let is_in_table = |line: &str| {
        line.ends_with("none") || line.ends_with(|c: char| c.is_ascii_digit() || c == '–')
    };
    let end_of_row =
        |line: &str| (is_in_table(line) && !line.contains("压缩点")).then_some(line.len());
    assert_eq!(widths(&scores, end_of_row).len(), 1, "{scores}");
    let entries = project.expect(0, "cache ls").stdout;
    assert_eq!(
        widths(&entries, |line| line.find("tally-bank-export")).len(),
        1,
        "{entries}"
    );
}

/// The text of a page without a script: no style and no tags.
pub(super) fn text_of_page(page: &str) -> String {
    let body = page.split_once("<body>").map_or(page, |(_, body)| body);
    let texts = body
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    let labels = page
        .split("aria-label=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next());
    texts.chain(labels).collect::<Vec<&str>>().join(" ")
}

#[test]
fn the_page_of_a_trend_has_no_english_words() {
    let (project, _) = project();
    let own = facts(&project);
    project.expect(0, "run --label a --runs 1");
    project.expect(0, "run --label b --runs 1");
    project.expect(0, "labels trend --html trend.html");
    let page = project.read("trend.html");
    let text = text_of_page(&page);
    assert_eq!(english(&text, &own), Vec::<String>::new(), "{text}");
    assert!(
        page.contains("lang=\"zh-Hans\"") && text.contains("2 个结果集") && text.contains("总分"),
        "{text}"
    );
    let terminal = project.expect(0, "labels trend --method anchored").stdout;
    assert_eq!(english(&terminal, &own), Vec::<String>::new(), "{terminal}");
    project.expect(0, "labels trend a --html trend.html --locale en");
    assert!(project.read("trend.html").contains("<h1>1 result set</h1>"));
}

#[test]
fn the_language_can_be_chosen_for_a_project_in_another() {
    let project = Project::empty();
    project.expect(0, "init");
    let chinese = project.expect(0, "run --label a --runs 1 --locale zh");
    assert!(
        chinese.stdout.contains("下一步") && project.read("results/a/report.md").contains("总分"),
        "{chinese:?}"
    );
    assert!(
        project
            .expect(0, "check")
            .stdout
            .contains("valid: 1 fixture")
    );
    project.expect(0, "report a");
    assert!(project.read("results/a/report.md").contains("overall"));
    assert!(
        project
            .rows("a")
            .iter()
            .all(|row| row["criteria"][0]["reasoning"].as_str().is_some())
    );
}

#[test]
fn the_stand_in_gives_its_reasons_in_chinese() {
    let (project, own) = project();
    project.expect(0, "run --label a --runs 1");
    for row in project.rows("a") {
        for criterion in row["criteria"].as_array().expect("criteria") {
            let reason = criterion["reasoning"].as_str().expect("a reason");
            assert_eq!(english(reason, &own), Vec::<String>::new(), "{reason}");
        }
    }
}

#[test]
fn kinds_of_probes_have_the_names_of_the_literature() {
    use compeval::probe::ProbeType;
    let names = ProbeType::ALL.map(|kind| kind.label(base::locale::Locale::Zh));
    assert_eq!(names, ["召回", "产物", "连续性", "决策"]);
}

#[test]
fn the_page_has_the_terminals_words_for_points_and_runs() {
    let texts: Value =
        serde_json::from_str(include_str!("../../assets/report/texts.zh.json")).unwrap();
    assert_eq!(
        (&texts["cycle_n"], &texts["run_n"]),
        (&json!("压缩点 {n}"), &json!("第 {n} 次"))
    );
    let texts: Value =
        serde_json::from_str(include_str!("../../assets/report/texts.en.json")).unwrap();
    assert_eq!(
        (&texts["cycle_n"], &texts["run_n"]),
        (&json!("point {n}"), &json!("run {n}"))
    );
}
