// The contracts. When what is called is in docs/plugins.md.
/** The time limit of a prompt that is given none, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 120_000;
