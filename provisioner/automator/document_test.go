package automator_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"loom/provisioner/automator"
)

func TestMerge(t *testing.T) {
	t.Parallel()
	read := func(text string) map[string]any {
		var v map[string]any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		under, over string
		unite       bool
		want        string
	}{
		{`{"a": 1, "b": {"c": [1, 2], "d": "x"}}`, `{"b": {"c": [2, 3], "e": null}}`, true, `{"a": 1, "b": {"c": [1, 2, 3], "d": "x", "e": null}}`},
		{`{"a": 1, "b": {"c": [1, 2], "d": "x"}}`, `{"b": {"c": [2, 3]}}`, false, `{"a": 1, "b": {"c": [2, 3], "d": "x"}}`},
		{`{"a": {"b": 1}}`, `{"a": 2}`, true, `{"a": 2}`},
		{`{"a": 2}`, `{"a": {"b": 1}}`, true, `{"a": {"b": 1}}`},
		{`{}`, `{}`, true, `{}`},
	} {
		under := read(c.under)
		if got := automator.Merge(under, read(c.over), c.unite); !reflect.DeepEqual(got, read(c.want)) {
			t.Errorf("%s over %s gave %v", c.over, c.under, got)
		}
		if !reflect.DeepEqual(under, read(c.under)) {
			t.Errorf("%s was changed to %v", c.under, under)
		}
	}
}

// TestObjectFieldIsNotTooDeep: what a field holds is scanned before it is read.
func TestObjectFieldIsNotTooDeep(t *testing.T) {
	t.Parallel()
	for depth, fits := range map[int]bool{100: true, 101: false, 9000: false} {
		_, err := automator.ObjectField(map[string]string{"f": `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`}, "f")
		if (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "100 levels deep") {
			t.Errorf("%d levels: %v", depth, err)
		}
	}
}
