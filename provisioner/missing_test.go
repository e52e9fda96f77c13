package provisioner

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/planner"
	"loom/provisioner/remote/sshtest"
)

// TestMissingPlugins: a task whose plugin is not there fails for good, at once.
func TestMissingPlugins(t *testing.T) {
	t.Parallel()
	r := runner(t, nil)
	for _, c := range []struct {
		action loom.TaskAction
		plugin string
		status int
	}{
		{loom.ActionCreate, "aws", 200}, {loom.ActionConfirm, "aws", 1}, {loom.ActionDelete, "aws", 1},
		{loom.ActionBootstrap, "docker", 1}, {loom.ActionStart, "docker", 1},
	} {
		spec := createSpec()
		spec.Action = c.action
		if c.plugin == "aws" {
			spec.Provider.Type = "aws"
		}
		spec.Automators = []string{"docker"}
		spec.Service = &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "docker"}}
		got := r.Run(context.Background(), spec, &sshtest.Record{})
		if got.Status != c.status || got.Retryable == nil || *got.Retryable || got.Interrupted {
			t.Errorf("%s: %+v", c.action, got)
		}
		if part := fmt.Sprintf("of type %q; start one that carries its plugin", c.plugin); !strings.Contains(got.Message, part) {
			t.Errorf("%s: %q says nothing of %q", c.action, got.Message, part)
		}
		if d := planner.Decide(planner.DecideInput{Action: c.action, Result: got, HasMachine: true, MaxAttempts: 3}); d.Verdict != planner.Fail {
			t.Errorf("%s is followed by %s", c.action, d.Verdict)
		}
	}
}
