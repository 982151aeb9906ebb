//! The words by which servers say what is wrong, and what each means: one table, in the order in which it is asked.
//!
//! Vendors word the same refusal in many ways, so a sign names what a message is about and what it says of it, and not
//! whole sentences. Who says it stands beside the words. What no sign fits is judged by its status alone.

use super::call::ErrorClass;

/// One meaning, and how it is worded: lists of words, divided by `|`.
pub(super) struct Sign {
    pub class: ErrorClass,
    /// The statuses with which it is believed.
    statuses: &'static [u16],
    /// Parts of code words, in lower case, without punctuation.
    codes: &'static str,
    /// What a message says in lower case, by itself ...
    phrases: &'static str,
    /// ... or one of the first and one of the second together.
    pairs: (&'static str, &'static str),
    /// Words with which it means something else.
    unless: &'static str,
}

/// What is said of that of which there is too much.
const TOO_MUCH: &str = "exceed|too long|too large|too many|longer than|greater than|larger than|bigger than|overflow|\
     reduce the length|over the limit|above the|allowed maximum|maximum allowed|does not fit|more than the|surpass|must be <=|\
     must have less than|must be reduced|at most|max length|maxlength|only has room|only supports up to|with up to|\
     be smaller than|must be no more than|> limit|超过|超出|过长|超长|長すぎ";

const ANY: &[u16] = &[];
const REQUEST: &[u16] = &[400, 403, 413, 422, 500];

/// Words for a limit that is reset once a day, or more rarely: OpenRouter, Google, Groq, GitHub, Cloudflare, Qwen.
pub(super) const OF_A_DAY: &str = "per day|per-day|perday|byday|daily|(tpd)|(rpd)|86400s|/day|/ day|/month|/ month|1 day|24 hours|24h|today|tomorrow|per week|weekly|\
     per month|monthly|每日|今日|每天|本月";

pub(super) const SIGNS: &[Sign] = &[
    // OpenAI, Anthropic, OpenRouter, LiteLLM, DeepSeek, xAI, one-api, Qwen (arrearage), Volcengine (overdue), Moonshot.
    Sign {
        class: ErrorClass::Quota,
        statuses: ANY,
        codes: "insufficientquota|insufficientuserquota|insufficientbalance|insufficientcredit|billing|budgetexceeded|\
             spendlimitreached|arrearage|overdue|paymentrequired|outofcredits|exceededcurrentquota|freetieronly",
        phrases: "credit balance is too low|budget has been exceeded|insufficient balance|insufficient credit|\
             insufficient quota|insufficient funds|out of credits|more credits|payment required|spending limit|\
             spend limit|hard limit|not enough credit|not enough balance|not enough funds|balance is not enough|\
             negative balance|low balance|please top up|top up your|to top up|recharge|add funds|add credit|in arrears|trial has expired|\
             trial has ended|key limit exceeded|subscription has expired|free credits|余额不足|欠费|额度不足|额度已用",
        pairs: (
            "any credits|your credits|usage limit|account balance",
            "have any|reached|exhausted|used up|run out|ran out|too low|insufficient",
        ),
        unless: "per minute|per second",
    },
    // What a limit of the reply alone says: OpenAI, Anthropic.
    Sign {
        class: ErrorClass::Invalid,
        statuses: REQUEST,
        codes: "",
        phrases: "",
        pairs: (
            "max_tokens|max_completion_tokens|max_output_tokens|max_new_tokens|maxoutputtokens|maximum tokens you|\
             output tokens|completion tokens",
            TOO_MUCH,
        ),
        unless: "context|prompt|input|message",
    },
    // OpenAI, Anthropic, Google, Bedrock, Mistral, xAI, Cohere, Groq, Moonshot, Zhipu, Qwen, Qianfan, vLLM, SGLang, TGI, LMDeploy,
    // llama.cpp, koboldcpp (503), Ollama, LM Studio, GitHub, Cloudflare.
    Sign {
        class: ErrorClass::TooLong,
        statuses: &[400, 403, 413, 422, 500, 503],
        codes: "contextlength|contextsize|contextwindow|contextoverflow|requesttoolarge|inputtoolong|prompttoolong|\
             tokenslimit|stringabovemaxlength",
        phrases: "maximum context length|maximum prompt length|maximum sequence length|max sequence length|max_seq_len|\
             max_model_len|session_len|maximum input length|max input characters|max input tokens|maximum model length|context window|context size|\
             range of input length|text too long|上下文长度",
        pairs: (
            "context|prompt|input|token|conversation|length of the messages|sequence|上下文|输入|提示词|文本长度|总长度|入力",
            TOO_MUCH,
        ),
        unless: "per minute|per day|per second|rate limit|quota|try again in|try again later|please wait|\
             too many requests|.name|call_id|tools[|input_schema|temperature|stop sequence",
    },
    // OpenAI, Azure (responsible AI), OpenRouter, Google, Bedrock (guardrails), Qwen (inspection), DeepSeek (risk), Zhipu.
    Sign {
        class: ErrorClass::Refused,
        statuses: &[400, 403, 404, 406, 409, 422, 424, 446, 451, 500],
        codes: "contentfilter|contentpolicy|invalidprompt|moderation|policyviolation|responsibleai|inspectionfailed|\
             biopolicy|cyberpolicy|safety|prohibitedcontent|sensitive|guardrail|blocklist|contentblocked|unsafe|\
             riskcontrol",
        phrases: "moderation|flagged|content policy|content policies|content management policy|content filter|usage polic|\
             acceptable use|safety system|safety filter|safety polic|inappropriate|content exists risk|\
             sensitive content|unsafe content|harmful|guardrail|prohibited content|illegal content|new_sensitive|\
             high risk|jailbreak|responsible ai|nsfw|safety check|content safety|content security|敏感|违规|不安全|内容审核|安全审核",
        pairs: (
            "violat|blocked|rejected by",
            "polic|content|terms|safety|guideline|filter",
        ),
        unless: "account|api key|suspended|banned|deactivated",
    },
    // OpenAI, Azure, OpenRouter, LiteLLM, vLLM, Portkey, Together, Groq, Fireworks, DeepSeek, Bedrock, Volcengine. LiteLLM says
    // 429 and `no deployments available` while all of them cool down.
    Sign {
        class: ErrorClass::NotFound,
        statuses: &[400, 401, 403, 404, 410, 422, 429],
        codes: "modelnotfound|invalidmodel|modelnotexist|deploymentnotfound|modelnotopen|unsupportedmodel|modelnotsupported|modelnotavailable|modelunavailable",
        phrases: "model not exist|model identifier is invalid|is not a valid model|invalid model name|invalid model id|\
             unknown model|no such model|with on-demand throughput|no deployments available for selected model|allowed to access model|\
             access to model|access to the model|access to this model|模型不存在",
        pairs: (
            "model |model:|deployment",
            "not exist|not found|decommissioned|been retired|no longer available|been deprecated",
        ),
        unless: "try again in",
    },
    // OpenAI, Anthropic, Google, Bedrock, Qwen, OpenRouter.
    Sign {
        class: ErrorClass::Auth,
        statuses: &[401, 403],
        codes: "apikey|authentication|permission|unauthorized|unauthenticated|accessdenied|invalidtoken|\
             accountdeactivated|unsupportedcountry",
        phrases: "api key|api_key|apikey|authenticat|unauthorized|not authorized|permission|missing scope|insufficient scope|credential|access denied|\
             access token|invalid token|account|country|your region|ip address|鉴权|密钥",
        pairs: ("", ""),
        // A firewall's page is about this text.
        unless: "<html",
    },
    // Google, Bedrock.
    Sign {
        class: ErrorClass::Auth,
        statuses: &[400, 403],
        codes: "apikeyinvalid|invalidapikey|unauthenticated|authenticationerror|expiredtoken|unrecognizedclient",
        phrases: "api key not valid|api_key_invalid|invalid api key|incorrect api key|api key expired|token has expired|\
             invalid access token|security token|invalid authentication|authentication failed",
        pairs: ("", ""),
        unless: "",
    },
];

impl Sign {
    /// Whether an error of this status, with these code words and this message in lower case, is one.
    pub(super) fn fits(&self, status: u16, codes: &[String], text: &str) -> bool {
        // A code says too little where a tool is too long.
        let has_code =
            !text.contains("tools[") && codes.iter().any(|code| has_any(code, self.codes));
        let (about, says) = self.pairs;
        let is_said = has_any(text, self.phrases) || has_any(text, about) && has_any(text, says);
        (self.statuses.is_empty() || self.statuses.contains(&status))
            && (has_code || is_said && !has_any(text, self.unless))
    }
}

/// Whether a text has one of some words, which are divided by `|`.
pub(super) fn has_any(text: &str, words: &str) -> bool {
    words
        .split('|')
        .any(|word| !word.is_empty() && text.contains(word))
}
