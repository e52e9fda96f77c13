package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A decoder as strict as that of the predecessor's Java client: what it reads without
// asking is there, and of the groups of parameters it takes those that have fields.
type (
	strictTemplate struct {
		Description *string
		Includes    *[]struct{ Name *string }
		Constraints *struct {
			Services map[string]struct {
				Quantities *struct{ Min, Max *int }
			}
		}
	}
	strictType struct {
		Description *string
		Parameters  map[string]struct {
			Fields map[string]struct{ Label, Type, Tip *string }
		}
	}
	strictCluster struct{ ClusterTemplate strictTemplate }
	strictTenant  struct{ Name, Description *string }
)

// each decodes a recorded answer that is an object or a list of them.
func each[T any](t *testing.T, pattern string, look func(file string, v T)) {
	t.Helper()
	files, _ := filepath.Glob("testdata/conformance/" + pattern)
	if len(files) == 0 {
		t.Fatalf("there is no recording %s", pattern)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, answer, _ := strings.Cut(string(data), answerMark)
		_, body, _ := strings.Cut(answer, "\n\n")
		var all []T
		if !strings.HasPrefix(body, "[") {
			body = "[" + body + "]"
		}
		if err := json.Unmarshal([]byte(body), &all); err != nil || len(all) == 0 {
			t.Errorf("%s: %d decoded, %v", file, len(all), err)
		}
		for _, v := range all {
			look(file, v)
		}
	}
}

func TestAnswersForStrictDecoders(t *testing.T) {
	t.Parallel()
	template := func(file string, v strictTemplate) {
		if v.Includes == nil || v.Constraints == nil {
			t.Errorf("%s: a template without includes or constraints", file)
			return
		}
		for name, s := range v.Constraints.Services {
			if s.Quantities != nil && (s.Quantities.Min == nil || s.Quantities.Max == nil) {
				t.Errorf("%s: %s has quantities with one end", file, name)
			}
		}
	}
	for _, pattern := range []string{"018-*", "019-*", "209-*", "217-*"} {
		each(t, pattern, template)
	}
	for _, pattern := range []string{"041-*", "050-*", "213-*", "219-*"} {
		each(t, pattern, func(file string, v strictCluster) { template(file, v.ClusterTemplate) })
	}
	for _, pattern := range []string{"004-*", "014-*", "029-*", "030-*", "031-*", "206-*", "224-*"} {
		each(t, pattern, func(file string, v strictType) {
			if v.Description == nil {
				t.Errorf("%s: a plugin type without description", file)
			}
			for name, group := range v.Parameters {
				if len(group.Fields) == 0 {
					t.Errorf("%s: the group %s has no field", file, name)
				}
				for field, f := range group.Fields {
					if f.Label == nil || f.Type == nil || f.Tip == nil {
						t.Errorf("%s: the field %s lacks a text", file, field)
					}
				}
			}
		})
	}
	for _, pattern := range []string{"065-*", "066-*"} {
		each(t, pattern, func(file string, v strictTenant) {
			if v.Name == nil || v.Description == nil {
				t.Errorf("%s: a tenant without name or description", file)
			}
		})
	}
}
