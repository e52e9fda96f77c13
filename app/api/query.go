package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// oneOf reads a comma-separated parameter whose values come from a closed set.
// Invalid names the valid ones.
func oneOf[T ~string](r *http.Request, name string, valid []T) ([]T, error) {
	var out []T
	for _, word := range words(r.URL.Query().Get(name)) {
		value := T(word)
		if !slices.Contains(valid, value) {
			texts := make([]string, len(valid))
			for i, v := range valid {
				texts[i] = string(v)
			}
			return nil, loom.InvalidFields([]loom.FieldError{{Field: name,
				Message: fmt.Sprintf("“%.40s” is none of %s.", word, strings.Join(texts, ", "))}})
		}
		out = append(out, value)
	}
	return out, nil
}

// holds reports whether a filter lets a value through; an empty one lets all.
func holds[T comparable](filter []T, value T) bool {
	return len(filter) == 0 || slices.Contains(filter, value)
}

// queryInt reads a whole number from 0 up, 0 when absent.
func queryInt(r *http.Request, name string) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, loom.InvalidFields([]loom.FieldError{{Field: name, Message: "This is a whole number from 0 up."}})
	}
	return int(n), nil
}

// queryBool reads true or false, nil when absent.
func queryBool(r *http.Request, name string) (*bool, error) {
	text := strings.ToLower(r.URL.Query().Get(name))
	switch text {
	case "":
		return nil, nil
	case "true", "false":
		b := text == "true"
		return &b, nil
	}
	return nil, loom.InvalidFields([]loom.FieldError{{Field: name, Message: "This is “true” or “false”."}})
}
