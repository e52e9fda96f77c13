package lenient_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"loom/app/lenient"
)

func TestStrict(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":1}`:                         `{"a":1}`,
		"\ufeff{\"a\":1}":                 `{"a":1}`,
		"// head\n{'a': 'it'}":            "\n{\"a\": \"it\"}",
		`{'a': 'it\'s "x"', b: [1,2]}`:    `{"a": "it's \"x\"", "b": [1,2]}`,
		`{a-b.c$ : true /* b */, d: nul}`: `{"a-b.c$" : true  , "d": nul}`,
		"{a /* 1\n2 */ : 1} # end":        "{\"a\" \n  : 1} ",
		`{"u":"http://x","c":"# '"}//`:    `{"u":"http://x","c":"# '"}`,
		`{true: false, 12: -1.5e+3}`:      `{"true": false, "12": -1.5e+3}`,
		`[1,/* never ends`:                `[1,/* never ends`,
		`{'a':'b`:                         `{"a":"b`,
		`{größe:1}`:                       `{"größe":1}`,
		"\x1f\x8b'x'":                     "\x1f\x8b'x'",
		`{"a":"\'"}`:                      `{"a":"'"}`,
	} {
		if got := string(lenient.Strict([]byte(in))); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	// Mistakes keep their line.
	_, err := lenient.Value(lenient.Strict([]byte("/* 1\n2 */\n{a: 1,\n b: }")))
	if err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("the error is %v", err)
	}
}

// What is JSON already stays as it is, whatever its texts hold; what is mended is not longer
// than twice the original, so that no small body becomes a large one.
func FuzzStrict(f *testing.F) {
	for _, s := range []string{`{"a":"'//#"}`, `{'a':"b",c:/*x*/1}`, "[1,'\"']", "\ufeff[]", `{a:b:c:d`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := lenient.Strict(body)
		if json.Valid(body) && !bytes.Equal(got, body) {
			t.Errorf("%q became %q", body, got)
		}
		if len(got) > 2*len(body)+2 {
			t.Errorf("%d bytes became %d", len(body), len(got))
		}
	})
}
