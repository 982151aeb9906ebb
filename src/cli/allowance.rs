//! What a command may spend, as the user says it.

use std::path::Path;

use super::budget_args::BudgetArgs;
use super::failure::Failure;
use crate::provider::{ModelUse, Prices};
use crate::scheduler::Allowance;
use crate::units::{Tokens, Usd};

impl BudgetArgs {
    /// What may be spent on `models`. Money can be limited only where every price is known; `file` is where one can
    /// be declared.
    pub(crate) fn allowance<'m>(
        &self,
        models: impl Iterator<Item = &'m ModelUse>,
        prices: &Prices,
        file: &Path,
    ) -> Result<Allowance, Failure> {
        let requests = self.max_requests;
        let Some(limit) = self.max_cost else { return Ok(Allowance { usd: None, requests }) };
        if !limit.is_finite() || limit < 0.0 {
            return Err(Failure::input(format!("--max-cost {limit} is no amount of money: expected 0 or more")));
        }
        let is_unknown = |model: &&ModelUse| !model.is_lexical() && prices.price(&model.reference, Tokens(0)).is_none();
        let mut models = models;
        if let Some(model) = models.find(is_unknown) {
            let model = &model.reference;
            let message = format!("--max-cost cannot be kept: the price of `{model}` is not known");
            let hint = format!(
                "declare it in {}: [prices.\"{model}\"] with input and output in USD per million tokens",
                file.display()
            );
            return Err(Failure::input(message).hinted(hint));
        }
        Ok(Allowance { usd: Some(Usd(limit)), requests })
    }
}
