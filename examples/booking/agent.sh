# Stands in for an agent: looks for the intent in its prompt and answers as it was told to.
case "$1" in
*book_flight*) echo '{"reply": "请问您要去哪里？", "conversation": [{"role": "assistant", "text": "请问您要去哪里？"}]}' ;;
*) echo '{"reply": "?", "conversation": []}' ;;
esac
