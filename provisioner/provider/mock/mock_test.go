package mock

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
	"loom/provisioner/simcloud"
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

// keyed is a spec with an idempotency key.
func keyed(action loom.TaskAction, node string, attempt int, fields map[string]any) *loom.TaskSpec {
	s := spec(action, node, fields)
	s.IdempotencyKey, s.Attempt = loom.IdempotencyKey(loom.NodeID(node), 1), attempt
	return s
}

func TestMachinesAreFoundAgain(t *testing.T) {
	t.Parallel()
	for _, lookup := range []string{"token", "list"} {
		books := simcloud.NewBooks()
		p, fields := NewOn(books), map[string]any{"lookup": lookup}
		// The id is lost each time, as when the process dies before it is stored.
		for attempt := range 3 {
			if got, err := p.Create(context.Background(), keyed(loom.ActionCreate, "a", attempt+1, fields), facts{}); err != nil || got.Status != 0 {
				t.Fatalf("%s: %+v, %v", lookup, got, err)
			}
		}
		if r := books.Report(); r.Made != 1 || len(r.Doubled) != 0 {
			t.Errorf("%s: %+v", lookup, r)
		}
		// Neither does DELETE know the id.
		if got, err := p.Delete(context.Background(), keyed(loom.ActionDelete, "a", 1, fields), facts{}); err != nil || got.Status != 0 {
			t.Errorf("%s: %+v, %v", lookup, got, err)
		}
		if r := books.Report(); len(r.Live) != 0 || len(r.Unknown) != 0 {
			t.Errorf("%s: %+v", lookup, r)
		}
	}
	// A list that lags behind makes a second one, which is why lag goes with tokens;
	// DELETE removes both.
	books := simcloud.NewBooks()
	p, fields := NewOn(books), map[string]any{"lookup": "list", "list_lag_ms": 60_000}
	for range 2 {
		if got, err := p.Create(context.Background(), keyed(loom.ActionCreate, "a", 1, fields), facts{}); err != nil || got.Status != 0 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if r := books.Report(); r.Made != 2 || len(r.Doubled) != 1 {
		t.Errorf("%+v", r)
	}
	if got, err := p.Delete(context.Background(), keyed(loom.ActionDelete, "a", 1, fields), facts{}); err != nil || got.Status != 0 || len(books.Report().Live) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFaultsOfTheCloud(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	books := simcloud.NewBooks()
	p := NewOn(books)

	// A lie: the machine is made and its answer is lost.
	told := facts{}
	got, err := p.Create(ctx, keyed(loom.ActionCreate, "liar", 1, map[string]any{"lie_percent": 100}), told)
	if err != nil || got.Status == 0 || got.Result != nil || told["providerid"] != nil || len(books.Report().Live) != 1 {
		t.Errorf("lie: %+v, %v, %v", got, err, told)
	}
	// The next attempt finds it.
	if got, err := p.Create(ctx, keyed(loom.ActionCreate, "liar", 2, nil), told); err != nil || got.Status != 0 || told["providerid"] != "mock-liar" || books.Report().Made != 1 {
		t.Errorf("after the lie: %+v, %v, %v", got, err, told)
	}
	// So does a DELETE whose answer is lost.
	if got, err := p.Delete(ctx, keyed(loom.ActionDelete, "liar", 1, map[string]any{"lie_percent": 100, "linger_ms": 10}), told); err != nil || got.Status == 0 || len(books.Report().Live) != 0 {
		t.Errorf("delete that lies: %+v, %v", got, err)
	}
	if got, err := p.Delete(ctx, keyed(loom.ActionDelete, "liar", 2, nil), told); err != nil || got.Status != 0 {
		t.Errorf("delete what is gone: %+v, %v", got, err)
	}
	// What is gone does not boot.
	if got, err := p.Confirm(ctx, keyed(loom.ActionConfirm, "liar", 1, nil), told); err != nil || got.Status == 0 {
		t.Errorf("confirm what is gone: %+v, %v", got, err)
	}

	// A hang ends when it is told to, and has made nothing.
	hung, cancel := context.WithCancelCause(ctx)
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("told to")) })
	if got, err := p.Create(hung, keyed(loom.ActionCreate, "hung", 1, map[string]any{"hang_percent": 100}), told); err != nil || got.Status == 0 || !strings.Contains(got.Message, "told to") || len(books.Report().Live) != 0 {
		t.Errorf("hang: %+v, %v", got, err)
	}

	// A machine boots for as long as it is told to.
	fields := map[string]any{"boot_ms": 50}
	began := time.Now()
	if got, err := p.Create(ctx, keyed(loom.ActionCreate, "slow", 1, fields), told); err != nil || got.Status != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err := p.Confirm(ctx, keyed(loom.ActionConfirm, "slow", 1, fields), told); err != nil || got.Status != 0 || time.Since(began) < 50*time.Millisecond {
		t.Errorf("boot: %+v, %v", got, err)
	}

	// By node, all attempts fail or none does.
	for i := range 100 {
		node, failed := fmt.Sprint("node-", i), 0
		for attempt := range 3 {
			got, err := p.Delete(ctx, keyed(loom.ActionDelete, node, attempt+1, map[string]any{"fail_percent": 30, "fail_by": "node"}), told)
			if err != nil {
				t.Fatal(err)
			}
			failed += got.Status
		}
		if failed != 0 && failed != 3 {
			t.Errorf("%s failed %d times of 3", node, failed)
		}
	}
}

func TestSimulatorKeepsBooksOfWhatIsDone(t *testing.T) {
	t.Parallel()
	books := simcloud.NewBooks()
	server := httptest.NewServer(simcloud.Handler(books))
	defer server.Close()
	p, fields := New(), map[string]any{"simulator": server.URL}
	s := keyed(loom.ActionCreate, "a", 2, fields)
	s.Ref.Number = 7
	if got, err := p.Create(context.Background(), s, facts{}); err != nil || got.Status != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if done, begun := books.Done(s.Ref.String()); begun != 1 || done[2] != 1 {
		t.Errorf("%v, %d", done, begun)
	}
	s.Attempt, s.Provider.Fields = 3, map[string]any{"simulator": server.URL, "fail_tasks": "create"}
	if got, err := p.Create(context.Background(), s, facts{}); err != nil || got.Status == 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if done, begun := books.Done(s.Ref.String()); begun != 2 || done[3] != 0 {
		t.Errorf("what failed counts as done: %v, %d", done, begun)
	}
	list, err := p.List(context.Background(), &loom.ProviderCall{Provider: loom.Provider{Type: "mock", Fields: fields}})
	if err != nil || len(list) != 1 || list[0].Node != "a" {
		t.Errorf("%+v, %v", list, err)
	}
}
