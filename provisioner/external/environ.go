package external

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
)

// usualPath stands in for a PATH that this process does not have.
const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// passedOn are variables of the host that every plugin gets.
var passedOn = []string{"TZ", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy"}

func (h *Host) path() string {
	if path, ok := h.variable("PATH"); ok && path != "" {
		return path
	}
	return usualPath
}

// environment is all that a plugin gets. Nothing in it is
// secret.
func (h *Host) environment(c *call, w *workspace, dir string, deadline time.Time, lent []string) []string {
	scratch := w.scratch()
	env := []string{
		"PATH=" + h.path(),
		"LOOM_PROTOCOL=" + strconv.Itoa(Protocol), "LOOM_KIND=" + c.kind, "LOOM_TYPE=" + c.typeName, "LOOM_ACTION=" + c.action,
		"LOOM_DEADLINE=" + deadline.UTC().Format(time.RFC3339), "LOOM_PLUGIN_DIR=" + c.plugin.Dir,
		"LOOM_RESOURCES=" + dir, "LOOM_SCRATCH=" + scratch, "LOOM_LOG_LEVEL=" + or(h.Level, "info"),
	}
	passed := c.plugin.Manifest.Env
	if !c.bare {
		env = append(env, "HOME="+scratch, "TMPDIR="+scratch, "LANG=C.UTF-8")
		passed = append(slices.Clone(passedOn), passed...)
	}
	for _, name := range passed {
		if value, ok := h.variable(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range []string{"LOOM_TASK_ID", "LOOM_ATTEMPT", "LOOM_CLUSTER_ID", "LOOM_NODE_ID", "LOOM_TENANT_ID"} {
		env = append(env, name+"="+oneLine(c.ids[name]))
	}
	return append(env, lent...)
}

// idsOf are the names of a task in the environment.
func idsOf(spec *loom.TaskSpec) map[string]string {
	return map[string]string{
		"LOOM_TASK_ID": spec.Ref.String(), "LOOM_ATTEMPT": strconv.Itoa(spec.Attempt), "LOOM_CLUSTER_ID": spec.Ref.Operation.Cluster.String(),
		"LOOM_NODE_ID": string(spec.Node), "LOOM_TENANT_ID": string(spec.Tenant),
	}
}

func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, text)
}
