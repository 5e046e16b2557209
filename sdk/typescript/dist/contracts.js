// The contracts. When what is called is in docs/plugins.md.
export {};
