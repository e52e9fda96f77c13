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

// lines counts what a task says.
type lines int

// Log counts.
func (l *lines) Log(string, string) { *l++ }

// Fact is never called: this automator learns nothing.
func (*lines) Fact(map[string]any) error { return errors.New("no facts were expected") }

func spec(node string, attempt int, fields map[string]string) *loom.TaskSpec {
	return &loom.TaskSpec{Action: loom.ActionInstall, Node: loom.NodeID(node), Attempt: attempt,
		Service: &loom.TaskService{Name: "web", Action: loom.ServiceAction{Type: "mock", Fields: fields}}}
}

func run(t *testing.T, ctx context.Context, s *loom.TaskSpec) (loom.TaskResult, int) {
	t.Helper()
	var said lines
	got, err := New().Run(ctx, s, nil, "", &said)
	if err != nil {
		t.Fatal(err)
	}
	return got, int(said)
}

func TestPercentages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, field := range []string{"fail_percent", "lie_percent"} {
		struck := 0
		for i := range 1000 {
			s := spec(fmt.Sprint("node-", i), 1, map[string]string{field: "30"})
			got, _ := run(t, ctx, s)
			again, _ := run(t, ctx, s)
			if got.Status != again.Status {
				t.Fatalf("%s: the same attempt came out differently", field)
			}
			if got.Status != 0 {
				struck++
				if !strings.Contains(got.Message, field) {
					t.Errorf("message %q", got.Message)
				}
			}
		}
		if struck < 250 || struck > 350 {
			t.Errorf("%s: %d of 1000 instead of about 300", field, struck)
		}
	}
	if got, said := run(t, ctx, spec("a", 1, map[string]string{"output_lines": "3", "fail_percent": "nonsense"})); got.Status != 0 || said != 3 {
		t.Errorf("%+v, %d lines", got, said)
	}
	kind := New().Type()
	if errs := kind.Validate(); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestFailureThatIsFinal(t *testing.T) {
	t.Parallel()
	fields := map[string]string{"fail_percent": "100"}
	if got, _ := run(t, context.Background(), spec("a", 1, fields)); got.Status == 0 || got.Retryable != nil {
		t.Errorf("%+v", got)
	}
	fields["give_up"] = "true"
	if got, _ := run(t, context.Background(), spec("a", 1, fields)); got.Status == 0 || got.Retryable == nil || *got.Retryable {
		t.Errorf("%+v", got)
	}
}

func TestHangEndsWhenItIsToldTo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("told to")) })
	if got, _ := run(t, ctx, spec("a", 1, map[string]string{"hang_percent": "100"})); got.Status == 0 || !strings.Contains(got.Message, "told to") {
		t.Errorf("%+v", got)
	}
	if got, _ := run(t, context.Background(), spec("a", 1, map[string]string{"hang_percent": "100", "hang_ms": "5"})); got.Status != 0 {
		t.Errorf("%+v", got)
	}
}

func TestSimulatorHearsOfEffects(t *testing.T) {
	t.Parallel()
	books := simcloud.NewBooks()
	server := httptest.NewServer(simcloud.Handler(books))
	defer server.Close()
	s := spec("a", 4, map[string]string{"lie_percent": "100"})
	s.Provider = loom.Provider{Type: "mock", Fields: map[string]any{"simulator": server.URL}}
	if got, _ := run(t, context.Background(), s); got.Status == 0 {
		t.Errorf("it did not lie: %+v", got)
	}
	if done, begun := books.Done(s.Ref.String()); begun != 1 || done[4] != 1 {
		t.Errorf("what was done and denied: %v, %d", done, begun)
	}
	s.Attempt, s.Service.Action.Fields = 5, map[string]string{"fail_percent": "100"}
	if got, _ := run(t, context.Background(), s); got.Status == 0 {
		t.Errorf("%+v", got)
	}
	if done, begun := books.Done(s.Ref.String()); begun != 2 || done[5] != 0 {
		t.Errorf("what failed: %v, %d", done, begun)
	}
	s.Attempt = 6
	if _, err := New().Bootstrap(context.Background(), s, nil, "", new(lines)); err != nil {
		t.Fatal(err)
	}
	if done, _ := books.Done(s.Ref.String()); done[6] != 1 {
		t.Errorf("bootstrap: %v", done)
	}
	server.Close()
	s.Attempt = 7
	if got, _ := run(t, context.Background(), s); got.Status == 0 || !strings.Contains(got.Message, "simulator") {
		t.Errorf("without a simulator: %+v", got)
	}
}
