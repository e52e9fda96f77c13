package loom

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func nested(depth int) string {
	return strings.Repeat(`[{"a":`, depth/2) + strings.Repeat("[", depth%2) + strings.Repeat("]", depth%2) + strings.Repeat("}]", depth/2)
}

// TestScanJSON: the depth is that of arrays and objects, not of brackets in texts.
func TestScanJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		within     int
		want       string // "" for none
	}{
		{"flat", `{"a": [1, "x", null]}`, 0, ""},
		{"a value alone", `7`, 0, ""},
		{"as deep as may be", strings.Repeat("[", 100) + strings.Repeat("]", 100), 0, ""},
		{"too deep", strings.Repeat("[", 101) + strings.Repeat("]", 101), 0, "more than 100 levels deep at line 1, column 101"},
		{"too deep, and never closed", "\n é" + strings.Repeat("[", 1_000_000), 0, "line 2, column 103"},
		{"deep in the second of two", `[1, ` + strings.Repeat(`{"a":`, 100), 0, "100 levels"},
		{"wide", "[" + strings.Repeat("[],", 99_998) + "1]", 0, ""},
		{"too wide", "[" + strings.Repeat("[],", 99_999) + "\n1]", 0, "more than 100000 values, from line 2, column 1 on"},
		{"objects", "[" + strings.Repeat(`{ "" : 0 } , `, 49_999) + "1]", 0, ""},
		{"too many objects", "[" + strings.Repeat(`{"":0},`, 50_000) + "1]", 0, "100000 values"},
		{"too many numbers", "[" + strings.Repeat("-1.5e3,", 100_000) + "1]", 0, "100000 values"},
		{"too many texts", "[" + strings.Repeat(`"a\"b, c:", `, 100_000) + "1]", 0, "100000 values"},
		{"brackets in a text", `["` + strings.Repeat("[{", 1000) + `"]`, 0, ""},
		{"behind a quote that is escaped", `["\"` + strings.Repeat("[", 1000) + `\\"]`, 0, ""},
		{"behind an escaped backslash", `["\\",` + strings.Repeat("[", 100), 0, "100 levels"},
		{"ends in an escape", `["\`, 0, ""},
		{"ends in a text", `["`, 0, ""},
		{"within a document", strings.Repeat("[", 99) + strings.Repeat("]", 99), 1, ""},
		{"too deep within a document", strings.Repeat("[", 100) + strings.Repeat("]", 100), 1, "100 levels"},
		{"no JSON", `]]]}}`, 0, ""},
	} {
		err := ScanJSON([]byte(c.text), c.within)
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, Invalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// depthOf is how deep a valid document is nested, as encoding/json reads it.
func depthOf(t *testing.T, text []byte) int {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	depth, deepest := 0, 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return deepest
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			deepest = max(deepest, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

// countValues gives how many values a valid document has, as encoding/json reads it.
func countValues(t *testing.T, d *json.Decoder) int {
	t.Helper()
	token, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	opening, ok := token.(json.Delim)
	if !ok {
		return n
	}
	for d.More() {
		if opening == '{' {
			if _, err := d.Token(); err != nil {
				t.Fatal(err)
			}
		}
		n += countValues(t, d)
	}
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	return n
}

// FuzzScanJSON: of what encoding/json reads, just what is not too deep passes, and values
// are counted as it reads them.
func FuzzScanJSON(f *testing.F) {
	for _, depth := range []int{1, 2, 99, 100, 101, 102, 5000} {
		f.Add([]byte(nested(depth)))
	}
	f.Add([]byte(`{"a\"[": "\\", "b": [{}, []]}`))
	f.Add([]byte(`["\`))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := ScanJSON(text, 0)
		if err != nil && !errors.Is(err, Invalid) {
			t.Fatalf("%v is not Invalid", err)
		}
		if !json.Valid(text) {
			return
		}
		depth, values := depthOf(t, text), countValues(t, json.NewDecoder(bytes.NewReader(text)))
		if (err == nil) != (depth <= MaxJSONDepth && values <= MaxJSONValues) {
			t.Fatalf("depth %d, %d values: %v", depth, values, err)
		}
		if counted := JSONValues(text); err == nil && counted != values {
			t.Fatalf("%d values, not %d", counted, values)
		}
	})
}

// TestJSONPlaces finds values by their paths, and else the last part that is there.
func TestJSONPlaces(t *testing.T) {
	t.Parallel()
	text := `{"a": [1, {"b": 22}], "a.b": {"c": 3}, "d": "x"}`
	for path, want := range map[string]string{"": "{", "a": "[1", "a[1].b": "22", "a[1].none": `{"b"`, "a[7]": "[1", "a.b.c": "3}", "d": `"x"`, "none": `{"a"`} {
		if at := JSONPlaces([]byte(text), []string{path})[0]; !strings.HasPrefix(text[at:], want) {
			t.Errorf("%q is at %q, want %q", path, text[at:], want)
		}
	}
	if places := JSONPlaces([]byte(`{"a": {"b": oops`), []string{"a.b", "c"}); places[0] != 12 || places[1] != 0 {
		t.Errorf("in a broken document: %v", places)
	}
}

// TestFieldErrorsAreBounded: an answer lists 100 and says how many more there are,
// however often it is put together.
func TestFieldErrorsAreBounded(t *testing.T) {
	t.Parallel()
	var fields []FieldError
	for range 1000 {
		fields = append(fields, FieldError{Field: "a", Message: "This is wrong."})
	}
	e := AsError(InvalidFields(fields))
	if len(e.Fields) != MaxFieldErrors+1 || e.Message != "1000 fields need attention." || !strings.HasPrefix(e.Fields[MaxFieldErrors].Message, "900 more fields are wrong.") {
		t.Fatalf("%d, %s, %v", len(e.Fields), e.Message, e.Fields[len(e.Fields)-1])
	}
	again := AsError(InvalidFields(append(e.Fields, fields[:20]...)))
	if len(again.Fields) != MaxFieldErrors+1 || again.Message != "1020 fields need attention." || !strings.HasPrefix(again.Fields[MaxFieldErrors].Message, "920 more") {
		t.Errorf("%d, %s, %v", len(again.Fields), again.Message, again.Fields[len(again.Fields)-1])
	}
	if few := BoundFields(fields[:100], 0); len(few) != 100 {
		t.Errorf("100 became %d", len(few))
	}
}

// TestErrorsRepeatLittle: whatever was sent, errors are short and end with what to do.
func TestErrorsRepeatLittle(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 400_000)
	for _, c := range []struct {
		message, ends string
		least         int
	}{
		{"There is no service “" + long + "” or “" + long + "”. Choose another one.", "é…”. Choose another one.", 2 * maxQuoted},
		{"It is “" + long, "é…", maxQuoted},
		{strings.Repeat("“”", 1000) + long, "…", maxMessage / 2},
		{long + "“x”", "é…", maxMessage / 2},
		{"It is " + strings.Repeat("a", 1000) + ".", "a.", 1000},
	} {
		got := []string{NewError(Invalid, "%s", c.message).Message}
		for n := range 2 {
			fields := make([]FieldError, 1+n*MaxFieldErrors)
			for i := range fields {
				fields[i] = FieldError{Field: "config/" + long, Message: c.message}
			}
			e := AsError(InvalidFields(fields))
			if f := e.Fields[0].Field; len(f) > MaxConfigPath+maxQuoted+len("…") || !strings.HasPrefix(f, "config/é") || !strings.HasSuffix(f, "é…") {
				t.Errorf("a field has %d bytes", len(f))
			}
			got = append(got, e.Fields[0].Message)
			if n == 0 {
				got = append(got, e.Message)
			}
		}
		for i, text := range got {
			if len(text) > maxMessage+len("…") || len(text) < c.least || !strings.HasSuffix(text, c.ends) {
				t.Errorf("%.20s, %d: %d bytes that end in %q", c.message, i, len(text), text[max(0, len(text)-40):])
			}
		}
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain, tab\tand line\nü €":            "plain, tab\tand line\nü €",
		"\x1b[31mred\x1b[0m":                   "red",
		"\x1b[2J\x1b[1;1Hclean":                "clean",
		"\x1b]0;a title\x07seen":               "seen",
		"\x1b]8;;http://evil\x1b\\link\x1b[K":  "link",
		"\u009b31mC1":                          "C1",
		"50%\r100%\x00\x07\x08\x7f\u0085":      "50%100%",
		"\x1b]52;c;never ended":                "]52;c;never ended",
		"a\x1b":                                "a",
		"[31m stays where no escape begins it": "[31m stays where no escape begins it",
	} {
		if got := PlainText(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
