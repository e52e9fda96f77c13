package provisioner

import (
	"context"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/planner"
	"loom/provisioner/automator/docker"
	"loom/provisioner/provider/aws"
	"loom/provisioner/remote/sshtest"
)

// TestTypesThatAreOnlyDeclared: a task that meets one fails for good, at once.
func TestTypesThatAreOnlyDeclared(t *testing.T) {
	t.Parallel()
	r := runner(t, nil)
	if err := r.Providers.Declare(aws.Type()); err != nil {
		t.Fatal(err)
	}
	if err := r.Automators.Declare(docker.Type()); err != nil {
		t.Fatal(err)
	}
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
		for _, part := range []string{"“" + c.plugin + "”", "declares the type but does not carry its plugin"} {
			if !strings.Contains(got.Message, part) {
				t.Errorf("%s: %q says nothing of %q", c.action, got.Message, part)
			}
		}
		if d := planner.Decide(planner.DecideInput{Action: c.action, Result: got, HasMachine: true, MaxAttempts: 3}); d.Verdict != planner.Fail {
			t.Errorf("%s is followed by %s", c.action, d.Verdict)
		}
	}
}
