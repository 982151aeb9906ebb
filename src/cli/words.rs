//! Numbers in words, the same everywhere.

use crate::units::Usd;

/// `1 action`, `3 actions`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Dollars; what is unknown is a dash, never 0.
pub(crate) fn money(usd: Option<Usd>) -> String {
    match usd {
        None => "$–".to_owned(),
        Some(Usd(amount)) if amount == 0.0 => "$0".to_owned(),
        Some(Usd(amount)) if amount < 0.01 => format!("${amount:.4}"),
        Some(Usd(amount)) => format!("${amount:.2}"),
    }
}

/// Seconds as people say them.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        return format!("{seconds:.2} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// A share as a percentage; unknown is a dash.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.0}%", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_money_is_a_dash() {
        assert_eq!(
            [money(None), money(Some(Usd(0.0))), money(Some(Usd(0.004))), money(Some(Usd(1.5)))],
            ["$–", "$0", "$0.0040", "$1.50"]
        );
    }

    #[test]
    fn times_read_well() {
        assert_eq!(
            [duration(0.05), duration(90.0), duration(200.0), duration(9000.0)],
            ["0.05 s", "90 s", "4 min", "2.5 h"]
        );
    }
}
