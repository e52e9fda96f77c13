package macro

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestLint(t *testing.T) {
	t.Parallel()
	const two, one = "two percent signs, as written", "one percent sign"
	for _, test := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"100%", nil},
		{"%%Y-%%m", nil},
		{"kv://%host.service.kv%/x", nil},
		{"%join(map(host.service.kv,'$:1'),';')%", nil},
		{"50% to 60%", nil}, // wrong for both
		{"50% of %%", nil},
		{"%join(host.service.kv,'%%')%", nil},
		{"a%% %host.self%", []string{"2 %%: " + two + " / " + one}},
		{"%host.self%%cluster.owner%", []string{"1 %host.self%: a syntax error / a macro", "12 %cluster.owner%: text, or a part of another macro / a macro"}},
		{"%join(host.service.kv, ',')%", []string{"1 %join(host.service.kv, ',')%: a syntax error / a macro"}},
		{"%host.self[0]%", []string{"1 %host.self[0]%: a macro / a syntax error"}},
		{"%host.self.service.kv%", []string{"1 %host.self.service.kv%: a syntax error / a macro"}},
		{"%join(host.service.kv,'%')%", []string{"1 %join(host.service.kv,'%')%: a syntax error / a macro"}},
		{"ü%% %host.self%", []string{"2 %%: " + two + " / " + one}},
	} {
		var got []string
		for _, f := range LintText(test.text) {
			got = append(got, fmt.Sprintf("%d %s: %s / %s", f.Column, f.Text, f.Before, f.Now))
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
	found := Lint(map[string]any{"a": "%host.self%", "b": []any{1.0, map[string]any{"c": "%% %host.self%"}}, "d": "%% %host.self%"})
	var at []string
	for _, f := range found {
		at = append(at, f.Pointer)
	}
	if !reflect.DeepEqual(at, []string{"/b/1/c", "/d"}) {
		t.Errorf("found at %v", at)
	}
}

// FuzzLint: what reads the same for both is not reported, and a text without a
// macro and without percent signs never is.
func FuzzLint(f *testing.F) {
	for _, seed := range []string{"", "%%", "a%%b%", "%host.self%%cluster.owner%", "%join(host.service.kv,'%')%", "50% of %%", "%join(a,'%%%", "%host.self[0]%%%"} {
		f.Add(seed)
	}
	facts := lab()
	f.Fuzz(func(t *testing.T, text string) {
		found := LintText(text)
		template, problems := parse(text)
		if !strings.Contains(text, "%") && len(found) > 0 {
			t.Errorf("%q: found %v", text, found)
		}
		for i, one := range found {
			if one.Column < 1 || one.Text == "" || one.Before == one.Now || i > 0 && found[i-1].Column > one.Column {
				t.Errorf("%q: found %+v", text, one)
			}
		}
		if len(found) > 0 || len(problems) > 0 || !template.HasMacros() {
			return
		}
		// Nothing differs: each macro is one of the predecessor's, plain text is itself.
		rest := text
		for _, s := range template.segments {
			if !strings.HasPrefix(rest, s.text) {
				t.Errorf("%q: “%s” is not what stands there", text, s.text)
			}
			rest = strings.TrimPrefix(rest, s.text)
		}
		for _, m := range legacyMacros(text) {
			if !m.valid {
				t.Errorf("%q: %q was a mistake before and is not found", text, text[m.start:m.end])
			}
		}
		facts.ExpandText(text, "a")
	})
}
