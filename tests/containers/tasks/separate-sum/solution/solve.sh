#!/bin/sh
mkdir -p /app/out
touch /app/agent-was-here
echo $((19 + 23)) > /app/out/sum.txt
