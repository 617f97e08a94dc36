//! certificate
