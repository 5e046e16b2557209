/** What is given where everything was measured: the specification has no `null` for numbers that nobody knows, and no `readonly` in the lab. */
export type Known<T> = T extends null
  ? never
  : T extends Date
    ? T
    : T extends readonly (infer Item)[]
      ? Known<Item>[]
      : T extends object
        ? { -readonly [Key in keyof T]: Known<T[Key]> }
        : T
