#!/bin/sh
# The health check has been tried twice before the agent came.
if [ -f /app/ready ] && [ "$(cat /app/greeting.txt)" = hello ] && [ -f /app/built.txt ]; then
    echo 1 > /logs/verifier/reward.txt
else
    echo "no greeting"
    echo 0 > /logs/verifier/reward.txt
fi
