//! Secrets and personal data of kinds that the rules were written for, in sentences, commands and files that they were
//! not: the texts were written without a look at the rules, before those that read them now.

use super::scrubbing_settings::{scrubbed, unfolded};

const SECRETS: &str = include_str!("scrubbing_settings/held_out.txt");
const DECOYS: &str = include_str!("scrubbing_settings/held_out_decoys.txt");

/// The secret of a kind. Put together here, so that no scanner trips on this file; none was ever in use.
fn secret(kind: &str, turn: usize) -> String {
    let letters = |n: usize| {
        "q7Rk2Zt9Lm4Xc8Vb3Nw6Ys1Hd5Jf0GpTaEuIoKlMzBv"
            .chars()
            .cycle()
            .skip(turn)
            .take(n)
            .collect::<String>()
    };
    let hex = |n: usize| {
        "9f3a7c1e5b2d8046fa17ce39bd528e60"
            .chars()
            .cycle()
            .skip(turn)
            .take(n)
            .collect::<String>()
    };
    let join = |parts: &[&str]| parts.concat();
    let passwords = [
        join(&["Sommer", "2024!"]),
        join(&["tr4in", "-Harbor"]),
        join(&["zaq12", "wsx"]),
        join(&["K7m", "#pavel"]),
    ];
    match kind {
        "posthog" => join(&["ph", "c_", &letters(43)]),
        "posthog-personal" => join(&["ph", "x_", &letters(43)]),
        "buildkite" => join(&["bk", "ct_", &hex(40)]),
        "buildkite-user" => join(&["bk", "ua_", &hex(40)]),
        "asana" => join(&["2/12", "07349987654321/1207349912345678:", &hex(32)]),
        "mapbox-secret" => join(&[
            "sk.",
            "eyJ1IjoibWFwcyIsImEiOiJ",
            &letters(30),
            ".",
            &letters(22),
        ]),
        "tailscale" => join(&["ts", "key-auth-k", &letters(11), "CNTRL-", &letters(32)]),
        "supabase" => join(&["sb_", "secret_", &letters(22), "_", &letters(8)]),
        "supabase-old" => join(&["sb", "p_", &hex(40)]),
        "render" => join(&["rn", "d_", &letters(32)]),
        "circleci" => join(&["CCI", "PAT_", &letters(22), "_", &hex(40)]),
        "circleci-project" => join(&["CCI", "PRJ_", &letters(22), "_", &hex(40)]),
        "netlify" => join(&["nf", "p_", &letters(36)]),
        "fernet" => join(&[&letters(43), "="]),
        "private-key-id" => hex(40),
        "pem-body" => join(&[
            "MII",
            "EvQIBADANBgkqhkiG9w0BAQEFAASC",
            &letters(32),
            "\n",
            &letters(64),
            "\n",
            &letters(64),
        ]),
        "recovery" => "8f2k-q9xd\n7h3m-p1vz\n2c6n-w4tb\n9j5r-k8yg".to_owned(),
        "zero-width" => {
            join(&["gh", "p_"])
                + &letters(36)
                    .chars()
                    .map(|c| format!("{c}\u{200b}"))
                    .collect::<String>()
        }
        "htpasswd-line" => join(&["$ap", "r1$x7Kq2Lm9$", &letters(22)]),
        "seed" => "gravity machine north sort system female filter attitude volume fold club stay"
            .to_owned(),
        "sms-zh" | "sms-en" => ["482913", "7731", "905512", "66148"][turn % 4].to_owned(),
        "id-zh" => [
            "11010519491231002X",
            "440308199901101512",
            "310104198807152436",
        ][turn % 3]
            .to_owned(),
        "phone-zh" => ["13800138000", "18612345678", "15900001234"][turn % 3].to_owned(),
        "private-key-zh" => hex(64),
        "token-en" | "token-zh" | "token-flag" | "token-conf" => letters(40),
        "door" => ["482913", "7731", "905512", "66148"][turn % 4].to_owned(),
        "mail-zh" => "kqzvwmtrjxhpdnbc".to_owned(),
        "kubeadm" => join(&["fjgvq4.", "k7bn7xj8b7tfq7xk"]),
        "swarm" => join(&["SWM", "TKN-1-", &hex(50), "-", &hex(25)]),
        "sentry" => join(&[&hex(32), ":", &hex(30)]),
        _ => passwords[turn % passwords.len()].clone(),
    }
}

#[test]
fn at_least_97_of_100_held_out_secrets_are_removed_and_at_most_1_of_100_decoys_changes() {
    let cases = SECRETS.lines().enumerate().filter_map(|(turn, line)| {
        let (kind, text) = line.split_once('\t')?;
        let secret = secret(kind, turn);
        Some((unfolded(text).replace('§', &secret), secret))
    });
    let cases: Vec<(String, String)> = cases.collect();
    // What is left of a secret in several lines or words counts as missed.
    let is_missed = |(text, secret): &&(String, String)| {
        let after = scrubbed(text);
        secret.split_whitespace().any(|part| after.contains(part))
    };
    let missed: Vec<&String> = cases
        .iter()
        .filter(is_missed)
        .map(|(text, _)| text)
        .collect();
    let decoys: Vec<String> = DECOYS.lines().map(unfolded).collect();
    let harmed: Vec<&String> = decoys
        .iter()
        .filter(|text| scrubbed(text).contains("REDACTED_"))
        .collect();
    assert!(cases.len() >= 200 && decoys.len() >= 280);
    assert!(
        missed.len() * 100 <= cases.len() * 3 && harmed.len() * 100 <= decoys.len(),
        "{} of {}: {missed:#?}; {harmed:#?}",
        missed.len(),
        cases.len()
    );
}
