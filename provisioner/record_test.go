package provisioner

import (
	"maps"
	"strings"
	"sync"
)

// record is a sink that remembers.
type record struct {
	mu    sync.Mutex
	lines []string
	facts map[string]any
}

// Log remembers a line.
func (r *record) Log(stream, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, stream+": "+text)
}

// Fact remembers results.
func (r *record) Fact(results map[string]any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.facts == nil {
		r.facts = map[string]any{}
	}
	maps.Copy(r.facts, results)
	return nil
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}
