package form_test

import (
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/app/web/form"
	"loom/views/formview"
	"loom/views/ui"
)

func parse(t *testing.T, text string) *form.Doc {
	t.Helper()
	doc, err := form.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return doc
}

// same fails unless two texts are the same JSON.
func same(t *testing.T, got, want string) {
	t.Helper()
	var a, b any
	for text, into := range map[string]*any{got: &a, want: &b} {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	if got == want {
		return
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// page renders the sections of a form.
func page(t *testing.T, f form.Form, doc *form.Doc, errs []loom.FieldError, res form.Result) string {
	t.Helper()
	var b strings.Builder
	shown := f.Show(doc, "/step", "Not saved.", errs, res)
	if err := ui.ErrorSummary(shown.Errors).Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	if err := formview.Sections(shown.Sections).Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func of(parts ...form.Part) form.Form {
	return form.Form{Sections: []form.Section{{ID: "s", Title: "S", Parts: parts}}}
}

// every is a form with every kind of part.
func every() form.Form {
	return of(
		form.Field{Path: form.At("text"), Face: ui.FieldModel{Label: "Text"}},
		form.Field{Path: form.At("long"), Face: ui.FieldModel{Label: "Long", Kind: ui.FieldTextarea}},
		form.Field{Path: form.At("number"), Face: ui.FieldModel{Label: "Number", Kind: ui.FieldNumber}},
		form.Field{Path: form.At("yes"), Face: ui.FieldModel{Label: "Yes", Kind: ui.FieldCheckbox}},
		form.Field{Path: form.At("pick"), Fallback: "b", Face: ui.FieldModel{Label: "Pick", Kind: ui.FieldSelect, Options: []ui.Option{{Value: "a", Label: "A"}, {Value: "b", Label: "B"}}}},
		form.Cards{Path: form.At("card"), Legend: "Card", Choices: form.Names("x", "y")},
		form.Picker{Path: form.At("names"), Legend: "Names", Choices: form.Names("n1", "n2", "n3"), Free: "More"},
		form.JSON{Path: form.At("config"), Label: "Config", Object: true},
		lease,
		form.Rows{Path: form.At("links"), Legend: "Links", Noun: "Link", New: map[string]any{}, Ordered: true, Row: func(at form.Path) []form.Part {
			return []form.Part{form.Field{Path: at.To("label"), Face: ui.FieldModel{Label: "Label"}}, form.Field{Path: at.To("url"), Empty: form.EmptyText, Face: ui.FieldModel{Label: "URL"}}}
		}},
		form.Keyed{Path: form.At("map"), Legend: "Map", Noun: "Provider", New: map[string]any{}, Choices: form.Names("here", "there"), Row: func(at form.Path, _ string) []form.Part {
			return []form.Part{form.Field{Path: at.To("flavor"), Face: ui.FieldModel{Label: "Flavor"}, AsText: true}, form.Pairs{Path: at, Noun: "Term", Not: []string{"flavor"}, KeyLabel: "Term", ValueLabel: "Value"}}
		}},
		form.PluginFields{Path: form.At("settings"), Group: loom.FieldGroup{Fields: map[string]loom.FieldSchema{
			"region": {Label: "Region", Type: "select", Options: []string{"r1", "r2"}, Default: "r1"}, "key": {Label: "Key", Type: "password"},
			"on": {Label: "On", Type: "checkbox", Default: true}, "n": {Label: "N", Type: "number"}, "script": {Label: "Script", Type: "textarea"},
		}, Required: [][]string{{"region", "key"}, {"n"}}}},
	)
}

var lease = form.Duration{Path: form.At("lease"), Label: "Lease", Zero: "no limit", Say: loom.Duration,
	Parse: func(text string) (int64, bool) { return 7000, text == "7s" }, Write: func(n int64) string {
		if n == 7000 {
			return "7s"
		}
		return "0"
	}}

const full = `{"text": " a \r\n b", "long": "x\ny", "number": 1.50, "yes": "true", "pick": "zz", "card": "y", "names": ["n2", "gone", "n2", "n1"], "config": {"b": 1, "a": [1.0]},
 "lease": 7000, "links": [{"url": "u1", "more": {"deep": 1}}, {"label": 5}], "map": {"here": {"flavor": "f", "x": 1, "y": {"z": []}, " odd ": ""}, "go.ne": {}},
 "settings": {"region": "r9", "on": "false", "n": 3, "unknown": true, "key": ""}, "unknown": [1, null]}`

func TestNothingTypedChangesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{full, `{}`, `{"text": 1, "long": null, "number": "abc", "yes": 1, "names": "x", "config": [], "lease": "1x", "links": {"a": 1}, "map": [1], "settings": 7}`,
		`{"names": [], "links": [], "map": {}, "config": {}, "lease": 0, "text": "", "yes": false, "links": [1, "two", null], "map": {"here": null, "": {"a": 1}, "b": "x"}}`} {
		f, doc := every(), parse(t, text)
		values := testkit.FormValues(t, page(t, f, doc, nil, form.Result{}), "")
		if len(values) < 10 {
			t.Fatalf("the form has only %d controls", len(values))
		}
		if res := f.Read(doc, values); len(res.Errors) > 0 {
			t.Errorf("%s: %v", text, res.Errors)
		}
		same(t, doc.String(), text)
	}
}

// Whatever a document holds: showing it as a form and sending the form untouched
// gives the same document.
func FuzzNothingTypedChangesNothing(f *testing.F) {
	f.Add(full)
	f.Add(`{"map": {"a.b": {"c": "d"}, "a": {"b.c": "d"}}, "links": [[], {}]}`)
	f.Add(`{"map": {"here": {"#": [1], "# [0]": "x", "a\nb": "c\nd", "": 1}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := form.Parse(text)
		// HTML knows no control characters but line feeds and tabs, and XML forbids the rest.
		if err != nil || strings.ContainsFunc(doc.String(), func(r rune) bool { return r == 0xFFFD }) || strings.Contains(doc.String(), `\u00`) {
			t.Skip()
		}
		before, made := doc.String(), every()
		res := made.Read(doc, testkit.FormValues(t, page(t, made, doc, nil, form.Result{}), ""))
		if len(res.Errors) > 0 {
			t.Errorf("%v", res.Errors)
		}
		same(t, doc.String(), before)
	})
}

func TestRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		doc, want string
		values    url.Values
	}{
		"a text":                    {`{"text": "a", "x": 1}`, `{"text": "b", "x": 1}`, url.Values{"text": {" b "}}},
		"an emptied text goes":      {`{"text": "a"}`, `{}`, url.Values{"text": {""}}},
		"lines":                     {`{}`, `{"long": "a\nb "}`, url.Values{"long": {"a\r\nb "}}},
		"a number":                  {`{}`, `{"number": 2.5}`, url.Values{"number": {"2.5"}}},
		"no number stays a text":    {`{"number": 1}`, `{"number": "1,5"}`, url.Values{"number": {"1,5"}}},
		"a box ticked":              {`{}`, `{"yes": true}`, url.Values{"yes?": {"1"}, "yes": {"true"}}},
		"a box unticked":            {`{"yes": true}`, `{"yes": false}`, url.Values{"yes?": {"1"}}},
		"a box that was not there":  {`{"yes": true}`, `{"yes": true}`, url.Values{}},
		"the fallback is no change": {`{}`, `{}`, url.Values{"pick": {"b"}}},
		"an option":                 {`{}`, `{"pick": "a"}`, url.Values{"pick": {"a"}}},
		"a card":                    {`{"card": "x"}`, `{"card": "y"}`, url.Values{"card": {"y"}}},
		"names keep their order":    {`{"names": ["n3", "n1"]}`, `{"names": ["n3", "n2", "f1", "f2"]}`, url.Values{"names?": {"1"}, "names": {"n2", "n3"}, "names+": {"f1, f2 f1"}}},
		"no names":                  {`{"names": ["n3"]}`, `{"names": []}`, url.Values{"names?": {"1"}}},
		"config":                    {`{"config": {"a": 1}}`, `{"config": {"a": 1.0}}`, url.Values{"config": {`{"a": 1.0}`}}},
		"no config":                 {`{"config": {"a": 1}}`, `{}`, url.Values{"config": {" "}}},
		"a duration":                {`{"lease": 0}`, `{"lease": 7000}`, url.Values{"lease": {"7s"}}},
		"a row keeps what is not shown": {`{"links": [{"url": "u", "x": 1}, {"url": "v"}]}`, `{"links": [{"url": "w", "x": 1}, {"url": "v"}]}`,
			url.Values{"links[0].url": {"w"}, "links[1].url": {"v"}}},
		"add a row": {`{}`, `{"links": [{}]}`, url.Values{"do": {"add:links"}}},
		"add after typing": {`{"links": [{"url": "a"}]}`, `{"links": [{"url": "b"}, {}]}`,
			url.Values{"do": {"add:links"}, "links[0].url": {"b"}}},
		"remove the right row": {`{"links": [{"url": "a"}, {"url": "b"}, {"url": "c"}]}`, `{"links": [{"url": "a"}, {"url": "C"}]}`,
			url.Values{"do": {"remove:links[1]"}, "links[2].url": {"C"}}},
		"up":                    {`{"links": [{"url": "a"}, {"url": "b"}]}`, `{"links": [{"url": "b"}, {"url": "a"}]}`, url.Values{"do": {"up:links[1]"}}},
		"up from the top":       {`{"links": [{"url": "a"}]}`, `{"links": [{"url": "a"}]}`, url.Values{"do": {"up:links[0]"}}},
		"add a provider":        {`{}`, `{"map": {"here": {}}}`, url.Values{"do": {"add:map"}, "new:map": {"here"}}},
		"never twice":           {`{"map": {"here": {"a": 1}}}`, `{"map": {"here": {"a": 1}}}`, url.Values{"do": {"add:map"}, "new:map": {"here"}}},
		"remove a provider":     {`{"map": {"a.b": {}, "here": {}}}`, `{"map": {"here": {}}}`, url.Values{"do": {"remove:map.a.b"}}},
		"a term":                {`{"map": {"here": {"x": "1"}}}`, `{"map": {"here": {"y": "1"}}}`, pairs("map.here", "y", "1")},
		"a term without a name": {`{"map": {"here": {"x": "1", "z": "2"}}}`, `{"map": {"here": {"z": "2"}}}`, pairs("map.here", "", "1")},
		"a new term": {`{"map": {"here": {}}}`, `{"map": {"here": {"k": "v"}}}`,
			url.Values{"map.here#blank": {"1"}, "map.here.#[0].key": {"k"}, "map.here.#[0].value": {" v"}}},
		"settings":             {`{"settings": {"odd": 1}}`, `{"settings": {"odd": 1, "region": "r2", "n": 4, "on": false, "key": "s3"}}`, url.Values{"settings.region": {"r2"}, "settings.n": {"4"}, "settings.on?": {"1"}, "settings.key": {"s3"}}},
		"no secret, no change": {`{"settings": {}}`, `{"settings": {}}`, url.Values{"settings.key": {""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := parse(t, c.doc)
			if res := every().Read(doc, c.values); len(res.Errors) > 0 {
				t.Errorf("errors: %v", res.Errors)
			}
			same(t, doc.String(), c.want)
		})
	}
}

func pairs(path, key, value string) url.Values {
	return url.Values{path + ".#[0].key": {key}, path + ".#[0].value": {value}}
}

func TestWhatCannotBeTaken(t *testing.T) {
	t.Parallel()
	values := url.Values{"config": {"{\n \"a\": oops}"}, "lease": {"soon"}, "map.here.#[1].key": {"x"}, "map.here.#[1].value": {"2"}, "map.here.#[0].key": {"x"}, "map.here.#[0].value": {"1"}, "map.here#blank": {"1"}}
	doc := parse(t, `{"config": {"old": true}, "map": {"here": {"x": "1"}}}`)
	f := every()
	res := f.Read(doc, values)
	if len(res.Errors) != 3 {
		t.Fatalf("errors: %v", res.Errors)
	}
	same(t, doc.String(), `{"config": {"old": true}, "map": {"here": {"x": "1"}}}`)
	shown := page(t, f, doc, res.Errors, res)
	for _, want := range []string{"Line 2, column 7: this is not JSON", `data-line="2"`, "&#34;a&#34;: oops", `value="soon"`, "Write a duration such as", "is given twice", `href="#f-config"`, `href="#f-lease"`, `value="x"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("the form does not show %q", want)
		}
	}
	deep := func(depth int) string {
		return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
	}
	if _, err := form.Parse(deep(101)); err == nil || !strings.Contains(err.Error(), "100 levels deep") {
		t.Errorf("a document of 101 levels: %v", err)
	}
	if res := f.Read(parse(t, `{}`), url.Values{"config": {deep(99)}}); len(res.Errors) != 0 {
		t.Errorf("99 levels within a document: %v", res.Errors)
	}
	for _, bad := range []string{`[1]`, `"x"`, deep(100)} {
		if res := f.Read(parse(t, `{}`), url.Values{"config": {bad}}); len(res.Errors) != 1 {
			t.Errorf("%s: %v", bad, res.Errors)
		}
	}
}

func TestErrorsLandAtTheirFields(t *testing.T) {
	t.Parallel()
	doc := parse(t, `{"links": [{"url": "a"}, {}], "map": {"a.b": {}}, "names": ["n1"]}`)
	errs := []loom.FieldError{{Field: "links[1].url", Message: "A link needs a URL."}, {Field: "map.a.b.flavor", Message: "No flavor."}, {Field: "names[0]", Message: "Bad name."},
		{Field: "map.a.b", Message: "Nearest."}, {Field: "nowhere", Message: "Lost."}, {Message: "As a whole."}}
	shown := every().Show(doc, "/step", "Not saved.", errs, form.Result{})
	for i, want := range []struct{ label, id string }{{"Link 2, URL", "f-links-1--url"}, {"Provider a.b, flavor", "f-map-a-b-flavor"}, {"names[0]", "f-names"}, {"map.\u200ba.\u200bb", "f-map-a-b-flavor"}, {"nowhere", ""}, {"", ""}} {
		if got := shown.Errors.Items[i]; got.Label != want.label || got.FieldID != want.id {
			t.Errorf("%s: %q at %q, want %q at %q", errs[i].Field, got.Label, got.FieldID, want.label, want.id)
		}
	}
	text := page(t, every(), doc, errs, form.Result{})
	for id, message := range map[string]string{"f-links-1--url-error": "A link needs a URL.", "f-map-a-b-flavor-error": "No flavor.", "f-names-error": "Bad name."} {
		if at := strings.Index(text, `id="`+id+`"`); at < 0 || !strings.Contains(text[at:at+400], message) {
			t.Errorf("%s does not say %q", id, message)
		}
	}
}

// Ids are unlike each other even where paths look alike.
func TestIDs(t *testing.T) {
	t.Parallel()
	text := page(t, every(), parse(t, `{"map": {"a.b": {"x": 1}, "a-b": {"x": 1}, "a b": {}}}`), nil, form.Result{})
	seen := map[string]bool{}
	for _, piece := range strings.Split(text, ` id="`)[1:] {
		id, _, _ := strings.Cut(piece, `"`)
		if seen[id] {
			t.Errorf("the id %q is there twice", id)
		}
		seen[id] = true
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	t.Parallel()
	f := of(form.PluginFields{Path: form.At("p"), Sealed: map[string]form.Sealed{"key": {}}, Group: loom.FieldGroup{Fields: map[string]loom.FieldSchema{"key": {Label: "Key", Type: "password"}, "pin": {Label: "Pin", Type: "text", Sensitive: true}}}},
		form.Pairs{Path: form.At("p"), Not: []string{"key", "pin"}, Noun: "Setting", Hidden: loom.LooksSecret})
	text := page(t, f, parse(t, `{"p": {"key": "planted-1", "pin": "planted-2", "my_token": "planted-3", "plain": "seen"}}`), nil, form.Result{})
	if strings.Contains(text, "planted-") || !strings.Contains(text, "seen") {
		t.Errorf("the form shows a secret, or nothing:\n%s", text)
	}
	if !strings.Contains(text, "Replace Key") || !strings.Contains(text, "never shown") {
		t.Error("the form does not say that the key is set")
	}
}

// TestMethodsOfAForm: the fields of the method that was posted are taken, those of the others
// go, and a switch that is a method follows it. Sealed values stay.
func TestMethodsOfAForm(t *testing.T) {
	t.Parallel()
	group := loom.FieldGroup{Fields: map[string]loom.FieldSchema{
		"url": {Label: "URL", Type: "text", Group: "G", Order: 1}, "user": {Label: "User", Type: "text", Group: "G", Order: 2, Method: "Password"}, "pin": {Label: "Pin", Type: "password", Group: "G", Order: 3, Method: "Password"},
		"key": {Label: "Key", Type: "text", Group: "G", Order: 4, Method: "Key"}, "role": {Label: "Role", Type: "checkbox", Group: "G", Order: 5, Method: "Role", Default: false},
	}, Required: [][]string{{"url", "user", "pin"}, {"url", "key"}, {"url", "role"}}}
	fields := form.PluginFields{Path: form.At("p"), Group: group, Sealed: map[string]form.Sealed{"pin": {}}}
	const before = `{"p": {"url": "u", "user": "ana", "role": false}}`
	shown := page(t, of(fields), parse(t, before), nil, form.Result{})
	for _, part := range []string{`value="Password" checked`, `data-method="1"`, `data-method="2"`} {
		if !strings.Contains(shown, part) {
			t.Errorf("the form lacks %s:\n%s", part, shown)
		}
	}
	if strings.Contains(shown, `name="p.role"`) {
		t.Error("the switch of a method is shown")
	}
	for _, c := range []struct{ method, want, lacks string }{
		{"", `{"p":{"url":"u","user":"bob","role":false}}`, ""}, {"Password", `{"p":{"url":"u","user":"bob","role":false}}`, ""},
		{"Key", `{"p":{"url":"u","role":false,"key":"k"}}`, ""}, {"Role", `{"p":{"url":"u","role":true}}`, ""}, {"Nonsense", `{"p":{"url":"u","user":"bob","role":false}}`, ""},
	} {
		p := fields
		p.Methods = map[string]string{"G": c.method}
		doc := parse(t, before)
		of(p).Read(doc, url.Values{"p.url": {"u"}, "p.user": {"bob"}, "p.key": {"k"}, form.MethodName("G"): {c.method}})
		same(t, doc.String(), c.want)
		if missing := p.Missing(doc); len(missing) > 0 {
			t.Errorf("%s: %v", c.method, missing)
		}
	}
	key := fields
	key.Methods = map[string]string{"G": "Key"}
	if missing := key.Missing(parse(t, before)); len(missing) != 1 || missing[0].Field != "p.key" || missing[0].Message != "Required." {
		t.Errorf("without a key: %v", missing)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	group := loom.FieldGroup{Fields: map[string]loom.FieldSchema{"a": {}, "b": {}, "c": {}}, Required: [][]string{{"a", "b", "c"}, {"a", "c"}}}
	for text, want := range map[string]int{`{}`: 2, `{"p": {"a": "x", "c": ""}}`: 1, `{"p": {"a": "x", "c": 1}}`: 0, `{"p": {"c": "y"}}`: 0} {
		p := form.PluginFields{Path: form.At("p"), Group: group}
		if text == `{"p": {"c": "y"}}` {
			p.Sealed = map[string]form.Sealed{"a": {}}
		}
		if got := p.Missing(parse(t, text)); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}
