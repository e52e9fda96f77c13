service "$UNIT" status >/dev/null 2>&1 || service "$UNIT" start
