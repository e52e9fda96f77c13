# Waits until the machine has done what Triton's images do at their first boot,
# which may be to make a file system on the data disk. Run as root by sh.
waited=0
# Patterns with brackets do not match the program that looks for them.
while ps -eo args 2>/dev/null </dev/null | grep -E '(smartdc/firstboo[t]|cloud-ini[t] |cloud-ini[t]$)' >/dev/null; do
  [ "$waited" -lt "${LOOM_FIRST_BOOT:-240}" ] || { echo "what the machine does at its first boot did not end within ${LOOM_FIRST_BOOT:-240} s" >&2; exit 1; }
  [ "$waited" -gt 0 ] || echo 'waiting for the first boot to end'
  sleep 2 </dev/null
  waited=$((waited + 2))
done
