#!/bin/sh
echo wrong > /app/answer.txt
