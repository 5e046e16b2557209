// Names for the collectors that Assize has built in. They run in Assize itself and never here.
class BuiltIn {
    id;
    constructor(id) {
        this.id = id;
    }
    collect() {
        throw new Error(`\`${this.id}\` is built into Assize and is not served by a plugin`);
    }
}
/** Tokens: `tokens_*`. */
export class TokenCollector extends BuiltIn {
    constructor() {
        super("token");
    }
}
/** Times: `latency_*`. */
export class LatencyCollector extends BuiltIn {
    constructor() {
        super("latency");
    }
}
/** Money: `cost_*`. */
export class CostCollector extends BuiltIn {
    constructor() {
        super("cost");
    }
}
/** Tools: `tool_calls_*`. */
export class ToolCallCollector extends BuiltIn {
    constructor() {
        super("tool_calls");
    }
}
export function isBuiltIn(collector) {
    return collector instanceof BuiltIn;
}
