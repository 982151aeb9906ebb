//! The rule sets for secrets, as data.
//!
//! Tokens of machines have a shape. [`RULES`] are this crate's own, which tolerate more of the places in which session
//! logs show them; they are followed by the rules of gitleaks (`assets/secrets/gitleaks.json`), which cover many more
//! vendors. Passwords have a position: [`POSITIONS`] and [`PAIRS`] cover those that no key word introduces, see
//! [`super::passwords`].

/// One kind of machine token. Group 1 of the pattern, where there is one, is the secret; else the whole match is.
pub(super) struct TokenRule {
    /// In lower case with hyphens: names the replacement.
    pub(super) kind: &'static str,
    pub(super) pattern: &'static str,
    /// Whether its shape alone makes it a secret: then the same string is one wherever it occurs. Otherwise its
    /// position does, and it must also look like a secret.
    pub(super) by_form: bool,
}

const fn form(kind: &'static str, pattern: &'static str) -> TokenRule {
    TokenRule {
        kind,
        pattern,
        by_form: true,
    }
}

const fn place(kind: &'static str, pattern: &'static str) -> TokenRule {
    TokenRule {
        kind,
        pattern,
        by_form: false,
    }
}

/// All rules. Of two that match at one place the earlier names the kind.
pub(super) const RULES: &[TokenRule] = &[
    // Keys. Blocks of private keys are found by code, see `private_keys`.
    form("age-key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,60}\b"),
    place(
        "wireguard-key",
        r"(?i)\b(?:Private|Preshared)Key\s*=\s*([A-Za-z0-9+/]{42,43}=)",
    ),
    place(
        "kubernetes-key",
        r"\b(?:client-key-data|client-certificate-data|token-data):\s*([A-Za-z0-9+/=]{40,})",
    ),
    // Clouds.
    form("aws-access-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    place(
        "aws-secret-key",
        r#"(?i)aws[a-z_ -]{0,20}(?:secret|key)[a-z_ -]{0,20}["']?\s*(?:=>|[:=])\s*\\?["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
    ),
    place(
        "aws-session-token",
        r#"(?i)aws_?session_?token["']?\s*[:=]\s*\\?["']?([A-Za-z0-9/+=]{80,})"#,
    ),
    form("google-api-key", r"\bAIza[0-9A-Za-z_-]{35}"),
    form("google-oauth-token", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    form("google-client-secret", r"\bGOCSPX-[0-9A-Za-z_-]{24,}"),
    form("google-refresh-token", r"\b1//0[0-9A-Za-z_-]{30,}"),
    place(
        "azure-storage-key",
        r"(?i)\b(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})",
    ),
    place(
        "azure-signature",
        r"(?i)[?&;]sig=([A-Za-z0-9%+/]{30,}(?:%3D|=){0,2})",
    ),
    form(
        "azure-client-secret",
        r"\b[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    ),
    form("digitalocean-token", r"\bdo[oprt]_v1_[a-f0-9]{40,64}\b"),
    form("heroku-key", r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    place(
        "heroku-key",
        r#"(?i)heroku[a-z_ -]{0,20}["']?\s*[:=]\s*\\?["']?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"#,
    ),
    form(
        "fly-token",
        r"\b(?:fm[12]_|fo1_|FlyV1 fm2_)[A-Za-z0-9+/=_-]{30,}",
    ),
    form("databricks-token", r"\bdapi[a-f0-9]{32}(?:-[0-9])?\b"),
    form("alibaba-key", r"\bLTAI[A-Za-z0-9]{16,24}\b"),
    form("tencent-key", r"\bAKID[A-Za-z0-9]{32}\b"),
    form("vault-token", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}"),
    form(
        "terraform-token",
        r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    ),
    form("pulumi-token", r"\bpul-[a-f0-9]{40}\b"),
    form(
        "doppler-token",
        r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}",
    ),
    form(
        "planetscale-token",
        r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}",
    ),
    form("supabase-token", r"\bsb[ps]_[a-f0-9]{40}\b"),
    form("supabase-key", r"\bsb_secret_[A-Za-z0-9_-]{20,}"),
    form("render-key", r"\brnd_[A-Za-z0-9]{28,}"),
    form("netlify-token", r"\bnf[bcopu]_[A-Za-z0-9]{36,}"),
    form(
        "tailscale-key",
        r"\btskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}",
    ),
    place(
        "google-key-id",
        r#"\bprivate_key_id["']?\s*[:=]\s*\\?["']?([0-9a-f]{32,40})\b"#,
    ),
    // Code hosts and package registries.
    form("github-token", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    form("github-token", r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    form(
        "gitlab-token",
        r"\bgl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent|oas)-[A-Za-z0-9_.-]{20,}",
    ),
    form("bitbucket-token", r"\bATBB[A-Za-z0-9]{24,}"),
    form("atlassian-token", r"\bATATT3[A-Za-z0-9_=-]{60,}"),
    form("npm-token", r"\bnpm_[A-Za-z0-9]{30,}"),
    form("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    form("rubygems-token", r"\brubygems_[a-f0-9]{48}\b"),
    form("crates-token", r"\bcio[A-Za-z0-9]{32}\b"),
    form("swarm-token", r"\bSWMTKN-1-[0-9a-z]{40,}-[0-9a-z]{20,}"),
    form("docker-token", r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    form(
        "buildkite-token",
        r"\bbk(?:ua|ct|aj|at|pi|pt)_[A-Za-z0-9]{32,}",
    ),
    form(
        "circleci-token",
        r"\bCCI(?:PAT|PRJ)_[A-Za-z0-9]{16,}_[a-f0-9]{40}\b",
    ),
    // Messengers and mail.
    form(
        "slack-token",
        r"\bxox[abeoprs](?:-[A-Za-z0-9]+)*-[A-Za-z0-9-]{10,}",
    ),
    form("slack-token", r"\bxapp-[0-9]-[A-Za-z0-9-]{20,}"),
    form(
        "slack-webhook",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
    ),
    form(
        "discord-webhook",
        r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}",
    ),
    form(
        "discord-token",
        r"\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",
    ),
    form(
        "telegram-token",
        r"\b[0-9]{8,10}:[A-Za-z0-9_-]{35}(?:[^A-Za-z0-9_-]|$)",
    ),
    form("twilio-key", r"\bSK[0-9a-f]{32}\b"),
    place(
        "twilio-token",
        r#"(?i)twilio[a-z_ -]{0,20}token["']?\s*[:=]\s*\\?["']?([0-9a-f]{32})"#,
    ),
    form(
        "sendgrid-key",
        r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}",
    ),
    form("mailgun-key", r"\bkey-[0-9a-f]{32}\b"),
    form("mailchimp-key", r"\b[0-9a-f]{32}-us[0-9]{1,2}\b"),
    form(
        "teams-webhook",
        r"https://[a-z0-9-]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{40,}",
    ),
    form(
        "feishu-webhook",
        r"https://open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/[A-Za-z0-9-]{20,}",
    ),
    form(
        "dingtalk-webhook",
        r"https://oapi\.dingtalk\.com/robot/send\?access_token=[a-f0-9]{40,}",
    ),
    // Models.
    form("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    form("openrouter-key", r"\bsk-or-(?:v1-)?[A-Za-z0-9]{32,}"),
    form(
        "openai-key",
        r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,}",
    ),
    form("huggingface-token", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    form("groq-key", r"\bgsk_[A-Za-z0-9]{40,}"),
    form("replicate-token", r"\br8_[A-Za-z0-9]{30,}"),
    form("perplexity-key", r"\bpplx-[A-Za-z0-9]{40,}"),
    form("xai-key", r"\bxai-[A-Za-z0-9]{60,}"),
    form(
        "langsmith-key",
        r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b",
    ),
    // Money and shops.
    form("stripe-key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    form("stripe-webhook-secret", r"\bwhsec_[A-Za-z0-9+/]{24,}"),
    form(
        "square-token",
        r"\b(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{60})",
    ),
    form("shopify-token", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    form(
        "plaid-token",
        r"\baccess-(?:sandbox|development|production)-[0-9a-f-]{36}\b",
    ),
    // Tools.
    form("posthog-key", r"\bph[cxs]_[A-Za-z0-9]{32,}"),
    form(
        "asana-token",
        r"\b[12]/[0-9]{10,20}(?:/[0-9]{10,20})?:[0-9a-f]{32}\b",
    ),
    form(
        "mapbox-token",
        r"\b[st]k\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}",
    ),
    form("linear-key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    form(
        "notion-token",
        r"\b(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})\b",
    ),
    form("figma-token", r"\bfig[dou]_[A-Za-z0-9_-]{36,}"),
    form("airtable-token", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b"),
    form("postman-key", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b"),
    form("newrelic-key", r"\bNRAK-[A-Z0-9]{27}\b"),
    form("grafana-token", r"\bgl(?:sa|c)_[A-Za-z0-9_=+/-]{32,}"),
    form("sentry-token", r"\bsntry[su]_[A-Za-z0-9_=+/-]{40,}"),
    form("dropbox-token", r"\bsl\.[A-Za-z0-9_-]{100,}"),
    form("facebook-token", r"\bEAACEdEose0cBA[A-Za-z0-9]{20,}"),
    // Tokens in general.
    place(
        "fernet-key",
        r#"(?:^|[\s"'`=(,])([A-Za-z0-9_-]{43}=)(?:[^A-Za-z0-9=_-]|$)"#,
    ),
    // The first bytes of RSA and elliptic keys, whose header got lost; certificates begin otherwise.
    form(
        "private-key",
        r"\b(?:MII[A-Za-z0-9+/]{3}IBA(?:AK|DA)|MHcCAQEE|MIGHAgEA|MC4CAQAw|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{16,}(?:(?:\\r)?(?:\\n|\s){1,3}[A-Za-z0-9+/]{16,}={0,2})*={0,2}",
    ),
    form(
        "jwt",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    place(
        "session-id",
        r#"(?i)\b(?:connect\.sid|PHPSESSID|JSESSIONID)=([A-Za-z0-9%._-]{20,})"#,
    ),
];

/// The rules of gitleaks, converted to JSON: without descriptions, without the leading context that only its report
/// shows, and without rules that positions cover or that ask for a whole file.
pub(super) const GITLEAKS: &str = include_str!("../../../assets/secrets/gitleaks.json");

pub(super) const PRIVATE_KEY: &str = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----";
