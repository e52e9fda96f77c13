package automator

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"loom/app/loom"
)

// Merge lays a JSON object over another, which it does not change: objects are
// merged key by key, everything else of over wins. With unite, lists of both hold
// the items of under and then those of over that are not among them.
func Merge(under, over map[string]any, unite bool) map[string]any {
	out := maps.Clone(under)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		out[key] = mergeValue(out[key], value, unite)
	}
	return out
}

func mergeValue(under, over any, unite bool) any {
	switch o := over.(type) {
	case map[string]any:
		if u, ok := under.(map[string]any); ok {
			return Merge(u, o, unite)
		}
	case []any:
		if u, ok := under.([]any); ok && unite {
			return union(u, o)
		}
	}
	return over
}

func union(under, over []any) []any {
	out := make([]any, 0, len(under)+len(over))
	seen := map[string]bool{}
	for _, list := range [][]any{under, over} {
		for _, item := range list {
			text, err := json.Marshal(item)
			if err == nil && seen[string(text)] {
				continue
			}
			seen[string(text)] = true
			out = append(out, item)
		}
	}
	return out
}

// ObjectField reads a field that holds a JSON object as text; an empty one is an
// empty object. The error names the field and the remedy.
func ObjectField(fields map[string]string, name string) (map[string]any, error) {
	text := strings.TrimSpace(fields[name])
	if text == "" {
		return map[string]any{}, nil
	}
	if err := loom.ScanJSON([]byte(text), 0); err != nil {
		return nil, fmt.Errorf("field “%s” cannot be read: %w", name, err)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil {
		return nil, fmt.Errorf("field “%s” is no JSON object; write one, such as {\"name\": \"value\"}", name)
	}
	if d.More() {
		return nil, fmt.Errorf("field “%s” has text after its JSON object", name)
	}
	return object, nil
}

// Refuse is the result of an action that cannot be carried out as it is written:
// trying again is useless.
func Refuse(format string, args ...any) loom.TaskResult {
	no := false
	return loom.TaskResult{Status: 1, Message: fmt.Sprintf(format, args...), Retryable: &no}
}

// Exit statuses of sysexits.h that no further try changes: the command was used wrongly,
// or is configured wrongly.
const (
	exitUsage  = 64
	exitConfig = 78
)

// Final says of the exit status of what an action ran whether trying again is useless;
// nil where it says nothing of that.
func Final(code int) *bool {
	if code == exitUsage || code == exitConfig {
		return new(false)
	}
	return nil
}
