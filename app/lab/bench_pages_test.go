package lab

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestPickedPages(t *testing.T) {
	t.Parallel()
	scale := fullScale
	rest, err := scale.pick([]string{"--pages", "usage,its n,q 77", "--seconds=7", "3"})
	if err != nil || len(rest) != 1 || scale.while != 7*time.Second || len(fullScale.picked) > 0 {
		t.Fatalf("%v, %v, %+v", rest, err, scale)
	}
	var names []string
	for _, p := range append(scale.pickedOf(pagesOf(1, "n", 1080, 14040)), scale.pickedOf(filtersOf())...) {
		names = append(names, p.name)
	}
	if got := strings.Join(names, ", "); got != "its nodes, usage, q 77" || scale.wants(livePages) {
		t.Errorf("picked %s, live pages %v", got, scale.wants(livePages))
	}
	if all := fullScale; len(all.pickedOf(filtersOf())) != len(filtersOf()) || !all.wants(livePages) {
		t.Error("without a choice something is left out")
	}
	for _, wrong := range [][]string{{"--pages", ""}, {"--pages", "home,nowhere at all"}, {"--seconds", "0"}, {"--seconds", "many"}} {
		if _, err := scale.pick(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

// Whoever measures tells what gave no answer, and goes on: another program may have taken
// the address of a process, a page may hang.
func TestBenchWaitsForNoAnswerForEver(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // its backlog takes connections, nobody reads them
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // of a test
	if isWell(t.Context(), silent.Addr().String(), 50*time.Millisecond) {
		t.Error("who says nothing is well")
	}
	v := &visitor{"http://" + silent.Addr().String(), &http.Client{}, 50 * time.Millisecond}
	if _, err := v.send(t.Context(), http.MethodGet, "/clusters", nil, false); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "/clusters") {
		t.Errorf("a page without an answer: %v", err)
	}
	if err := v.part(t.Context(), livePart{"x", "/part", nil}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "/part") {
		t.Errorf("a part without an answer: %v", err)
	}
}
