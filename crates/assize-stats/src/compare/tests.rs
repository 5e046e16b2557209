//! Behaviour of whole comparisons.
