import type { Collector } from "./contracts.js";
import type { CustomMetric } from "./records.js";
declare class BuiltIn implements Collector {
    readonly id: string;
    constructor(id: string);
    collect(): readonly CustomMetric[];
}
/** Tokens: `tokens_*`. */
export declare class TokenCollector extends BuiltIn {
    constructor();
}
/** Times: `latency_*`. */
export declare class LatencyCollector extends BuiltIn {
    constructor();
}
/** Money: `cost_*`. */
export declare class CostCollector extends BuiltIn {
    constructor();
}
/** Tools: `tool_calls_*`. */
export declare class ToolCallCollector extends BuiltIn {
    constructor();
}
export declare function isBuiltIn(collector: Collector): boolean;
export {};
