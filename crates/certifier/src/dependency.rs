//! dependency
