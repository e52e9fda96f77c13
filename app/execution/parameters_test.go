package execution_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"loom/app/execution"
	"loom/app/loom"
)

// TestSecretParametersStayOutOfLogs: their values are hidden, macros filled in, whatever their
// keys are called, and a value that its macros make wrong fails the task for good.
func TestSecretParametersStayOutOfLogs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.plan(loom.ClusterCreate, loom.ActionInstall)
	key := w.deliver(1)
	service := func(pattern string) {
		w.exec(`UPDATE clusters SET config = '{"web": {"pin": "planted-%num.service.web%"}}', services = '{"web": {"name": "web",
			"provisioner": {"actions": {"install": {"type": "shell", "fields": {}}}}, "parameters": [{"key": "web.pin", "type": "text", "secret": true, "pattern": "` + pattern + `"}]}}'`)
	}
	service("planted-[0-9]+")
	s, err := w.ops.Spec(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(s.Sensitive, "planted-1") {
		t.Errorf("logs hide %q", s.Sensitive)
	}
	service("[a-z]+")
	_, err = w.ops.Spec(ctx, key)
	var refused *execution.SpecError
	if !errors.As(err, &refused) || *refused.Result.Retryable || !strings.Contains(refused.Result.Message, "web: web.pin must be one line of text, of the form [a-z]+") {
		t.Errorf("a value that its macros make wrong: %v", err)
	}
}
