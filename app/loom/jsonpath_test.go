package loom

import (
	"runtime"
	"strings"
	"testing"
)

func TestJSONPath(t *testing.T) {
	t.Parallel()
	var p JSONPath
	if p.Pointer() != "" || p.Keys() != "" {
		t.Errorf("the root is %q, %q", p.Pointer(), p.Keys())
	}
	p.Key("a/b~c")
	p.Index(12)
	p.Key("d")
	if p.Pointer() != "/a~1b~0c/12/d" || p.Keys() != "a/b~c.d" {
		t.Errorf("got %q, %q", p.Pointer(), p.Keys())
	}
	p.Up()
	p.Up()
	p.Key(strings.Repeat("é", 1<<20))
	for name, got := range map[string]string{"/a~1b~0c/é": p.Pointer(), "a/b~c.é": p.Keys()} {
		if !strings.HasPrefix(got, name) || !strings.HasSuffix(got, "é…") || len(got) > MaxConfigPath+len("…") {
			t.Errorf("a long one has %d bytes: %.30s", len(got), got)
		}
	}
}

// TestCheckConfigPaths refuses keys and paths that are too long, with what to do.
func TestCheckConfigPaths(t *testing.T) {
	t.Parallel()
	nested := func(levels int, key string, value any) map[string]any {
		for range levels - 1 {
			value = map[string]any{key: value}
		}
		return map[string]any{key: value}
	}
	for _, c := range []struct {
		name   string
		config map[string]any
		want   string
	}{
		{"the longest key", nested(1, strings.Repeat("k", MaxConfigKey), 1), ""},
		{"a longer one", nested(1, strings.Repeat("k", MaxConfigKey+1), 1), "has 256 bytes; at most 255 are allowed. Put long texts into values."},
		{"one in an array", map[string]any{"a": []any{nested(1, strings.Repeat("k", 300), 1)}}, "has 300 bytes"},
		{"the longest path", nested(10, strings.Repeat("k", 99), 1), ""},
		{"a longer one", nested(10, strings.Repeat("k", 99), []any{1}), "has 1002 bytes; at most 1000 are allowed"},
		{"one of slashes", nested(6, strings.Repeat("/", 99), 1), "has 1194 bytes"},
		{"long values", map[string]any{"a": strings.Repeat("x", 100_000)}, ""},
	} {
		got := CheckConfigSize("config", c.config)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Field != "config" || !strings.Contains(got[0].Message, c.want) || len(got[0].Message) > 500) {
			t.Errorf("%s: got %v, want %q", c.name, got, c.want)
		}
	}
}

// TestPathsOfSecretsAreMadeOnce: which key went beyond the limits is said of that one only.
func TestPathsOfSecretsAreMadeOnce(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	keys := map[string]any{}
	for i := range 5000 {
		keys[itoa(i)] = i
	}
	config := map[string]any{strings.Repeat("token", 20<<10): keys}
	if got := allocated(func() { HiddenTexts(config, false); CheckConfigSize("config", config) }); got > 4<<20 {
		t.Errorf("%d bytes are allocated", got)
	}
}

// BenchmarkCheckConfigSize goes through values below a long key.
func BenchmarkCheckConfigSize(b *testing.B) {
	config := map[string]any{strings.Repeat("k", MaxConfigKey): make([]any, 100_000)}
	for b.Loop() {
		CheckConfigSize("config", config)
	}
}

// allocated counts the bytes that a call allocates; no other test may run beside it.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
