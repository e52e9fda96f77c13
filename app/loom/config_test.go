package loom

import (
	"strings"
	"testing"
)

// TestCheckConfigSize counts bytes of JSON, characters of HTML as one each.
func TestCheckConfigSize(t *testing.T) {
	t.Parallel()
	fits := MaxConfig - len(`{"k":""}`)
	for _, test := range []struct {
		name  string
		value any
		ok    bool
	}{
		{"nothing", nil, true},
		{"the limit", strings.Repeat("<", fits), true},
		{"one more", strings.Repeat("<", fits+1), false},
		{"escapes", strings.Repeat("\n", fits/2+1), false},
		{"many values", make([]any, MaxConfig/5), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			errs := CheckConfigSize("config", map[string]any{"k": test.value})
			if ok := len(errs) == 0; ok != test.ok {
				t.Fatalf("got %v", errs)
			}
			if !test.ok && (errs[0].Field != "config" || !strings.Contains(errs[0].Message, "at most 1048576 are allowed. Take")) {
				t.Errorf("got %v", errs)
			}
		})
	}
	if errs := CheckConfigSize("config", nil); errs != nil {
		t.Errorf("no config gives %v", errs)
	}
}

// TestEntriesWithLargeConfigs are refused with the field.
func TestEntriesWithLargeConfigs(t *testing.T) {
	t.Parallel()
	config := map[string]any{"k": strings.Repeat("x", MaxConfig)}
	base := Base{Name: "a"}
	for field, entry := range map[string][]Entry{
		"defaultConfig":   {&Service{Base: base, DefaultConfig: config}},
		"defaults.config": {&Template{Base: base, Defaults: Defaults{Config: config}}, &PartialTemplate{Base: base, Defaults: Defaults{Config: config}}},
	} {
		for _, e := range entry {
			found := false
			for _, problem := range e.Validate() {
				found = found || problem.Field == field && strings.Contains(problem.Message, "bytes of JSON")
			}
			if !found {
				t.Errorf("%T: got %v", e, e.Validate())
			}
		}
	}
}
