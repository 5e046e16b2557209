#!/bin/sh
grep -qx right /app/answer.txt 2>/dev/null && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt
