package clusters

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
)

// config gives the config of a request (lifecycle.md 7): its own, whole; else
// the defaults of the services, below those of the template, with the request's
// patch on top.
func (w *world) config(in loom.CreateInput) map[string]any {
	if in.Config != nil {
		return in.Config
	}
	config := map[string]any{}
	for _, name := range w.serviceNames(in.Services) {
		if d := w.services[name].DefaultConfig; d != nil {
			config = loom.MergePatch(config, d)
		}
	}
	if d := w.template.Defaults.Config; d != nil {
		config = loom.MergePatch(config, d)
	}
	if in.ConfigPatch != nil {
		config = loom.MergePatch(config, in.ConfigPatch)
	}
	return config
}

// Limits of what a request may hold in its free-form parts.
const (
	maxLabels   = 50
	maxLabelKey = 63
	maxLabel    = 255
)

// checkStorable finds what the database cannot hold: the character NUL, text
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
	return append(errs, checkLabels(in.Labels)...)
}

func checkLabels(labels map[string]string) []loom.FieldError {
	var errs []loom.FieldError
	if len(labels) > maxLabels {
		errs = append(errs, loom.FieldError{Field: "labels", Message: fmt.Sprintf("A cluster has at most %d labels.", maxLabels)})
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == "" || len(key) > maxLabelKey || len(labels[key]) > maxLabel {
			errs = append(errs, loom.FieldError{Field: "labels", Message: fmt.Sprintf(
				"The key of a label has 1 to %d characters, its value at most %d.", maxLabelKey, maxLabel)})
			break
		}
		errs = append(errs, checkStorable("labels", key+labels[key])...)
	}
	return errs
}
