package page

import (
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/route"
)

// IconOf returns the icon of an entry as tiles take it: the address of the picture that it brings,
// or else what it names.
func IconOf(kind loom.EntityKind, b *loom.Base) string {
	if _, _, own := b.OwnIcon(); own {
		return route.EntryIcon(string(kind), b.Name, strconv.Itoa(b.Version))
	}
	if strings.HasPrefix(b.Icon, "/") {
		return "" // an address of somewhere else, which tiles would take for a picture's
	}
	return b.Icon
}
