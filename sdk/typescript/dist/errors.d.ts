import type { Fault, PromptResult } from "./records.js";
export interface FailureDetails {
    /** A word for machines; becomes the row's `errorCode`. */
    readonly code?: string;
    /** What was used before it broke. */
    readonly partial?: PromptResult;
}
/** Something around the agent broke, and nothing was learnt about it: the trial is void. */
export declare class ServiceError extends Error {
    readonly fault: Fault;
    readonly details: FailureDetails;
    constructor(message: string, details?: FailureDetails);
}
/** The agent failed at its task: the trial fails. */
export declare class AgentError extends ServiceError {
    readonly fault = "agent";
}
/** An error with a code of the protocol. */
export declare class RpcError extends Error {
    readonly code: number;
    readonly data?: unknown | undefined;
    constructor(code: number, message: string, data?: unknown | undefined);
}
export declare const codes: {
    readonly unknownMethod: -32601;
    readonly badParams: -32602;
    readonly internal: -32603;
    readonly failed: -32000;
    readonly cancelled: -32800;
};
