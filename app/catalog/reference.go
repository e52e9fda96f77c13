package catalog

import (
	"fmt"
	"strconv"
	"strings"

	"loom/app/loom"
)

// reference is the name of an entry in another one.
type reference struct {
	kind  loom.EntityKind
	name  string
	field string // JSON pointer
	// stops says that what names an entry cannot be used without it; else the name
	// is merely without effect.
	stops bool
	// provided says that a service that provides the name will do.
	provided bool
}

// pointer makes a JSON pointer (RFC 6901) of keys and indexes.
func pointer(parts ...any) string {
	var b strings.Builder
	for _, part := range parts {
		b.WriteByte('/')
		switch p := part.(type) {
		case int:
			b.WriteString(strconv.Itoa(p))
		default:
			b.WriteString(pointerEscape.Replace(fmt.Sprint(p)))
		}
	}
	return b.String()
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1")

// references lists what an entry names, in the order of its fields.
func references(entry loom.Entry) []reference {
	var list []reference
	for _, r := range loom.References(entry) {
		list = append(list, reference{kind: r.Kind, name: r.Name, field: pointer(r.At...), stops: r.Stops, provided: r.Provided})
	}
	return list
}
