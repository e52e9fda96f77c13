#!/bin/sh
# json_substitution_example.sh [KEY...]: shows how a script reads facts of its
# task; prints the value of each key.
[ $# -gt 0 ] || set -- '^/config/hostname$' '^/config/ipaddresses/access_v4$' '^/config/services'
status=0
for key; do
  if value=$(loom_lookup_key "$key"); then
    echo "$key = $value"
  else
    status=1
  fi
done
exit $status
