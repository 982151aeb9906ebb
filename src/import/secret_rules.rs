//! The rule set for secrets, as data: what each kind of credential looks like.
//!
//! Group 1, where there is one, is the secret; else the whole match is. A `Form` is sure by its shape alone; a
//! `Place` is sure by what stands before it, so what it finds must also look like a secret.

/// How a rule knows a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// By its own shape.
    Form,
    /// By the place it stands in.
    Place,
}

/// One kind of credential.
pub(super) struct Rule {
    /// In lower case with hyphens: names the replacement.
    pub(super) kind: &'static str,
    pub(super) pattern: &'static str,
    pub(super) basis: Basis,
}

const fn form(kind: &'static str, pattern: &'static str) -> Rule {
    Rule { kind, pattern, basis: Basis::Form }
}

const fn place(kind: &'static str, pattern: &'static str) -> Rule {
    Rule { kind, pattern, basis: Basis::Place }
}

/// All rules. Of two that match at one place the earlier names the kind.
pub(super) const RULES: &[Rule] = &[
    // Keys. Blocks of private keys are found by code, see `private_keys`.
    form("age-key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,60}\b"),
    place("wireguard-key", r"(?i)\b(?:Private|Preshared)Key\s*=\s*([A-Za-z0-9+/]{42,43}=)"),
    place("kubernetes-key", r"\b(?:client-key-data|client-certificate-data|token-data):\s*([A-Za-z0-9+/=]{40,})"),
    // Clouds.
    form("aws-access-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    place(
        "aws-secret-key",
        r#"(?i)aws[a-z_ -]{0,20}(?:secret|key)[a-z_ -]{0,20}["']?\s*(?:=>|[:=])\s*\\?["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
    ),
    place("aws-session-token", r#"(?i)aws_?session_?token["']?\s*[:=]\s*\\?["']?([A-Za-z0-9/+=]{80,})"#),
    form("google-api-key", r"\bAIza[0-9A-Za-z_-]{35}"),
    form("google-oauth-token", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    form("google-client-secret", r"\bGOCSPX-[0-9A-Za-z_-]{24,}"),
    form("google-refresh-token", r"\b1//0[0-9A-Za-z_-]{30,}"),
    place("azure-storage-key", r"(?i)\b(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})"),
    place("azure-signature", r"(?i)[?&;]sig=([A-Za-z0-9%+/]{30,}(?:%3D|=){0,2})"),
    form("azure-client-secret", r"\b[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    form("digitalocean-token", r"\bdo[oprt]_v1_[a-f0-9]{40,64}\b"),
    form("heroku-key", r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    place(
        "heroku-key",
        r#"(?i)heroku[a-z_ -]{0,20}["']?\s*[:=]\s*\\?["']?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"#,
    ),
    form("fly-token", r"\b(?:fm[12]_|fo1_|FlyV1 fm2_)[A-Za-z0-9+/=_-]{30,}"),
    form("databricks-token", r"\bdapi[a-f0-9]{32}(?:-[0-9])?\b"),
    form("alibaba-key", r"\bLTAI[A-Za-z0-9]{16,24}\b"),
    form("tencent-key", r"\bAKID[A-Za-z0-9]{32}\b"),
    form("vault-token", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}"),
    form("terraform-token", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    form("pulumi-token", r"\bpul-[a-f0-9]{40}\b"),
    form("doppler-token", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}"),
    form("planetscale-token", r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}"),
    form("supabase-token", r"\bsb[ps]_[a-f0-9]{40}\b"),
    // Code hosts and package registries.
    form("github-token", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    form("github-token", r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    form("gitlab-token", r"\bgl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent|oas)-[A-Za-z0-9_.-]{20,}"),
    form("bitbucket-token", r"\bATBB[A-Za-z0-9]{24,}"),
    form("atlassian-token", r"\bATATT3[A-Za-z0-9_=-]{60,}"),
    form("npm-token", r"\bnpm_[A-Za-z0-9]{30,}"),
    place("npm-token", r#"_authToken\s*=\s*["']?([A-Za-z0-9_-]{16,})"#),
    form("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    form("rubygems-token", r"\brubygems_[a-f0-9]{48}\b"),
    form("crates-token", r"\bcio[A-Za-z0-9]{32}\b"),
    form("docker-token", r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    // Messengers and mail.
    form("slack-token", r"\bxox[abeoprs](?:-[A-Za-z0-9]+)*-[A-Za-z0-9-]{10,}"),
    form("slack-token", r"\bxapp-[0-9]-[A-Za-z0-9-]{20,}"),
    form("slack-webhook", r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}"),
    form("discord-webhook", r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}"),
    form("discord-token", r"\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}"),
    form("telegram-token", r"\b[0-9]{8,10}:[A-Za-z0-9_-]{35}(?:[^A-Za-z0-9_-]|$)"),
    form("twilio-key", r"\bSK[0-9a-f]{32}\b"),
    place("twilio-token", r#"(?i)twilio[a-z_ -]{0,20}token["']?\s*[:=]\s*\\?["']?([0-9a-f]{32})"#),
    form("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    form("mailgun-key", r"\bkey-[0-9a-f]{32}\b"),
    form("mailchimp-key", r"\b[0-9a-f]{32}-us[0-9]{1,2}\b"),
    form("teams-webhook", r"https://[a-z0-9-]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{40,}"),
    form("feishu-webhook", r"https://open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/[A-Za-z0-9-]{20,}"),
    form("dingtalk-webhook", r"https://oapi\.dingtalk\.com/robot/send\?access_token=[a-f0-9]{40,}"),
    // Models.
    form("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    form("openrouter-key", r"\bsk-or-(?:v1-)?[A-Za-z0-9]{32,}"),
    form("openai-key", r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,}"),
    form("huggingface-token", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    form("groq-key", r"\bgsk_[A-Za-z0-9]{40,}"),
    form("replicate-token", r"\br8_[A-Za-z0-9]{30,}"),
    form("perplexity-key", r"\bpplx-[A-Za-z0-9]{40,}"),
    form("xai-key", r"\bxai-[A-Za-z0-9]{60,}"),
    form("langsmith-key", r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b"),
    // Money and shops.
    form("stripe-key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    form("stripe-webhook-secret", r"\bwhsec_[A-Za-z0-9+/]{24,}"),
    form("square-token", r"\b(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{60})"),
    form("shopify-token", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    form("plaid-token", r"\baccess-(?:sandbox|development|production)-[0-9a-f-]{36}\b"),
    // Tools.
    form("linear-key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    form("notion-token", r"\b(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})\b"),
    form("figma-token", r"\bfig[dou]_[A-Za-z0-9_-]{36,}"),
    form("airtable-token", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b"),
    form("postman-key", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b"),
    form("newrelic-key", r"\bNRAK-[A-Z0-9]{27}\b"),
    form("grafana-token", r"\bgl(?:sa|c)_[A-Za-z0-9_=+/-]{32,}"),
    form("sentry-token", r"\bsntry[su]_[A-Za-z0-9_=+/-]{40,}"),
    form("dropbox-token", r"\bsl\.[A-Za-z0-9_-]{100,}"),
    form("facebook-token", r"\bEAACEdEose0cBA[A-Za-z0-9]{20,}"),
    // Tokens in general.
    form("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    place("bearer-token", r#"(?i)\bbearer\s+([A-Za-z0-9_.~+/=-]{16,})"#),
    place("basic-auth-header", r#"(?i)\bauthorization["']?\s*[:=]\s*\\?["']?basic\s+([A-Za-z0-9+/]{8,}={0,2})"#),
    place("cookie", r#"(?i)\b(?:set-)?cookie["']?\s*:\s*\\?["']?[A-Za-z0-9_.%-]{1,60}=([^\s;"'\\]{16,})"#),
    place("url-password", r#"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@"'\\<>]{0,64}:([^\s/:@"'\\<>]{3,})@"#),
    place("netrc-password", r"(?i)\bmachine\s+\S+\s+login\s+\S+\s+password\s+([^\s\\]+)"),
    place("curl-password", r#"\bcurl\b[^\n\\]*?\s(?:-u|--user)[ =]?["']?[^\s:"']{1,64}:([^\s"'\\]{4,})"#),
    place("connection-password", r#"(?i)\b(?:Server|Data Source|Host)=[^\n"']*?;\s*(?:Password|Pwd)=([^;\s"'\\]{4,})"#),
    place("session-id", r#"(?i)\b(?:session_?id|sessionid|connect\.sid|PHPSESSID|JSESSIONID)=([A-Za-z0-9%._-]{20,})"#),
];

/// How a block with a private key begins.
pub(super) const PRIVATE_KEY: &str = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----";

/// Words whose values are secrets if they look like one. Group 1 is the word, group 2 the value: ASCII, so that it ends
/// where a sentence in another script goes on.
pub(super) const KEYED: &str = r#"(?i)([A-Za-z0-9_.-]{0,40}(?:api[_-]?key|apikey|access[_-]?key|secret|token|passw(?:or)?d|passwd|pwd|passphrase|credential|auth[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key|密码|口令|密钥|令牌)[A-Za-z0-9_-]{0,20})(?:\\?["'`])?\]?\s*(?:=>|:=|==|[:=：]|\bis\b:?|[是为][：:]?)\s*(?:\\?["'`“])?([!-~&&[^"'`\\,;<>(){}\[\]]]{8,200})"#;

/// What stands in examples in place of a secret; in lower case.
pub(super) const PLACEHOLDERS: &[&str] = &[
    "redacted",
    "***",
    "xxxx",
    "your",
    "example",
    "placeholder",
    "dummy",
    "changeme",
    "change-me",
    "change_me",
    "insert",
    "replace",
    "fake",
    "sample",
    "...",
    "…",
    "${",
    "{{",
    "<",
    "%s",
    "todo",
    "not-a-real",
    "notreal",
    "process.env",
    "os.environ",
    "getenv",
    "env.",
    "secrets.",
];
