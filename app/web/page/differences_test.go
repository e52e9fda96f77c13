package page

import (
	"testing"
)

// TestConfigValue writes values so that none can be taken for another.
func TestConfigValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  string
		lines int
	}{
		{"plain", "plain", 0}, {"80", `"80"`, 0}, {80.0, "80", 0}, {1e7, "10000000", 0}, {true, "true", 0}, {"true", `"true"`, 0}, {nil, "null", 0}, {"", `""`, 0}, {" x", `" x"`, 0},
		{[]any{"a", 1.0}, `["a",1]`, 0}, {map[string]any{}, "{}", 0}, {"<a> & b", "<a> & b", 0}, {"one\ntwo\n", "one\ntwo\n…", 2},
	} {
		text, lines := configValue(c.value)
		if text != c.want || len(lines) != c.lines {
			t.Errorf("%#v is %q with %d lines, want %q with %d", c.value, text, len(lines), c.want, c.lines)
		}
	}
}
