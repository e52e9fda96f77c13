package mock

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"loom/app/loom"
)

type facts map[string]any

// Log drops the line.
func (facts) Log(string, string) {}

// Fact remembers results.
func (f facts) Fact(results map[string]any) error {
	for key, value := range results {
		f[key] = value
	}
	return nil
}

func spec(action loom.TaskAction, node string, fields map[string]any) *loom.TaskSpec {
	return &loom.TaskSpec{Action: action, Node: loom.NodeID(node), Attempt: 1, Provider: loom.Provider{Type: "mock", Fields: fields}}
}

func TestMock(t *testing.T) {
	t.Parallel()
	p, ctx, sink := New(), context.Background(), facts{}
	got, err := p.Create(ctx, spec(loom.ActionCreate, "a", nil), sink)
	if err != nil || got.Status != 0 || sink["providerid"] != "mock-a" || got.Result["providerid"] != "mock-a" {
		t.Fatalf("create: %+v, %v", got, err)
	}
	first, _ := p.Confirm(ctx, spec(loom.ActionConfirm, "a", nil), sink)
	again, _ := p.Confirm(ctx, spec(loom.ActionConfirm, "a", nil), sink)
	if address := first.Addresses[loom.AccessV4]; !strings.HasPrefix(address, "198.51.100.") || again.Addresses[loom.AccessV4] != address {
		t.Fatalf("confirm: %+v, %+v", first, again)
	}
	got, _ = p.Confirm(ctx, spec(loom.ActionConfirm, "a", map[string]any{"ssh_target": "127.0.0.1:2222"}), sink)
	if got.Addresses[loom.AccessV4] != "127.0.0.1" || got.Result["ssh_port"] != 2222 {
		t.Fatalf("confirm: %+v", got)
	}
	for field, value := range map[string]any{"ssh_target": "nonsense", "addresses": "10.0.0.0/31", "fail_tasks": "create, CONFIRM"} {
		got, err = p.Confirm(ctx, spec(loom.ActionConfirm, "a", map[string]any{field: value}), sink)
		if err != nil || got.Status != 1 || !strings.Contains(got.Message, field) {
			t.Errorf("%s: %+v, %v", field, got, err)
		}
	}
	got, _ = p.Delete(ctx, spec(loom.ActionDelete, "a", nil), sink)
	if value, ok := got.Result["providerid"]; got.Status != 0 || !ok || value != nil {
		t.Fatalf("delete: %+v", got)
	}
	failed := 0
	for i := range 1000 {
		if got, _ := p.Delete(ctx, spec(loom.ActionDelete, fmt.Sprint("node-", i), map[string]any{"fail_percent": "30"}), sink); got.Status != 0 {
			failed++
		}
	}
	if failed < 250 || failed > 350 {
		t.Fatalf("%d of 1000 failed instead of about 300", failed)
	}
	kind := p.Type()
	if errs := kind.Validate(); len(errs) > 0 {
		t.Fatal(errs)
	}
}
