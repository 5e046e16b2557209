// Errors that say whose fault it is. Any other one is nobody's but the plugin's: the trial is void.

import type { Fault, PromptResult } from "./records.js"

export interface FailureDetails {
  /** A word for machines; becomes the row's `errorCode`. */
  readonly code?: string
  /** What was used before it broke. */
  readonly partial?: PromptResult
}

/** Something around the agent broke, and nothing was learnt about it: the trial is void. */
export class ServiceError extends Error {
  readonly fault: Fault = "service"
  readonly details: FailureDetails

  constructor(message: string, details: FailureDetails = {}) {
    super(message)
    this.details = details
  }
}

/** The agent failed at its task: the trial fails. */
export class AgentError extends ServiceError {
  override readonly fault = "agent"
}

/** An error with a code of the protocol. */
export class RpcError extends Error {
  constructor(readonly code: number, message: string, readonly data?: unknown) {
    super(message)
  }
}

export const codes = {
  unknownMethod: -32601, badParams: -32602, internal: -32603, failed: -32000, cancelled: -32800,
} as const
