#!/bin/sh
# A container of its own: nothing of the agent is here but the artifact.
[ -e /app/agent-was-here ] && { echo '{"reward": 0, "clean": 0}' > /logs/verifier/reward.json; exit 0; }
if [ "$(cat /app/out/sum.txt 2>/dev/null)" = "$EXPECTED" ]; then
    echo '{"reward": 1, "clean": 1}' > /logs/verifier/reward.json
else
    echo '{"reward": 0, "clean": 1}' > /logs/verifier/reward.json
fi
