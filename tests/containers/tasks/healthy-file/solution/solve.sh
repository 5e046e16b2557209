#!/bin/sh
echo "$GREETING" > /app/greeting.txt
