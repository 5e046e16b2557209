//! LLM APIs: decoders of the wire, one accounting of tokens, prices, and a small chat client. Knows no trial.
