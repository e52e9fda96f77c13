package sshtest

import (
	"strings"
	"sync"
)

// Record is a sink that remembers. The zero value is ready.
type Record struct {
	mu    sync.Mutex
	lines []string
	facts []map[string]any
}

// Log remembers a line, behind the name of its stream.
func (r *Record) Log(stream, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, stream+": "+text)
}

// Fact remembers results.
func (r *Record) Fact(results map[string]any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts = append(r.facts, results)
	return nil
}

// Text returns all lines.
func (r *Record) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// Facts returns the results in the order in which they came.
func (r *Record) Facts() []map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.facts
}
