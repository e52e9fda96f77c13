package clusters

import (
	"fmt"
	"slices"
	"strings"

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

// has tells whether a map holds a name.
func has[V any](m map[string]V) func(name string) bool {
	return func(name string) bool { _, there := m[name]; return there }
}
