//! maintenance
