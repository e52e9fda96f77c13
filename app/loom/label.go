package loom

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of the labels of a cluster or an entry.
const (
	maxLabels     = 50
	maxLabelKey   = 63  // bytes
	maxLabelValue = 255 // bytes
)

// CheckLabels says what is wrong with labels, at the field “labels”.
func CheckLabels(labels map[string]string) []FieldError {
	var errs []FieldError
	if len(labels) > maxLabels {
		errs = append(errs, FieldError{"labels", fmt.Sprintf("Use at most %d labels.", maxLabels)})
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == "" || len(key) > maxLabelKey || len(labels[key]) > maxLabelValue {
			return append(errs, FieldError{"labels", fmt.Sprintf("The key of a label has 1 to %d characters, its value at most %d.", maxLabelKey, maxLabelValue)})
		}
		if text := key + labels[key]; strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return append(errs, FieldError{"labels", "A text holds the character NUL or is not UTF-8."})
		}
	}
	return errs
}

// LabelTexts lists labels as key=value, by key.
func LabelTexts(labels map[string]string) []string {
	texts := make([]string, 0, len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		texts = append(texts, key+"="+labels[key])
	}
	return texts
}

// ReadLabels reads lines of key=value; errors are at the field “labels”.
func ReadLabels(text string) (map[string]string, []FieldError) {
	labels := map[string]string{}
	var errs []FieldError
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, value, found := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		_, twice := labels[key]
		switch {
		case !found || key == "":
			errs = append(errs, FieldError{"labels", fmt.Sprintf("Line %d is “%.40s”; write key=value.", i+1, line)})
		case twice:
			errs = append(errs, FieldError{"labels", fmt.Sprintf("Line %d: the label “%.40s” appears twice.", i+1, key)})
		default:
			labels[key] = strings.TrimSpace(value)
		}
	}
	return labels, errs
}
