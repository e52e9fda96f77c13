package loom

import (
	"reflect"
	"testing"
)

func TestResultsFor(t *testing.T) {
	t.Parallel()
	results := map[string]any{"ssh_host_keys": "true ones", "volume": "v-1", "web": "of an older release", "service:1.2": "an old image"}
	for by, reported := range map[string]map[string]any{
		"shell": {"ssh_host_keys": "planted", "web": "new", "both": "of shell", "provider": "planted"},
		"other": {"volume": "planted", "both": "of other", "gone": nil},
	} {
		for name, value := range AutomatorResults(by, reported) {
			results[name] = value
		}
	}
	for automator, want := range map[string]map[string]any{
		"shell": {"volume": "v-1", "service:other:volume": "planted", "web": "new", "both": "of shell"},
		"other": {"volume": "planted", "web": "of an older release", "service:shell:web": "new", "both": "of other"},
		"":      {"volume": "planted", "web": "new", "both": "of shell"},
	} {
		for name, value := range map[string]any{"ssh_host_keys": "true ones", "service:shell:ssh_host_keys": "planted",
			"service:shell:provider": "planted", "service:1.2": "an old image"} {
			want[name] = value
		}
		if got := ResultsFor(automator, results); !reflect.DeepEqual(got, want) {
			t.Errorf("%q reads %v, want %v", automator, got, want)
		}
	}
	if AutomatorResults("shell", nil) != nil {
		t.Error("no results became some")
	}
}
