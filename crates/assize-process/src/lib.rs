//! Start, bound and end programs together with all their descendants.
