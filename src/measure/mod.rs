//! What is measured without a judge.
