import type { PluginDefinition } from "./contracts.js";
/** Serves a plugin until stdin is closed. What is printed goes to stderr, which is the plugin's log. */
export declare function servePlugin(plugin: PluginDefinition): void;
/** One conversation with Assize. */
export declare class Session {
    private readonly plugin;
    private readonly write;
    private readonly methods;
    private readonly underway;
    private pieces;
    private outgoing;
    constructor(plugin: PluginDefinition, write: (text: string) => void);
    /** Takes bytes as they come; a message ends with a line end. */
    hear(chunk: Buffer): void;
    private understand;
    private answer;
    private result;
    private initialized;
    /** The answer is not needed any more, but it is owed. A hook is answered when it is over, since others wait for that. */
    private cancel;
    /** Answers that become ready together go out together. */
    private send;
    private flush;
}
