package ui

import (
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/route"
)

// EntryIcons are the icons that an entry of the catalog may choose, with what they
// show. Other references are kept, and shown as the usual icon of the kind.
var EntryIcons = []Option{
	{Value: "box", Label: "box"}, {Value: "server", Label: "server"}, {Value: "disk", Label: "disk: stores data"}, {Value: "layers", Label: "layers: a base for others"},
	{Value: "cloud", Label: "cloud: serves the network"}, {Value: "cluster", Label: "cluster: spans nodes"}, {Value: "graph", Label: "graph: spreads work"},
	{Value: "cpu", Label: "processor: computes"}, {Value: "activity", Label: "activity: watches others"}, {Value: "monitor", Label: "screen: for people"},
	{Value: "terminal", Label: "terminal"}, {Value: "search", Label: "magnifier: searches"}, {Value: "file", Label: "file"}, {Value: "list", Label: "list: a queue or log"},
	{Value: "clock", Label: "clock: runs by time"}, {Value: "key", Label: "key"}, {Value: "lock", Label: "lock"}, {Value: "shield", Label: "shield: protects"},
	{Value: "user", Label: "user"}, {Value: "settings", Label: "gear: configures"}, {Value: "template", Label: "page"},
	{Value: "database", Label: "database"}, {Value: "globe", Label: "globe: serves the web"}, {Value: "balancer", Label: "balancer"}, {Value: "queue", Label: "queue"},
	{Value: "cache", Label: "cache"}, {Value: "container", Label: "container"}, {Value: "chart", Label: "chart"}, {Value: "branch", Label: "branch: source code"},
	{Value: "network", Label: "network"}, {Value: "gauge", Label: "gauge: measures"},
}

// EntryIcon is the icon of an entry's tile: its own if it is one of EntryIcons or the address of a
// picture that Loom serves, else usual.
func EntryIcon(icon, usual string) string {
	if isPicture(icon) {
		return icon
	}
	return GlyphOf(icon, usual)
}

// IconOf is the icon of an entry's tile: the address of the picture that it brings, or else what it
// names, or usual.
func IconOf(kind loom.EntityKind, b *loom.Base, usual string) string {
	if _, _, own := b.OwnIcon(); own {
		return route.EntryIcon(string(kind), b.Name, strconv.Itoa(b.Version))
	}
	if isPicture(b.Icon) {
		return usual // an address of somewhere else
	}
	return EntryIcon(b.Icon, usual)
}

// isPicture reports whether an icon is the address of a picture.
func isPicture(icon string) bool { return strings.HasPrefix(icon, "/") }

// GlyphOf is the icon of an entry where no picture can stand: its own if it is one of EntryIcons,
// else usual.
func GlyphOf(icon, usual string) string {
	if slices.ContainsFunc(EntryIcons, func(o Option) bool { return o.Value == icon }) {
		return icon
	}
	return usual
}
