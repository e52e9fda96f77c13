package loom

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestHiddenTexts(t *testing.T) {
	t.Parallel()
	many := func(n int, text string) []any {
		all := make([]any, n)
		for i := range all {
			all[i] = text
		}
		return all
	}
	for name, c := range map[string]struct {
		value any
		all   bool
		texts int
		over  string
	}{
		"below a key":       {map[string]any{"db": map[string]any{"Root_Password": "long enough"}, "name": "not at all"}, false, 1, ""},
		"deeper":            {map[string]any{"token": map[string]any{"a": []any{"long enough", "short", 12345678.0}}}, false, 1, ""},
		"every one":         {map[string]any{"a": "long enough", "b": json.Number("12345678")}, true, 2, ""},
		"as many as may be": {map[string]any{"token": many(1000, "12345678")}, false, 1000, ""},
		"short ones":        {map[string]any{"token": many(85_000, "<'00000")}, false, 0, ""},
		"too many":          {map[string]any{"a": map[string]any{"token": many(1001, "12345678")}, "b_token": "long enough"}, false, 1000, "a.token"},
		"too long":          {map[string]any{"token": strings.Repeat("x", 64<<10+1)}, false, 0, "token"},
		"too many lines":    {map[string]any{"token": strings.Repeat("12345678\n", 1000)}, false, 0, "token"},
	} {
		texts, over := HiddenTexts(c.value, c.all)
		if len(texts) != c.texts || over != c.over {
			t.Errorf("%s: %d texts, over %q", name, len(texts), over)
		}
		config, _ := c.value.(map[string]any)
		if errs := CheckConfigSize("config", config); (len(errs) > 0) != (over != "") || over != "" && !strings.Contains(errs[0].Message, fmt.Sprintf("With “%s” the config has more than 1000 texts", over)) {
			t.Errorf("%s: %v", name, errs)
		}
	}
	texts, _ := HiddenTexts(map[string]any{"secret": map[string]any{"b": "second one", "a": "first one"}}, false)
	if !slices.Equal(texts, []string{"first one", "second one"}) {
		t.Errorf("%q", texts)
	}
}

// TestSealedAndHiddenFields: the type decides what is sealed, the name where it does not
// know the field; what looks secret is hidden from people in any case.
func TestSealedAndHiddenFields(t *testing.T) {
	t.Parallel()
	plugin := PluginType{Parameters: map[string]FieldGroup{
		"admin": {Fields: map[string]FieldSchema{"api_key": {Sensitive: true}, "pin": {Type: "password"}, "token_url": {Type: "text"}, "both": {Type: "text"}}},
		"user":  {Fields: map[string]FieldSchema{"both": {Sensitive: true}}},
	}}
	for field, want := range map[string][2]bool{
		"api_key": {true, true}, "pin": {true, true}, "both": {true, true},
		"token_url":      {false, true},
		"other_password": {true, true}, "region": {false, false},
	} {
		if got := [2]bool{plugin.Seals(field), plugin.Hides(field)}; got != want {
			t.Errorf("%s: sealed and hidden %v, want %v", field, got, want)
		}
	}
}
