//! Placeholder until its first content.
