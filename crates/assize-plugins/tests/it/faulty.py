"""A plugin without any kit. `options.fault` says what it does when it is asked about a scenario named `bad`."""

import json
import os
import sys
import time


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(request, result):
    send({"id": request["id"], "result": result})


def misbehave(request):
    if fault == "crash":
        os._exit(3)
    if fault == "hang":
        time.sleep(3600)
    if fault == "text":
        print("this is not a message", flush=True)
    if fault == "broken":
        print('{"id": 1, oops', flush=True)
    if fault == "flood":
        sys.stdout.write("x" * (17 << 20) + "\n")
        sys.stdout.flush()
    if fault == "chatter":
        for number in range(2000):
            print("line", number)
        sys.stdout.flush()
    if fault == "twice":
        answer(request, metrics)
        answer(request, metrics)
    if fault == "wrong id":
        send({"id": 987654321, "result": metrics})
        answer(request, metrics)
    if fault == "wrong shape":
        answer(request, {"metrics": 1})
    if fault == "both":
        send({"id": request["id"], "result": metrics, "error": {"code": 1, "message": "x"}})
    if fault == "error":
        send({"id": request["id"], "error": {"code": -32000, "message": "cannot", "data": {"code": "tired"}}})
    if fault == "stderr":
        sys.stderr.write("noise\n" * 100_000)
        answer(request, metrics)
    if fault == "deep":
        sys.stdout.write('{"id": %d, "result": %s%s}\n' % (request["id"], "[" * 100_000, "]" * 100_000))
        sys.stdout.flush()


fault = None
metrics = [{"name": "answered", "value": 1, "unit": "count"}]
for line in sys.stdin:
    request = json.loads(line)
    method = request["method"]
    if method == "initialize":
        fault = request["params"]["options"].get("fault")
        if fault == "no start":
            sys.stderr.write("the database is not there\n")
            os._exit(1)
        if fault == "refuses version":
            error = {"code": -32022, "message": "no", "data": {"supported": [7]}}
            send({"id": request["id"], "error": error})
            continue
        send({"method": "$/log", "params": {"level": "info", "message": "hello from the plugin"}})
        answer(request, {
            "protocolVersion": 2 if fault == "newer" else 1,
            "info": {"name": "faulty", "version": "1.0.0"},
            "capabilities": {"collectors": [{"id": "answered"}], "unknownContracts": [{}]},
            "unknownField": True,
        })
    elif method == "$/cancel":
        send({"id": request["params"]["id"], "error": {"code": -32800, "message": "cancelled"}})
    elif method == "collector/collect":
        if request["params"]["scenario"]["id"] == "bad":
            misbehave(request)
        elif request["params"]["scenario"]["id"] != "never":
            answer(request, metrics)
