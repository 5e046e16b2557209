//! Workspaces.
