"""A plugin for Assize: a metric and a scorer of one's own. `assize plugins test python3 plugin.py` tries it."""

from assize import Plugin

plugin = Plugin("mine", version="0.1.0")


@plugin.collector("answer_words")
def answer_words(result, scenario, mode, trace):
    words = len(result["text"].split())
    return [{"name": "answer_words", "value": words, "unit": "words"}]


@plugin.scorer("says")
async def says(scenario, context):
    expected = str(scenario["extensions"].get("says", "hello"))
    passed = expected in context["agentOutput"]
    check = {"id": "says", "description": f"the answer says {expected!r}", "passed": passed}
    return {"success": passed, "passed": int(passed), "total": 1, "details": [check], "outputValid": True}


plugin.serve()
