// Made from the contracts in Rust by `UPDATE_SCHEMAS=1 cargo test kit_types`. Not for editing.
export {};
