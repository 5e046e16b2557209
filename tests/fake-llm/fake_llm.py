#!/usr/bin/env python3
"""Scripted stand-in for an LLM HTTP API (standard library only).

Speaks enough of four wire protocols for real agent CLIs to complete a task:
  POST /v1/chat/completions            OpenAI Chat Completions (SSE and plain)
  POST /v1/responses                   OpenAI Responses        (SSE and plain)
  POST /v1/messages                    Anthropic Messages      (SSE and plain)
  POST /v1/messages/count_tokens
  POST /v1beta/models/M:generateContent, :streamGenerateContent, :countTokens
  GET  /v1/models, /v1beta/models
Any path prefix is accepted (only the tail of the path is looked at).

The server is stateless with respect to conversations: the turn index of a request is the
number of assistant tool-call turns since the last real user message, so parallel side
requests (title generation, summaries, quota probes) do not disturb the script. A request
that offers no tools is a "side" request and gets a short text, unless the script is text-only.
"""
import argparse, gzip, json, os, re, socket, sys, threading, time, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DEFAULT_SCRIPT = {
    "turns": [
        {"tool": "shell", "command": "echo hi > out.txt && cat out.txt", "say": "I'll write the file first.",
         "think": "The user wants a file called out.txt. A shell command is enough."},
        {"text": "Done: out.txt now contains the word hi."},
    ],
    "side_text": "Create out.txt",
    "usage": [
        {"input": 14, "cache_read": 9216, "cache_write": 2731, "output": 96, "reasoning": 32},
        {"input": 187, "cache_read": 11947, "cache_write": 203, "output": 41, "reasoning": 8},
    ],
    "side_usage": {"input": 142, "cache_read": 0, "cache_write": 0, "output": 6, "reasoning": 0},
}

# Preferred shell-like tools, best first; matched case-insensitively against the offered names.
SHELL_TOOLS = ["bash", "exec_command", "shell_command", "shell", "run_shell_command", "run_commands",
               "execute_command", "local_shell", "developer__shell", "container.exec", "terminal", "run_terminal_cmd", "exec"]
AGENT_TOOLS = ["agent", "task", "spawn_agent", "invoke_agent", "delegate", "subagent", "generalist"]
READ_TOOLS = ["read", "read_file", "view", "str_replace_based_edit_tool"]


# Marks the schema of a tool that takes a program in JavaScript, which calls the tools that do the work.
PROGRAM = "program in JavaScript"


def program(turn):
    """The program that runs the turn's command: the text of the turn, or one made of its command."""
    command = json.dumps({"cmd": turn.get("command", ""), "yield_time_ms": 30000})
    return turn.get("program") or f"const result = await tools.exec_command({command});\ntext(result.output);\n"


def pick_tool(tools, kind):
    """tools: {name: json_schema}. Returns (name, schema) or None. `=name` is called whether it is offered or not."""
    if kind.startswith("="):
        return kind[1:], {}
    want = {"shell": SHELL_TOOLS, "read": READ_TOOLS, "agent": AGENT_TOOLS}.get(kind, [kind])
    low = {n.lower(): n for n in tools}
    for w in want:
        if w.lower() in low:
            n = low[w.lower()]
            return n, tools[n]
    for n in tools:  # e.g. mcp-prefixed names
        if any(n.lower().endswith(w.lower()) for w in want):
            return n, tools[n]
    return None


def build_args(schema, turn):
    """Fills the properties of a tool schema from the script turn. A tool that takes a program gets one as text."""
    if PROGRAM in (schema or {}):
        return program(turn)
    props = (schema or {}).get("properties") or {}
    req = set((schema or {}).get("required") or [])
    cmd, path = turn.get("command", ""), turn.get("path", "out.txt")
    args = {}
    for k, p in props.items():
        t = p.get("type") if isinstance(p, dict) else None
        t = (t[0] if isinstance(t, list) else t) or ""
        t = t.lower() if isinstance(t, str) else ""
        if k in ("command", "cmd", "script"):
            args[k] = ["bash", "-lc", cmd] if t == "array" else cmd
        elif k == "commands":
            args[k] = [cmd] if t in ("array", "") else cmd
        elif k in ("prompt", "message", "task", "objective", "instructions") and turn.get("prompt"):
            args[k] = turn["prompt"]
        elif k in ("file_path", "filePath", "path", "absolute_path") and turn.get("path"):
            args[k] = path
        elif k in ("description", "title", "explanation", "justification") and k in req | {"description"}:
            args[k] = "Write out.txt"
        elif k in req:
            args[k] = False if t == "boolean" else 10 if t in ("integer", "number") else [] if t == "array" \
                else {} if t == "object" else (p.get("enum") or ["x"])[0]
    args.update(turn.get("args", {}))
    return args if args or turn["tool"].startswith("=") else {"command": cmd}


def rid(prefix):
    return prefix + uuid.uuid4().hex[:24]


# ---------------------------------------------------------------- request readers
def is_text_item(c):
    return isinstance(c, dict) and c.get("type") in ("text", "input_text")


def turn_chat(b):
    n, messages = 0, b.get("messages", [])
    for i in reversed(range(len(messages))):
        r = messages[i].get("role")
        if r == "user":
            # The text of a skill, and other news, may stand between a tool's result and the answer; that is no prompt of the user.
            before = [m.get("role") for m in messages[:i] if m.get("role") not in ("user", "system", "developer")]
            if not before or before[-1] != "tool":
                break
        if r == "assistant" and messages[i].get("tool_calls"):
            n += 1
    tools = {t["function"]["name"]: t["function"].get("parameters") or {}
             for t in b.get("tools") or [] if t.get("type") == "function" and t.get("function")}
    return n, tools


def is_message(item):
    return item.get("type") == "message" or ("role" in item and item.get("type") is None)


def follows_tool(items, i):
    """Agents tell the model news between a tool's result and its answer; that is no prompt of the user."""
    while i >= 0 and is_message(items[i]) and items[i].get("role") != "assistant":
        i -= 1
    return i >= 0 and (items[i].get("type") or "").endswith("_output")


def is_task(item):
    """What a subagent of Codex is told, behind the conversation that it inherits. Subagents report in the same form."""
    return item.get("type") == "agent_message" and item.get("recipient") != "/root"


def turn_responses(b):
    n, items = 0, b.get("input")
    if isinstance(items, list):
        prev_call = False
        for i, it in reversed(list(enumerate(items))):
            t = it.get("type")
            if is_task(it):
                break
            if is_message(it):
                if it.get("role") == "user" and not follows_tool(items, i):
                    break
            call = t in ("function_call", "custom_tool_call", "local_shell_call")
            if call and not prev_call:
                n += 1
            if t != "reasoning":
                prev_call = call
    # Newer models of Codex are offered their tools among the messages.
    offered = [t for it in (items if isinstance(items, list) else []) if it.get("type") == "additional_tools" for t in it.get("tools") or []]
    tools = {}
    for t in (b.get("tools") or []) + offered:
        if t.get("type") == "function":
            tools[t["name"]] = t.get("parameters") or {}
        elif t.get("type") == "namespace":
            # Tools in the namespace of all functions are called without it.
            space = "" if t["name"] == "functions" else t["name"] + "/"
            tools.update({space + inner["name"]: {PROGRAM: inner["name"]} if inner.get("type") == "custom" else inner.get("parameters") or {}
                          for inner in t.get("tools") or []})
        elif t.get("type") == "local_shell":
            tools["local_shell"] = {"properties": {"command": {"type": "array"}}}
    return n, tools


def turn_anthropic(b):
    n = 0
    for m in reversed(b.get("messages", [])):
        c = m.get("content")
        blocks = c if isinstance(c, list) else [{"type": "text", "text": c}]
        if m.get("role") == "user":
            if not any(isinstance(x, dict) and x.get("type") == "tool_result" for x in blocks):
                break
        elif m.get("role") == "assistant" and any(isinstance(x, dict) and x.get("type") == "tool_use" for x in blocks):
            n += 1
    return n, {t["name"]: t.get("input_schema") or {} for t in b.get("tools") or [] if "input_schema" in t}


def turn_gemini(b):
    n = 0
    for m in reversed(b.get("contents", [])):
        parts = m.get("parts") or []
        if m.get("role") == "model":
            if any("functionCall" in p for p in parts):
                n += 1
        elif not any("functionResponse" in p for p in parts):
            break
    tools = {}
    for t in b.get("tools") or []:
        for f in t.get("functionDeclarations") or []:
            tools[f["name"]] = f.get("parametersJsonSchema") or f.get("parameters") or {}
    return n, tools


def texts_in(content):
    """Texts in a message's content, whatever its form."""
    if isinstance(content, str):
        return [content]
    words = [c.get("text", c.get("encrypted_content")) for c in content or [] if isinstance(c, dict)]
    return [text for text in words if isinstance(text, str)]


def user_texts(proto, b):
    """Everything that the user, or whoever started the conversation, said in it."""
    if proto == "gemini":
        said = [m.get("parts") for m in b.get("contents", []) if m.get("role") != "model"]
    elif proto == "responses":
        items = b.get("input")
        said = [items] if isinstance(items, str) else [i.get("content") for i in items or [] if i.get("role") == "user" or is_task(i)]
    else:
        said = [m.get("content") for m in b.get("messages", []) if m.get("role") == "user"]
    return [text for content in said for text in texts_in(content)]


READERS = {"chat": turn_chat, "responses": turn_responses, "anthropic": turn_anthropic, "gemini": turn_gemini}


def classify(path):
    p = path.split("?")[0].rstrip("/")
    if p.endswith("/messages/count_tokens"):
        return "anthropic_count"
    if p.endswith("/messages"):
        return "anthropic"
    if p.endswith("/chat/completions"):
        return "chat"
    if p.endswith("/responses"):
        return "responses"
    if p.endswith(":countTokens"):
        return "gemini_count"
    if p.endswith(":streamGenerateContent") or p.endswith(":generateContent"):
        return "gemini"
    if p.endswith("/models") or "/models/" in p:
        return "models"
    return "other"


def plan(script, proto, body):
    """Decides what to answer: {"text"|"calls", "say", "think", "usage", "turn", "side"}; a call is (tool, arguments)."""
    n, tools = READERS[proto](body)
    # A subagent is known by a word in what it is told to do.
    talk = next((word for word in script.get("agents", {}) if any(word in text for text in user_texts(proto, body))), "")
    turns = script["agents"][talk]["turns"] if talk else script["turns"]
    text_only = not any("tool" in t for t in turns)
    if not tools and not text_only:
        return dict(side=True, turn=0, text=script["side_text"], usage=script["side_usage"])
    t = turns[min(n, len(turns) - 1)]
    u = script["usage"][min(n, len(script["usage"]) - 1)]
    out = dict(side=False, turn=n, usage=u, think=t.get("think"), talk=talk, script=t)
    if "tool" in t:
        hits = [(pick_tool(tools, c["tool"]), c) for c in [t] + t.get("also", [])]
        if all(hit for hit, _ in hits):
            out.update(calls=[(hit[0], build_args(hit[1], c)) for hit, c in hits], say=t.get("say"))
            return out
        out["text"] = "No usable tool among: " + ", ".join(sorted(tools))
        return out
    fin = pick_tool(tools, "attempt_completion") or pick_tool(tools, "submit_and_exit")
    if fin and not t.get("plain"):
        out.update(calls=[(fin[0], {"result": t["text"]})])
        return out
    out["text"] = t["text"]
    return out


def pieces(s, k=12):
    return [s[i:i + k] for i in range(0, len(s), k)] or [""]


# ---------------------------------------------------------------- books: what was really served, call by call
def usage_of(number, hour):
    """Counts that no other answer has, so that a sum is right only if every part of it is."""
    k = number
    return {"input": 1000 + 13 * k, "cache_read": 20000 + 211 * k, "cache_write": 300 + 17 * k, "output": 400 + 23 * k,
            "reasoning": 40 + 3 * k, "hour": 300 + 17 * k if hour else 0}


def book_of(proto, u):
    """The same as the API tells it, in disjoint classes; null is what it does not tell apart."""
    if proto == "anthropic":
        return {"input": u["input"], "cacheRead": u["cache_read"], "cacheWrite": u["cache_write"], "output": u["output"], "reasoning": None}
    return {"input": u["input"] + u["cache_write"], "cacheRead": u["cache_read"], "cacheWrite": None,
            "output": u["output"] - u["reasoning"], "reasoning": u["reasoning"]}


def told_of(proto, rec, whole):
    """The part of the book that was told: all of it, or what a stream tells before its end."""
    if whole:
        return dict(rec["book"])
    if proto == "anthropic" and rec.get("events"):
        return {**rec["book"], "output": None}
    return {}


# ---------------------------------------------------------------- response writers: yield SSE strings, or a whole dict
def chat_usage(u):
    pt = u["input"] + u["cache_read"] + u["cache_write"]
    return {"prompt_tokens": pt, "completion_tokens": u["output"], "total_tokens": pt + u["output"],
            "prompt_tokens_details": {"cached_tokens": u["cache_read"], "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": u["reasoning"], "audio_tokens": 0,
                                          "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0}}


def chat_plain(b, p):
    msg = {"role": "assistant", "content": p.get("text") or p.get("say"), "refusal": None}
    if p.get("calls"):
        msg["tool_calls"] = [{"id": rid("call_"), "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}
                             for name, args in p["calls"]]
    return {"id": rid("chatcmpl-"), "object": "chat.completion", "created": int(time.time()), "model": b.get("model"),
            "choices": [{"index": 0, "message": msg, "logprobs": None, "finish_reason": "tool_calls" if p.get("calls") else "stop"}],
            "usage": chat_usage(p["usage"])}


def chat_sse(b, p):
    base = {"id": rid("chatcmpl-"), "object": "chat.completion.chunk", "created": int(time.time()), "model": b.get("model")}

    def ch(delta, fin=None):
        return "data: " + json.dumps({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": fin}]}) + "\n\n"
    yield ch({"role": "assistant", "content": ""})
    if p.get("think"):
        for s in pieces(p["think"], 24):
            yield ch({"reasoning_content": s})
    for s in pieces(p.get("text") or p.get("say") or ""):
        yield ch({"content": s})
    for i, (name, args) in enumerate(p.get("calls", [])):
        yield ch({"tool_calls": [{"index": i, "id": rid("call_"), "type": "function", "function": {"name": name, "arguments": ""}}]})
        for s in pieces(json.dumps(args)):
            yield ch({"tool_calls": [{"index": i, "function": {"arguments": s}}]})
    yield ch({}, "tool_calls" if p.get("calls") else "stop")
    if (b.get("stream_options") or {}).get("include_usage") and not p.get("no_usage"):
        yield "data: " + json.dumps({**base, "choices": [], "usage": chat_usage(p["usage"])}) + "\n\n"
    yield "data: [DONE]\n\n"


def resp_usage(u):
    it = u["input"] + u["cache_read"] + u["cache_write"]
    return {"input_tokens": it, "input_tokens_details": {"cached_tokens": u["cache_read"]},
            "output_tokens": u["output"], "output_tokens_details": {"reasoning_tokens": u["reasoning"]}, "total_tokens": it + u["output"]}


def resp_items(p):
    out = []
    if p.get("think"):
        out.append({"type": "reasoning", "id": rid("rs_"), "summary": [{"type": "summary_text", "text": p["think"]}],
                    "encrypted_content": "ZmFrZQ=="})
    text = p.get("text") or p.get("say")
    if text:
        out.append({"type": "message", "id": rid("msg_"), "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": text, "annotations": []}]})
    for name, args in p.get("calls", []):
        if name == "local_shell":
            out.append({"type": "local_shell_call", "id": rid("lsh_"), "call_id": rid("call_"), "status": "completed",
                        "action": {"type": "exec", "command": args["command"], "env": {}}})
        elif isinstance(args, str):
            out.append({"type": "custom_tool_call", "id": rid("ctc_"), "call_id": rid("call_"), "name": name, "input": args, "status": "completed"})
        else:
            space, _, name = name.rpartition("/")
            out.append({"type": "function_call", "id": rid("fc_"), "call_id": rid("call_"), "name": name,
                        **({"namespace": space} if space else {}),
                        "arguments": json.dumps(args), "status": "completed"})
    return out


def resp_plain(b, p, status="completed", items=None, rid_=None):
    return {"id": rid_ or rid("resp_"), "object": "response", "created_at": int(time.time()), "status": status,
            "model": b.get("model"), "output": items if items is not None else resp_items(p), "error": None,
            "incomplete_details": None, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
            "usage": resp_usage(p["usage"]) if status == "completed" and not p.get("no_usage") else None}


def resp_sse(b, p):
    items, id_, n = resp_items(p), rid("resp_"), [0]

    def ev(t, **k):
        n[0] += 1
        return f"event: {t}\ndata: " + json.dumps({"type": t, "sequence_number": n[0] - 1, **k}) + "\n\n"
    yield ev("response.created", response=resp_plain(b, p, "in_progress", [], id_))
    yield ev("response.in_progress", response=resp_plain(b, p, "in_progress", [], id_))
    for i, it in enumerate(items):
        if it["type"] == "message":
            yield ev("response.output_item.added", output_index=i, item={**it, "status": "in_progress", "content": []})
            yield ev("response.content_part.added", item_id=it["id"], output_index=i, content_index=0,
                     part={"type": "output_text", "text": "", "annotations": []})
            for s in pieces(it["content"][0]["text"]):
                yield ev("response.output_text.delta", item_id=it["id"], output_index=i, content_index=0, delta=s)
            yield ev("response.output_text.done", item_id=it["id"], output_index=i, content_index=0, text=it["content"][0]["text"])
            yield ev("response.content_part.done", item_id=it["id"], output_index=i, content_index=0, part=it["content"][0])
        elif it["type"] == "reasoning":
            yield ev("response.output_item.added", output_index=i, item={**it, "summary": []})
            yield ev("response.reasoning_summary_part.added", item_id=it["id"], output_index=i, summary_index=0,
                     part={"type": "summary_text", "text": ""})
            for s in pieces(it["summary"][0]["text"], 24):
                yield ev("response.reasoning_summary_text.delta", item_id=it["id"], output_index=i, summary_index=0, delta=s)
            yield ev("response.reasoning_summary_text.done", item_id=it["id"], output_index=i, summary_index=0, text=it["summary"][0]["text"])
            yield ev("response.reasoning_summary_part.done", item_id=it["id"], output_index=i, summary_index=0, part=it["summary"][0])
        elif it["type"] == "function_call":
            yield ev("response.output_item.added", output_index=i, item={**it, "arguments": "", "status": "in_progress"})
            for s in pieces(it["arguments"]):
                yield ev("response.function_call_arguments.delta", item_id=it["id"], output_index=i, delta=s)
            yield ev("response.function_call_arguments.done", item_id=it["id"], output_index=i, arguments=it["arguments"])
        elif it["type"] == "custom_tool_call":
            yield ev("response.output_item.added", output_index=i, item={**it, "input": "", "status": "in_progress"})
            for s in pieces(it["input"]):
                yield ev("response.custom_tool_call_input.delta", item_id=it["id"], output_index=i, delta=s)
            yield ev("response.custom_tool_call_input.done", item_id=it["id"], output_index=i, input=it["input"])
        else:
            yield ev("response.output_item.added", output_index=i, item=it)
        yield ev("response.output_item.done", output_index=i, item=it)
    yield ev("response.completed", response=resp_plain(b, p, "completed", items, id_))


def anth_usage(u):
    return {"input_tokens": u["input"], "cache_creation_input_tokens": u["cache_write"], "cache_read_input_tokens": u["cache_read"],
            "cache_creation": {"ephemeral_5m_input_tokens": u["cache_write"] - u.get("hour", 0), "ephemeral_1h_input_tokens": u.get("hour", 0)},
            "output_tokens": u["output"], "service_tier": "standard"}


def anth_blocks(b, p):
    out = []
    if p.get("think") and (b.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        out.append({"type": "thinking", "thinking": p["think"], "signature": "ZmFrZS1zaWduYXR1cmU="})
    if p.get("text") or p.get("say"):
        out.append({"type": "text", "text": p.get("text") or p.get("say")})
    for name, args in p.get("calls", []):
        out.append({"type": "tool_use", "id": rid("toolu_"), "name": name, "input": args})
    return out


def anth_plain(b, p):
    return {"id": rid("msg_"), "type": "message", "role": "assistant", "model": b.get("model"), "content": anth_blocks(b, p),
            "stop_reason": "tool_use" if p.get("calls") else "end_turn", "stop_sequence": None, "usage": None if p.get("no_usage") else anth_usage(p["usage"])}


def anth_sse(b, p):
    def ev(t, **k):
        return f"event: {t}\ndata: " + json.dumps({"type": t, **k}) + "\n\n"
    whole = anth_plain(b, p)
    begun = whole["usage"] and {**whole["usage"], "output_tokens": 1}
    yield ev("message_start", message={**whole, "content": [], "stop_reason": None, "usage": begun})
    yield ev("ping")
    for i, bl in enumerate(whole["content"]):
        if bl["type"] == "thinking":
            yield ev("content_block_start", index=i, content_block={"type": "thinking", "thinking": "", "signature": ""})
            for s in pieces(bl["thinking"], 24):
                yield ev("content_block_delta", index=i, delta={"type": "thinking_delta", "thinking": s})
            yield ev("content_block_delta", index=i, delta={"type": "signature_delta", "signature": bl["signature"]})
        elif bl["type"] == "text":
            yield ev("content_block_start", index=i, content_block={"type": "text", "text": ""})
            for s in pieces(bl["text"]):
                yield ev("content_block_delta", index=i, delta={"type": "text_delta", "text": s})
        else:
            yield ev("content_block_start", index=i, content_block={**bl, "input": {}})
            for s in pieces(json.dumps(bl["input"])):
                yield ev("content_block_delta", index=i, delta={"type": "input_json_delta", "partial_json": s})
        yield ev("content_block_stop", index=i)
    yield ev("message_delta", delta={"stop_reason": whole["stop_reason"], "stop_sequence": None},
             **({} if p.get("no_usage") else {"usage": {"output_tokens": p["usage"]["output"]}}))
    yield ev("message_stop")


def gem_usage(u):
    pt = u["input"] + u["cache_read"] + u["cache_write"]
    return {"promptTokenCount": pt, "cachedContentTokenCount": u["cache_read"], "candidatesTokenCount": u["output"] - u["reasoning"],
            "thoughtsTokenCount": u["reasoning"], "totalTokenCount": pt + u["output"],
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": pt}]}


def gem_chunk(model, parts, fin=None, usage=None):
    c = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if fin:
        c["finishReason"] = fin
    out = {"candidates": [c], "modelVersion": model, "responseId": rid("r")}
    if usage:
        out["usageMetadata"] = usage
    return out


def gem_parts(p):
    out = []
    if p.get("think"):
        out.append({"text": p["think"], "thought": True})
    if p.get("text") or p.get("say"):
        out.append({"text": p.get("text") or p.get("say")})
    for name, args in p.get("calls", []):
        out.append({"functionCall": {"name": name, "args": args}, "thoughtSignature": "ZmFrZQ=="})
    return out


def gem_plain(b, p, model="m"):
    return gem_chunk(model, gem_parts(p), "STOP", gem_told(p))


def gem_told(p):
    return None if p.get("no_usage") else gem_usage(p["usage"])


def gem_sse(b, p, model="m"):
    parts = gem_parts(p)
    for i, part in enumerate(parts):
        last = i == len(parts) - 1
        if set(part) == {"text"} and len(part["text"]) > 12:
            ps = pieces(part["text"], 24)
            for j, s in enumerate(ps):
                end = last and j == len(ps) - 1
                yield "data: " + json.dumps(gem_chunk(model, [{"text": s}], "STOP" if end else None, gem_told(p) if end else None)) + "\r\n\r\n"
        else:
            yield "data: " + json.dumps(gem_chunk(model, [part], "STOP" if last else None, gem_told(p) if last else None)) + "\r\n\r\n"


ERR = {
    "anthropic": lambda c: {"type": "error", "error": {"type": {429: "rate_limit_error", 401: "authentication_error", 529: "overloaded_error"}.get(c, "api_error"), "message": f"fake {c}"}},
    "gemini": lambda c: {"error": {"code": c, "message": f"fake {c}", "status": {429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED"}.get(c, "INTERNAL")}},
    "chat": lambda c: {"error": {"message": f"fake {c}", "type": {429: "rate_limit_error", 401: "invalid_request_error"}.get(c, "server_error"), "param": None, "code": {429: "rate_limit_exceeded", 401: "invalid_api_key"}.get(c)}},
}
ERR["responses"] = ERR["chat"]


# A prompt that grew longer than the model's context window, in each API's own words.
OVERFLOW = {
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}},
    "gemini": {"error": {"code": 400, "message": "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}},
    "chat": {"error": {"message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}},
    "responses": {"error": {"message": "Your input exceeds the context window of this model. Please adjust your input and try again.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}},
}


def in_stream_error(proto):
    """An error after the answer has begun with 200."""
    if proto == "responses":
        return {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "fake error"}}}
    if proto == "anthropic":
        return {"type": "error", "error": {"type": "overloaded_error", "message": "fake error"}}
    return {"error": {"code": 500, "message": "fake error", "status": "INTERNAL"}}


def in_stream_overflow(proto):
    """A prompt that grew too long, reported after the answer has begun with 200, as the Responses API does."""
    if proto == "responses":
        return {"type": "response.failed", "response": {"status": "failed", "error": OVERFLOW[proto]["error"]}}
    return OVERFLOW[proto]


class State:
    def __init__(self, a):
        self.a, self.lock, self.seq, self.main_seen, self.served, self.misbehaved = a, threading.Lock(), 0, 0, 0, {}
        self.script = json.load(open(a.script)) if a.script else dict(DEFAULT_SCRIPT)
        for k, v in DEFAULT_SCRIPT.items():
            self.script.setdefault(k, v)
        if a.command:
            self.script["turns"][0]["command"] = a.command
        self.log = open(a.log, "a", buffering=1) if a.log else None
        self.t0 = time.time()

    def serve(self, proto, p, rec):
        """Gives an answer its own counts and keeps them in the books."""
        if not self.script.get("books"):
            return
        with self.lock:
            self.served += 1
            p["usage"] = usage_of(self.served, self.script.get("hour"))
        p["no_usage"] = bool(p.get("script", {}).get("no_usage"))
        rec["book"], rec["talk"] = book_of(proto, p["usage"]), p.get("talk", "")
        rec["hour"] = p["usage"]["hour"] if proto == "anthropic" else 0
        rec["tools"] = [{"name": name, "input": args} for name, args in p.get("calls", [])]
        rec["says"] = p.get("text") or p.get("say") or ""

    def misbehaves(self, p):
        """How this answer is to go wrong, if it is: (what, after how many events)."""
        t = p.get("script", {})
        for what in ("cut", "error", "hang"):
            if what in t:
                key = (p["talk"], p["turn"], what)
                with self.lock:
                    self.misbehaved[key] = self.misbehaved.get(key, 0) + 1
                    if self.misbehaved[key] <= t.get("times", 1):
                        return what, t[what]
        return None, None

    def write(self, rec):
        with self.lock:
            if self.log:
                self.log.write(json.dumps(rec, ensure_ascii=False) + "\n")


HIDE = {"authorization", "x-api-key", "x-goog-api-key", "cookie", "host", "api-key"}


class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    st = None

    def log_message(self, *a):
        pass

    def do_HEAD(self):
        self.handle_any()

    def do_GET(self):
        self.handle_any()

    def do_POST(self):
        self.handle_any()

    def do_PUT(self):
        self.handle_any()

    def body(self):
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            out = b""
            while True:
                n = int(self.rfile.readline().split(b";")[0] or b"0", 16)
                out += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    break
        else:
            out = self.rfile.read(int(self.headers.get("content-length") or 0))
        enc = self.headers.get("content-encoding", "")
        if enc == "gzip":
            out = gzip.decompress(out)
        return out

    def send_json(self, code, obj, rec, extra=None):
        raw = json.dumps(obj).encode()
        rec.update(status=code, response=obj, t_first_ms=self.ms(), t_end_ms=self.ms())
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.send_header("request-id", rec["id"])
        for k, v in (extra or {}).items():
            self.send_header(k, v)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def ms(self):
        return round((time.time() - self.t_req) * 1000, 1)

    def handle_any(self):
        st, a = self.st, self.st.a
        self.t_req = time.time()
        raw = self.body()
        with st.lock:
            st.seq += 1
            seq = st.seq
        try:
            b = json.loads(raw) if raw else None
        except Exception:
            b = {"_raw": raw[:2000].decode("latin1")}
        proto = classify(self.path)
        rec = {"id": f"req_{seq:04d}", "seq": seq, "t_ms": round((self.t_req - st.t0) * 1000, 1), "method": self.command, "path": self.path, "proto": proto,
               "headers": {k.lower(): ("<redacted>" if k.lower() in HIDE and not a.show_keys else v) for k, v in self.headers.items()}, "request": b}
        try:
            self.route(proto, b, rec)
        except (BrokenPipeError, ConnectionResetError) as e:
            rec["client_gone"] = type(e).__name__
            rec["t_end_ms"] = self.ms()
            self.close_connection = True
        except Exception as e:  # keep serving, show the bug in the log
            rec["server_error"] = repr(e)
            self.close_connection = True
            import traceback
            traceback.print_exc()
        st.write(rec)

    def route(self, proto, b, rec):
        st, a = self.st, self.st.a
        if proto == "models":
            return self.send_json(200, {"object": "list", "data": [{"id": m, "object": "model", "created": 1, "owned_by": "fake", "type": "model", "display_name": m} for m in ("fake-model",)], "models": [], "has_more": False}, rec)
        if proto == "anthropic_count":
            return self.send_json(200, {"input_tokens": 11961}, rec)
        if proto == "gemini_count":
            return self.send_json(200, {"totalTokens": 11961}, rec)
        if proto == "other" or not isinstance(b, dict):
            return self.send_json(404 if proto == "other" else 400, {"error": {"message": "not part of the fake"}}, rec)
        p = plan(st.script, proto, b)
        rec["turn"], rec["side"] = p["turn"], p["side"]
        fault = None
        if not p["side"] or a.fault_side:
            with st.lock:
                st.main_seen += 1
                k = st.main_seen
            if a.fault and a.fault_from <= k < a.fault_from + a.fault_count:
                fault = a.fault
        if a.delay_first_ms:
            time.sleep(a.delay_first_ms / 1000)
        if fault == "hang":
            rec["fault"] = "hang"
            st.write({**rec, "note": "hanging"})
            time.sleep(a.hang_s)
            return self.send_json(500, ERR[proto](500), rec)
        if fault == "overflow":
            rec["fault"] = fault
            return self.send_json(400, OVERFLOW[proto], rec, {})
        if fault == "page":
            # Something that is no model answers 200, as a gateway does where a base URL is wrong.
            rec["fault"] = fault
            return self.send_json(200, {"message": "Welcome to the gateway"}, rec, {})
        if fault and fault.isdigit():
            rec["fault"] = fault
            extra = {"retry-after": str(a.retry_after)} if fault in ("429", "529") and a.retry_after else {}
            return self.send_json(int(fault), ERR[proto](int(fault)), rec, extra)
        st.serve(proto, p, rec)
        what, after = st.misbehaves(p)
        if what == "hang" and after == 0:
            rec.update(fault="hang", told={})
            st.write({**rec, "note": "hanging"})
            time.sleep(a.hang_s)
        stream = b.get("stream") is True or ":streamGenerateContent" in self.path
        model = re.sub(r".*/models/([^:?]+).*", r"\1", self.path)
        plain = {"chat": chat_plain, "responses": resp_plain, "anthropic": anth_plain, "gemini": lambda b, p: gem_plain(b, p, model)}[proto]
        if not stream:
            rec["told"] = told_of(proto, rec, True) if "book" in rec and not p["no_usage"] else {}
            return self.send_json(200, plain(b, p), rec)
        gen = {"chat": chat_sse, "responses": resp_sse, "anthropic": anth_sse, "gemini": lambda b, p: gem_sse(b, p, model)}[proto](b, p)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("cache-control", "no-cache")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", rec["id"])
        self.end_headers()
        rec.update(status=200, stream=True, events=[])
        for i, s in enumerate(gen):
            if (fault == "drop" and i == a.drop_after) or (what == "cut" and i == after):
                rec["fault"] = "drop"
                rec["told"] = told_of(proto, rec, False) if "book" in rec else {}
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                rec["t_end_ms"] = self.ms()
                return
            if what == "hang" and i == after:
                rec.update(fault="hang", told=told_of(proto, rec, False))
                st.write({**rec, "note": "hanging"})
                time.sleep(a.hang_s)
            if what == "error" and i == after:
                rec.update(fault="error", told=told_of(proto, rec, False))
                failure = in_stream_overflow if p["script"].get("overflow") else in_stream_error
                s = "data: " + json.dumps(failure(proto)) + "\n\n"
                self.wfile.write(b"%x\r\n" % len(s) + s.encode() + b"\r\n0\r\n\r\n")
                rec["t_end_ms"] = self.ms()
                return
            raw = s.encode()
            self.wfile.write(b"%x\r\n" % len(raw) + raw + b"\r\n")
            self.wfile.flush()
            if i == 0:
                rec["t_first_ms"] = self.ms()
            rec["events"].append([self.ms(), s])
            if a.delay_chunk_ms:
                time.sleep(a.delay_chunk_ms / 1000)
        self.wfile.write(b"0\r\n\r\n")
        if "book" in rec:
            rec["told"] = {} if p["no_usage"] else told_of(proto, rec, True)
        rec["t_end_ms"] = self.ms()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--port", type=int, default=8099)
    ap.add_argument("--log")
    ap.add_argument("--script", help="JSON file, see README")
    ap.add_argument("--command", help="overrides the shell command of turn 0")
    ap.add_argument("--delay-first-ms", type=int, default=0)
    ap.add_argument("--delay-chunk-ms", type=int, default=0)
    ap.add_argument("--fault", help="500, 429, 401, 529, ..., drop (cut the stream), hang, overflow (the prompt is too long) or page (a 200 that is no answer)")
    ap.add_argument("--fault-from", type=int, default=1, help="first main request to hit (1-based)")
    ap.add_argument("--fault-count", type=int, default=10 ** 9)
    ap.add_argument("--fault-side", action="store_true", help="also hit side requests")
    ap.add_argument("--retry-after", type=int, default=0)
    ap.add_argument("--drop-after", type=int, default=4, help="SSE events sent before a drop")
    ap.add_argument("--show-keys", action="store_true", help="credentials in the log")
    ap.add_argument("--hang-s", type=int, default=600)
    ap.add_argument("--ready-file", help="created once the port listens")
    a = ap.parse_args()
    H.st = State(a)
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer.request_queue_size = 64
    srv = ThreadingHTTPServer(("127.0.0.1", a.port), H)
    if a.ready_file:
        open(a.ready_file, "w").write(str(os.getpid()))
    print(f"fake-llm on 127.0.0.1:{srv.server_address[1]}", file=sys.stderr, flush=True)
    srv.serve_forever()


if __name__ == "__main__":
    main()
