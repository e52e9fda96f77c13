package provisioner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/provisioner/remote"
)

// hostsScript replaces the block of one cluster in /etc/hosts by what comes on
// standard input and leaves other lines alone. A begin without an end is
// somebody's edit: then nothing after it is dropped.
const hostsScript = `t=/etc/.hosts.loom
awk -v begin="$LOOM_BEGIN" -v end="$LOOM_END" '
  part == "new" { block = block $0 "\n"; next }
  $0 == begin && !inside { inside = 1; held = 0; next }
  $0 == end && inside { inside = 0; held = 0; next }
  inside { hold[++held] = $0; next }
  { print }
  END { if (inside) for (i = 1; i <= held; i++) print hold[i]; printf "%s\n%s%s\n", begin, block, end }
' part=new - part=old /etc/hosts >"$t" && chmod 0644 "$t" || { rm -f "$t"; exit 1; }
if cmp -s "$t" /etc/hosts; then rm -f "$t"; exit 0; fi
# In a container the file may be mounted, which cannot be replaced.
mv -f "$t" /etc/hosts 2>/dev/null || { cat "$t" >/etc/hosts && rm -f "$t"; } || exit 1
! command -v restorecon >/dev/null 2>&1 || restorecon /etc/hosts`

// manageHosts writes the cluster's nodes into /etc/hosts before INSTALL and
// CONFIGURE, if the provider's field manage_hosts is on.
func manageHosts(ctx context.Context, conn *remote.Conn, spec *loom.TaskSpec) error {
	if spec.Action != loom.ActionInstall && spec.Action != loom.ActionConfigure || !loom.SwitchedOn(spec.Provider.Fields["manage_hosts"]) {
		return nil
	}
	cluster := spec.Ref.Operation.Cluster.String()
	_, err := conn.Run(ctx, "update of /etc/hosts", remote.Command{Root: true, Text: hostsScript, Stdin: strings.NewReader(hostLines(spec.Nodes)),
		Env: map[string]string{"LOOM_BEGIN": "# loom begin " + cluster, "LOOM_END": "# loom end " + cluster}})
	return err
}

// hostLines returns a line per node: internal address, full name, short name.
func hostLines(nodes map[loom.NodeID]loom.NodeProperties) string {
	list := make([]loom.NodeProperties, 0, len(nodes))
	for _, node := range nodes {
		list = append(list, node)
	}
	slices.SortFunc(list, func(a, b loom.NodeProperties) int { return a.Number - b.Number })
	var lines strings.Builder
	for _, node := range list {
		address := node.Addresses[loom.BindV4]
		if address == "" || node.Hostname == "" {
			continue
		}
		short, _, _ := strings.Cut(node.Hostname, ".")
		fmt.Fprintf(&lines, "%s %s %s\n", address, node.Hostname, short)
	}
	return lines.String()
}
