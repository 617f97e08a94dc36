//! certifier
