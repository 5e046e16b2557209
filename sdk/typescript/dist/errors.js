// Errors that say whose fault it is. Any other one is nobody's but the plugin's: the trial is void.
/** Something around the agent broke, and nothing was learnt about it: the trial is void. */
export class ServiceError extends Error {
    fault = "service";
    details;
    constructor(message, details = {}) {
        super(message);
        this.details = details;
    }
}
/** The agent failed at its task: the trial fails. */
export class AgentError extends ServiceError {
    fault = "agent";
}
/** An error with a code of the protocol. */
export class RpcError extends Error {
    code;
    data;
    constructor(code, message, data) {
        super(message);
        this.code = code;
        this.data = data;
    }
}
export const codes = {
    unknownMethod: -32601, badParams: -32602, internal: -32603, failed: -32000, cancelled: -32800,
};
