package clusters

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
)

// A request names at most maxServices. One that names more than maxUnknown which are
// not there is refused out of hand; up to that many, the search for a layout says what is
// wrong and what would help.
const (
	maxServices = 500
	maxUnknown  = 20
)

// checkCount finds that a request names too many services.
func checkCount(names []string) []loom.FieldError {
	if len(names) <= maxServices {
		return nil
	}
	return []loom.FieldError{{Field: "services", Message: fmt.Sprintf("A request names at most %d services; this one names %d.", maxServices, len(names))}}
}

// checkNamed finds that a request names too many services that are not there, or one
// by a name that none can have. The search for a layout is spared them.
func checkNamed(names []string, there func(name string) bool) []loom.FieldError {
	unknown := slices.DeleteFunc(slices.Clone(names), there)
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	long := slices.ContainsFunc(unknown, func(name string) bool { return len(name) > loom.MaxNameLength })
	if len(unknown) <= maxUnknown && !long {
		return nil
	}
	var first []string
	for _, name := range unknown[:min(len(unknown), 5)] {
		first = append(first, fmt.Sprintf("“%.*s”", loom.MaxNameLength, name))
	}
	text := "There is no service named " + strings.Join(first, ", or ")
	if more := len(unknown) - len(first); more > 0 {
		text = fmt.Sprintf("There are no services named %s and %d more", strings.Join(first, ", "), more)
	}
	return []loom.FieldError{{Field: "services", Message: text + "."}}
}

// contains returns whether a map contains a name.
func contains[V any](m map[string]V) func(name string) bool {
	return func(name string) bool { _, there := m[name]; return there }
}

// Limits of what a request may hold in its free-form parts.
const ()

// checkStorable finds what the database cannot store: the character NUL, text
// that is not UTF-8, numbers beyond all bounds, bottomless nesting.
func checkStorable(field string, value any) []loom.FieldError {
	problem := ""
	var walk func(v any, depth int)
	text := func(s string) {
		if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
			problem = "A text holds the character NUL or is not UTF-8."
		}
	}
	walk = func(v any, depth int) {
		if depth > loom.MaxJSONDepth {
			problem = fmt.Sprintf("This is nested more than %d deep.", loom.MaxJSONDepth)
			return
		}
		switch v := v.(type) {
		case string:
			text(v)
		case json.Number:
			if f, err := v.Float64(); err != nil || math.IsInf(f, 0) || len(v) > 400 {
				problem = fmt.Sprintf("The number %.40s is too large or too long.", v.String())
			}
		case float64:
			if math.IsInf(v, 0) || math.IsNaN(v) {
				problem = "A number is not finite."
			}
		case map[string]any:
			for key, item := range v {
				text(key)
				walk(item, depth+1)
			}
		case []any:
			for _, item := range v {
				walk(item, depth+1)
			}
		}
	}
	walk(value, 1)
	if problem == "" {
		return nil
	}
	return []loom.FieldError{{Field: field, Message: problem}}
}

// checkTexts is checkStorable for every part of a request that people write.
func checkTexts(in loom.CreateInput) []loom.FieldError {
	errs := checkStorable("description", in.Description)
	errs = append(errs, checkStorable("clusterTemplate", in.Template)...)
	errs = append(errs, checkStorable("provider", in.Provider)...)
	errs = append(errs, checkStorable("hardwaretype", in.HardwareType)...)
	errs = append(errs, checkStorable("imagetype", in.ImageType)...)
	errs = append(errs, checkStorable("services", strings.Join(in.Services, " "))...)
	errs = append(errs, checkStorable("providerFields", in.ProviderFields)...)
	errs = append(errs, checkStorable("config", in.Config)...)
	errs = append(errs, checkStorable("configPatch", in.ConfigPatch)...)
	return append(errs, loom.CheckLabels(in.Labels)...)
}

func invalid(field, format string, args ...any) error {
	return loom.InvalidFields([]loom.FieldError{{Field: field, Message: fmt.Sprintf(format, args...)}})
}

func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// missing is NotFound about a field of the request.
func missing(field, format string, args ...any) error {
	e := loom.NewError(loom.NotFound, format, args...)
	e.Fields = []loom.FieldError{{Field: field, Message: e.Message}}
	return e
}
