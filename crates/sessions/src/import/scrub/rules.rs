//! The rule sets for secrets, as data.
//!
//! Tokens of machines have a shape. [`RULES`] are this crate's own, which tolerate more of the places in which session
//! logs show them; they are followed by the rules of gitleaks (`assets/secrets/gitleaks.json`), which cover many more
//! vendors. Passwords have a position: [`POSITIONS`] and [`PAIRS`] cover those that no key word introduces, see
//! [`super::passwords`].

/// The kinds of machine tokens with their patterns. A kind, in lower case with hyphens, names the replacement. Group 1 of a
/// pattern, where there is one, is the secret; else the whole match is. Of two that match at one place the earlier names the
/// kind.
pub(super) const RULES: &[(&str, &str)] = &[
    // Keys. Blocks of private keys are found by code, see `private_keys`.
    ("age-key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{50,60}\b"),
    (
        "wireguard-key",
        r"(?i)\b(?:Private|Preshared)Key\s*=\s*([A-Za-z0-9+/]{42,43}=)",
    ),
    (
        "kubernetes-key",
        r"\b(?:client-key-data|client-certificate-data|token-data):\s*([A-Za-z0-9+/=]{40,})",
    ),
    // Clouds.
    ("aws-access-key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    (
        "aws-secret-key",
        r#"(?i)aws[a-z_ -]{0,20}(?:secret|key)[a-z_ -]{0,20}["']?\s*(?:=>|[:=])\s*\\?["']?([A-Za-z0-9/+]{40})(?:[^A-Za-z0-9/+=]|$)"#,
    ),
    (
        "aws-session-token",
        r#"(?i)aws_?session_?token["']?\s*[:=]\s*\\?["']?([A-Za-z0-9/+=]{80,})"#,
    ),
    ("google-api-key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("google-oauth-token", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("google-client-secret", r"\bGOCSPX-[0-9A-Za-z_-]{24,}"),
    ("google-refresh-token", r"\b1//0[0-9A-Za-z_-]{30,}"),
    (
        "azure-storage-key",
        r"(?i)\b(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,}={0,2})",
    ),
    (
        "azure-signature",
        r"(?i)[?&;]sig=([A-Za-z0-9%+/]{30,}(?:%3D|=){0,2})",
    ),
    (
        "azure-client-secret",
        r"\b[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    ),
    ("digitalocean-token", r"\bdo[oprt]_v1_[a-f0-9]{40,64}\b"),
    ("heroku-key", r"\bHRKU-[A-Za-z0-9_-]{30,}"),
    (
        "heroku-key",
        r#"(?i)heroku[a-z_ -]{0,20}["']?\s*[:=]\s*\\?["']?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"#,
    ),
    (
        "fly-token",
        r"\b(?:fm[12]_|fo1_|FlyV1 fm2_)[A-Za-z0-9+/=_-]{30,}",
    ),
    ("databricks-token", r"\bdapi[a-f0-9]{32}(?:-[0-9])?\b"),
    ("alibaba-key", r"\bLTAI[A-Za-z0-9]{16,24}\b"),
    ("tencent-key", r"\bAKID[A-Za-z0-9]{32}\b"),
    ("vault-token", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}"),
    (
        "terraform-token",
        r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}",
    ),
    ("pulumi-token", r"\bpul-[a-f0-9]{40}\b"),
    (
        "doppler-token",
        r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,}",
    ),
    (
        "planetscale-token",
        r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}",
    ),
    ("supabase-token", r"\bsb[ps]_[a-f0-9]{40}\b"),
    ("supabase-key", r"\bsb_secret_[A-Za-z0-9_-]{20,}"),
    ("render-key", r"\brnd_[A-Za-z0-9]{28,}"),
    ("netlify-token", r"\bnf[bcopu]_[A-Za-z0-9]{36,}"),
    (
        "tailscale-key",
        r"\btskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}",
    ),
    (
        "google-key-id",
        r#"\bprivate_key_id["']?\s*[:=]\s*\\?["']?([0-9a-f]{32,40})\b"#,
    ),
    // Code hosts and package registries.
    ("github-token", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("github-token", r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
    (
        "gitlab-token",
        r"\bgl(?:pat|dt|rt|ptt|cbt|soat|ft|imt|agent|oas)-[A-Za-z0-9_.-]{20,}",
    ),
    ("bitbucket-token", r"\bATBB[A-Za-z0-9]{24,}"),
    ("atlassian-token", r"\bATATT3[A-Za-z0-9_=-]{60,}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("rubygems-token", r"\brubygems_[a-f0-9]{48}\b"),
    ("crates-token", r"\bcio[A-Za-z0-9]{32}\b"),
    ("swarm-token", r"\bSWMTKN-1-[0-9a-z]{40,}-[0-9a-z]{20,}"),
    ("docker-token", r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    (
        "buildkite-token",
        r"\bbk(?:ua|ct|aj|at|pi|pt)_[A-Za-z0-9]{32,}",
    ),
    (
        "circleci-token",
        r"\bCCI(?:PAT|PRJ)_[A-Za-z0-9]{16,}_[a-f0-9]{40}\b",
    ),
    // Messengers and mail.
    (
        "slack-token",
        r"\bxox[abeoprs](?:-[A-Za-z0-9]+)*-[A-Za-z0-9-]{10,}",
    ),
    ("slack-token", r"\bxapp-[0-9]-[A-Za-z0-9-]{20,}"),
    (
        "slack-webhook",
        r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{20,}",
    ),
    (
        "discord-webhook",
        r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/[0-9]{10,}/[A-Za-z0-9_-]{30,}",
    ),
    (
        "discord-token",
        r"\b[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",
    ),
    (
        "telegram-token",
        r"\b[0-9]{8,10}:[A-Za-z0-9_-]{35}(?:[^A-Za-z0-9_-]|$)",
    ),
    ("twilio-key", r"\bSK[0-9a-f]{32}\b"),
    (
        "twilio-token",
        r#"(?i)twilio[a-z_ -]{0,20}token["']?\s*[:=]\s*\\?["']?([0-9a-f]{32})"#,
    ),
    (
        "sendgrid-key",
        r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}",
    ),
    ("mailgun-key", r"\bkey-[0-9a-f]{32}\b"),
    ("mailchimp-key", r"\b[0-9a-f]{32}-us[0-9]{1,2}\b"),
    (
        "teams-webhook",
        r"https://[a-z0-9-]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{40,}",
    ),
    (
        "feishu-webhook",
        r"https://open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/[A-Za-z0-9-]{20,}",
    ),
    (
        "dingtalk-webhook",
        r"https://oapi\.dingtalk\.com/robot/send\?access_token=[a-f0-9]{40,}",
    ),
    // Models.
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("openrouter-key", r"\bsk-or-(?:v1-)?[A-Za-z0-9]{32,}"),
    (
        "openai-key",
        r"\bsk-(?:proj-|svcacct-|admin-|None-)?[A-Za-z0-9_-]{20,}",
    ),
    ("huggingface-token", r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    ("groq-key", r"\bgsk_[A-Za-z0-9]{40,}"),
    ("replicate-token", r"\br8_[A-Za-z0-9]{30,}"),
    ("perplexity-key", r"\bpplx-[A-Za-z0-9]{40,}"),
    ("xai-key", r"\bxai-[A-Za-z0-9]{60,}"),
    (
        "langsmith-key",
        r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}\b",
    ),
    // Money and shops.
    ("stripe-key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("stripe-webhook-secret", r"\bwhsec_[A-Za-z0-9+/]{24,}"),
    (
        "square-token",
        r"\b(?:sq0[a-z]{3}-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{60})",
    ),
    ("shopify-token", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}\b"),
    (
        "plaid-token",
        r"\baccess-(?:sandbox|development|production)-[0-9a-f-]{36}\b",
    ),
    // Tools.
    ("posthog-key", r"\bph[cxs]_[A-Za-z0-9]{32,}"),
    (
        "asana-token",
        r"\b[12]/[0-9]{10,20}(?:/[0-9]{10,20})?:[0-9a-f]{32}\b",
    ),
    (
        "mapbox-token",
        r"\b[st]k\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,}",
    ),
    ("linear-key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    (
        "notion-token",
        r"\b(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43})\b",
    ),
    ("figma-token", r"\bfig[dou]_[A-Za-z0-9_-]{36,}"),
    ("airtable-token", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b"),
    ("postman-key", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}\b"),
    ("newrelic-key", r"\bNRAK-[A-Z0-9]{27}\b"),
    ("grafana-token", r"\bgl(?:sa|c)_[A-Za-z0-9_=+/-]{32,}"),
    ("sentry-token", r"\bsntry[su]_[A-Za-z0-9_=+/-]{40,}"),
    ("dropbox-token", r"\bsl\.[A-Za-z0-9_-]{100,}"),
    ("facebook-token", r"\bEAACEdEose0cBA[A-Za-z0-9]{20,}"),
    // Tokens in general.
    (
        "fernet-key",
        r#"(?:^|[\s"'`=(,])([A-Za-z0-9_-]{43}=)(?:[^A-Za-z0-9=_-]|$)"#,
    ),
    // The first bytes of RSA and elliptic keys, whose header got lost; certificates begin otherwise.
    (
        "private-key",
        r"\b(?:MII[A-Za-z0-9+/]{3}IBA(?:AK|DA)|MHcCAQEE|MIGHAgEA|MC4CAQAw|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{16,}(?:(?:\\r)?(?:\\n|\s){1,3}[A-Za-z0-9+/]{16,}={0,2})*={0,2}",
    ),
    (
        "jwt",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    (
        "session-id",
        r#"(?i)\b(?:connect\.sid|PHPSESSID|JSESSIONID)=([A-Za-z0-9%._-]{20,})"#,
    ),
];

/// The rules of gitleaks, converted to JSON: without descriptions, without the leading context that only its report
/// shows, and without rules that positions cover or that ask for a whole file.
pub(super) const GITLEAKS: &str = include_str!("../../../assets/secrets/gitleaks.json");

pub(super) const PRIVATE_KEY: &str = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----";
