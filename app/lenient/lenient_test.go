package lenient_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"loom/app/lenient"
	"loom/app/loom"
)

func read(t *testing.T, body string) *lenient.Object {
	t.Helper()
	o, err := lenient.Read([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestLeniencies(t *testing.T) {
	t.Parallel()
	o := read(t, `{"text": 0.05, "flag": "true", "no": false, "n": "3", "whole": 3.0, "big": 86400000,
		"gone": null, "set": ["b", "a", "b", null, 1], "sets": [["a","a"],[]], "map": {"cost": 0.050, "on": true, "x": null},
		"free": {"keep": 5.0, "null": null}, "f": "1.5", "unknown": {}}`)
	for what, pair := range map[string][2]any{
		"number as text":       {o.Text("text"), "0.05"},
		"boolean as text":      {o.Bool("flag"), true},
		"plain boolean":        {o.Bool("no"), false},
		"text as number":       {o.Int("n"), 3},
		"number with fraction": {o.Int("whole"), 3},
		"64 bits":              {o.Int64("big"), int64(86400000)},
		"null is absent":       {o.Has("gone"), false},
		"null is seen":         {o.Null("gone"), true},
		"null as text":         {o.Text("gone"), ""},
		"set":                  {o.Texts("set"), []string{"b", "a", "1"}},
		"absent set":           {o.Texts("none"), []string{}},
		"sets":                 {o.TextSets("sets"), [][]string{{"a"}, {}}},
		"map":                  {o.TextMap("map"), map[string]string{"cost": "0.050", "on": "true"}},
		"absent map":           {o.TextMap("none"), map[string]string{}},
		"fraction":             {*o.FloatPtr("f"), 1.5},
		"absent number":        {o.IntPtr("none") == nil, true},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: got %#v, want %#v", what, pair[0], pair[1])
		}
	}
	kept, err := json.Marshal(o.FreeObject("free"))
	if err != nil || string(kept) != `{"keep":5.0,"null":null}` {
		t.Errorf("free-form value came back as %s, %v", kept, err)
	}
	if err := o.Err(); err != nil {
		t.Error(err)
	}
}

func TestErrorsNameTheFieldAndAreCollected(t *testing.T) {
	t.Parallel()
	o := read(t, `{"a": {"n": 3.5, "t": [1], "b": "yes"}, "list": [{"n": "x"}, 7], "sets": [["a", {}], 3], "m": {"k": []}, "big": 3000000000}`)
	a := o.Object("a")
	a.Int("n")
	a.Text("t")
	a.Bool("b")
	o.EachOf("list", func(_ int, e *lenient.Object) { e.Int("n") })
	o.TextSets("sets")
	o.TextMap("m")
	o.Int("big")
	o.Object("big")
	err := o.Err()
	if !errors.Is(err, loom.Invalid) {
		t.Fatalf("error is %v", err)
	}
	var fields []string
	for _, f := range loom.AsError(err).Fields {
		fields = append(fields, f.Field)
	}
	want := []string{"a.n", "a.t", "a.b", "list[0].n", "list[1]", "sets[0][1]", "sets[1]", "m.k", "big", "big"}
	if !reflect.DeepEqual(fields, want) {
		t.Errorf("fields %v, want %v", fields, want)
	}
}

func TestSyntaxErrorsHaveLineAndColumn(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"{\n  \"a\": 1,\n  \"é\": }\n": "line 3, column 8",
		"{\"a\": 1":                    "line 1, column 8",
		"{} {}":                        "line 1, column 4",
		"{\"a\": \"\xff\"}":            "line 1, column 8",
		"":                             "empty",
		" \n":                          "empty",
		"null":                         "null",
		"[1]":                          "an array",
		`{"a": {"b": "x\u0000y"}}`:     "a.b",
		`{"n": 1e999999}`:              "[n:",
		`{"n": [` + strings.Repeat("9", 400) + `]}`: "[n[0]:",
	} {
		_, err := lenient.Read([]byte(body))
		if !errors.Is(err, loom.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want Invalid with %q", body, err, want)
		}
	}
}

// FuzzRead reads anything in every way. What was refused is Invalid with a message
// and names its fields; what was read is written and read as the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"a": [1, {"b": "2"}]}`))
	f.Add([]byte(`{"a": `))
	f.Add([]byte(`{"a": {"b": [null, true, "x", 1.50, -0, 1e300]}, "c": "3e2", "": null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := lenient.Read(body)
		if err != nil {
			if e := loom.AsError(err); !errors.Is(err, loom.Invalid) || e.Message == "" {
				t.Fatalf("error is not Invalid, or says nothing: %v", err)
			}
			return
		}
		free := map[string]any{}
		for _, name := range o.Names() {
			o.Text(name)
			o.Int(name)
			o.Int64Ptr(name)
			o.FloatPtr(name)
			o.BoolPtr(name)
			o.Texts(name)
			o.TextSets(name)
			o.TextMap(name)
			o.Each(name, func(_ string, member *lenient.Object) { member.Names() })
			o.EachOf(name, func(_ int, element *lenient.Object) { element.Names() })
			free[name] = o.Free(name)
		}
		for _, e := range o.Errors() {
			if e.Message == "" {
				t.Errorf("no message about %q", e.Field)
			}
		}
		first, err := json.Marshal(free)
		if err != nil {
			t.Fatal(err)
		}
		again, err := lenient.Read(first)
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, first)
		}
		back := map[string]any{}
		for _, name := range again.Names() {
			back[name] = again.Free(name)
		}
		if second, err := json.Marshal(back); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s became %s, %v", first, second, err)
		}
	})
}

func TestOnlyAndInts(t *testing.T) {
	t.Parallel()
	o := read(t, `{"known": 1, "extra": null, "other": {}, "numbers": [1, "2", 3.0], "bad": [1, "x", 2.5, {}]}`)
	if got := o.Ints("numbers"); !reflect.DeepEqual(got, []int{1, 2, 3}) {
		t.Errorf("numbers %v", got)
	}
	if got := o.Ints("none"); got == nil || len(got) != 0 {
		t.Errorf("absent numbers %v", got)
	}
	if err := o.Err(); err != nil {
		t.Fatal(err)
	}
	o.Only("known", "numbers", "bad")
	o.Ints("bad")
	o.Ints("known")
	var fields []string
	for _, f := range loom.AsError(o.Err()).Fields {
		fields = append(fields, f.Field)
	}
	if want := []string{"extra", "other", "bad[1]", "bad[2]", "bad[3]", "known"}; !reflect.DeepEqual(fields, want) {
		t.Errorf("fields %v, want %v", fields, want)
	}
}

// TestDepthAndErrorsAreBounded: what is too deep is refused before anything is built of
// it, and of a thousand errors a hundred are listed.
func TestDepthAndErrorsAreBounded(t *testing.T) {
	t.Parallel()
	if _, err := lenient.Read([]byte(`{"a":` + nest(99, "1") + `}`)); err != nil {
		t.Errorf("100 levels: %v", err)
	}
	_, err := lenient.Read([]byte(`{"a":` + nest(100, "oops") + `}`))
	if e := loom.AsError(err); !errors.Is(err, loom.Invalid) || !strings.Contains(e.Message, "more than 100 levels deep at line 1, column 105") || len(e.Fields) != 1 || e.Fields[0].Field != "a" {
		t.Errorf("101 levels: %v", err)
	}
	for body, want := range map[string]string{
		`{"a":1,"b":{"c":` + nest(99, "1") + `},"d":2}`: "[b: ", `{"a":` + strings.Repeat("[", 50_000): "[a: ", `{"` + strings.Repeat("k", 500) + `":` + nest(100, "1") + `}`: "…: ",
		nest(101, "1"): "fewer levels.", `{"a":1,` + strings.Repeat("[", 101): "fewer levels.",
	} {
		if _, err := lenient.Value([]byte(body)); !errors.Is(err, loom.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", body, err, want)
		}
	}
	o := read(t, `{"list": [`+strings.Repeat("7,", 999)+`7], "n": "x"}`)
	o.EachOf("list", func(int, *lenient.Object) {})
	o.Int("n")
	e := loom.AsError(o.Err())
	if len(e.Fields) != 101 || e.Message != "1001 fields need attention." || e.Fields[99].Field != "list[99]" || !strings.HasPrefix(e.Fields[100].Message, "901 more fields are wrong.") {
		t.Errorf("%d fields, %q, the last %v", len(e.Fields), e.Message, e.Fields[len(e.Fields)-1])
	}
	nul := `"` + `\u0000"`
	_, err = lenient.Read([]byte(`{"` + strings.Repeat("k", 5000) + `": [` + strings.Repeat(nul+",", 499) + nul + `]}`))
	if e := loom.AsError(err); len(e.Fields) != 101 || len(e.Fields[0].Field) > 120 {
		t.Errorf("NUL: %d fields, the first a name of %d bytes", len(e.Fields), len(e.Fields[0].Field))
	}
}
