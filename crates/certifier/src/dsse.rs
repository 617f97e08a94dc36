//! dsse
