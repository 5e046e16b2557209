"""A collector, in the protocol itself: it needs no kit."""
import json, sys

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    method, result = request["method"], None
    if method == "initialize":
        result = {"protocolVersion": 1, "info": {"name": "chaos", "version": "1"}, "capabilities": {"collectors": [{"id": "length"}]}}
    elif method.endswith("collect"):
        result = [{"name": "answer_length", "value": len(request["params"].get("result", {}).get("text", "")), "unit": "bytes"}]
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
