//go:build e2e

package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestBench takes the figures of a small cluster and few tasks, part by part.
func TestBench(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o711); err != nil { // the private database passes through
		t.Fatal(err)
	}
	w.env = append(w.env, "TMPDIR="+temp)
	for part, rows := range map[string][]string{
		"local":    {`(?m)^ +2 +14 +[0-9.]+ s +[0-9.]+ s`, `(?m)^ *provisioner +[0-9]+ +[0-9]+ +[0-9]+ *$`},
		"tasks":    {`(?m)^ +100 +[1-9][0-9]* +[1-9][0-9]* +[0-9]+ %`, `tasks per second +[1-9][0-9]*`, `p99 +[0-9.]+ ms`},
		"tenants":  {`(?m)^ +20 +[0-9.]+ % +[0-9.]+ %`, `(?m)^ +alone +[0-9.]+ +[0-9.]+$`},
		"http":     {`(?m)^ +read a cluster of 3 nodes +[1-9][0-9]* `},
		"pages":    {`changes never shown +0\n`, `(?m)^ +search +[1-9][0-9]* +[0-9.]+ +[0-9.]+`, `(?m)^ +q nowhere +[1-9][0-9]* `},
		"fleet":    {`(?m)^ +[1-9][0-9]* +[0-9.]+ +[0-9.]+ +[1-9][0-9]*$`},
		"identity": {`(?m)^ +settings with 0, 20, 1,000 bindings +bindings-20 +[0-9.]+ `, `Preview of 200 rules over 10000 identities: [0-9.]+ s`},
		"compare":  {`(?m)^ +Loom, with connect and bootstrap +[0-9.]+ s`, `connects per second +[1-9][0-9]*`},
		"health":   {`healthy; age of their checks, p99 +60; `, `2 of 60 machines killed, known after +p50 [0-9.]+ s, p99 [0-9.]+ s +p99 100 s`, `2 of 60 services killed, known after +p50 [0-9.]+ s, p99 [0-9.]+ s +p99`},
		"clouds":   {`(?m)^ +OpenStack +[0-9.]+ +1\.0 +1 +[1-8] +0 +0 `, `(?m)^ +OpenStack, slow +[0-9.]+ +1\.0 +1 +[1-8] +0 +0 `, `(?m)^ +DigitalOcean +[0-9.]+ +1\.0 `},
		"solver":   {`(?m)^ +60 +[0-9.]+ ms`},
		"planner":  {`(?m)^ +create 500 nodes +22500 +56000`},
		"makespan": {`(?m)^ +create, apart +1000 +14994 +1000 +[0-9.]+ busiest node`},
	} {
		t.Run(part, func(t *testing.T) {
			out := (&world{t: t, env: w.env}).loom("bench", "--tasks", "100", "--only", part, "2")
			for _, row := range rows {
				if !regexp.MustCompile(row).MatchString(out) {
					t.Errorf("no row %s in:\n%s", row, out)
				}
			}
			left, err := os.ReadDir(temp)
			if err != nil || len(left) > 0 {
				t.Errorf("loom bench left %v, %v", left, err)
			}
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil || strings.Contains(string(mounts), temp) {
				t.Errorf("loom bench left a mount: %v", err)
			}
		})
	}
}
