//! `cache key`: the key that uploaded entries are signed with.

use clap::Args;
use serde_json::json;

use crate::cli::failure::{Exit, Failure};
use crate::cli::remote::SIGNING_KEY;
use crate::cli::terminal::Console;
use base::locale::word;
use base::say;
use store::remote::SigningKey;

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The writer's name, as others see it
    #[arg(long, default_value = "me", value_parser = name)]
    name: String,
}

fn name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    let is_good = !text.trim().is_empty() && text.chars().all(is_plain);
    if is_good {
        Ok(text.trim().to_owned())
    } else {
        Err(word("expected letters, digits, spaces, `-`, `_` and `.`", "应为字母、数字、空格、`-`、`_` 和 `.`").into())
    }
}

pub(super) fn run(KeyArgs { name }: &KeyArgs, console: &Console) -> Result<Exit, Failure> {
    let (key, secret) = SigningKey::generate().map_err(|error| Failure::error(error.to_string()))?;
    let public = key.public();
    console.report(&json!({ "name": name, "public": public.to_string(), "secret": secret }), || {
        console.print(&say!("The secret key signs what you upload. Keep it in your secret store; it is written nowhere else:\n\
             {SIGNING_KEY}={secret}\n\n\
             The public key is what others trust. Add it to pipeline.toml, or to COMPEVAL_TRUST in CI:\n\
             [cache]\n\
             trust = [\"{name} {public}\"]", "私钥用于签署上传内容。请保存在机密存储中，它不会写到别处：\n{SIGNING_KEY}={secret}\n\n公钥是他人所信任的。请加入 pipeline.toml，或 CI 中的 COMPEVAL_TRUST：\n[cache]\ntrust = [\"{name} {public}\"]"
        ));
    });
    Ok(Exit::Done)
}
