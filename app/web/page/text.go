package page

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/views/ui"
)

// Plural is the word for several things of a kind.
func Plural(kind string) string {
	if strings.HasSuffix(kind, "s") {
		return kind
	}
	return kind + "s"
}

// CutShort keeps what was typed short enough for a message.
func CutShort(text string) string {
	if runes := []rune(text); len(runes) > 40 {
		return string(runes[:40]) + "…"
	}
	return text
}

// Sentence is a finding for a page: what is wrong, and where.
func Sentence(f loom.Finding) string { return Placed(f.Message, []string{PlaceWords(f.Field)}) }

// Placed adds the places to a message; those without words are left out.
func Placed(message string, places []string) string {
	if places = slices.DeleteFunc(slices.Clone(places), func(place string) bool { return place == "" }); len(places) == 0 {
		return message
	}
	return message + " (" + Capital(loom.And(places)) + ")"
}

// placeNames are the members of entries as people call them; "" is left out, as the name
// of an entry that is referred to needs no word.
var placeNames = map[string]string{
	"provisioner": "", "actions": "", "dependencies": "", "layout": "", "administration": "", "leaseduration": "lease", "onFailure": "on failure", "name": "",
	"providermap": "mapping", "providertype": "type", "links": "link", "includes": "include", "url": "address", "hardwaretypes": "hardware types", "imagetypes": "image types",
	"hardwaretype": "hardware type", "imagetype": "image type", "mustcoexist": "same node", "cantcoexist": "never same node", "dnsSuffix": "DNS suffix", "min": "minimum", "max": "maximum",
	"quantities": "nodes",
}

// PlaceWords says in words which value of an entry a JSON pointer names: "defaults,
// services", "start action", "link 1, address". Fields of plugins are not named: the
// finding does, by their labels. Below a config its names stay as they are written.
func PlaceWords(pointer string) string {
	var words []string
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, part := range parts {
		name, known := placeNames[part]
		n, err := strconv.Atoi(part)
		switch {
		case part == "fields" && i > 1 && parts[i-2] == "actions", part == "provisioner" && i+1 < len(parts) && parts[i+1] != "actions":
			return strings.Join(words, ", ")
		case part == "config" || part == "defaultConfig" && i == 0:
			word := map[string]string{"config": "config", "defaultConfig": "default config"}[part]
			if i+1 < len(parts) {
				return strings.Join(append(words, word, PlainPath(strings.Join(parts[i+1:], "/"))), ", ")
			}
			words = append(words, word)
		case i > 0 && parts[i-1] == "actions":
			words = append(words, part+" action")
		case err == nil && len(words) > 0:
			words[len(words)-1] += " " + strconv.Itoa(n+1)
		case part == "install" || part == "runtime":
			if i+1 < len(parts) {
				parts[i+1] = part + " " + parts[i+1]
			}
		case !known:
			words = append(words, strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~"))
		case name != "":
			words = append(words, name)
		}
	}
	return strings.Join(words, ", ")
}

// LeftoverText is a machine that was left behind, in words.
func LeftoverText(l loom.Leftover) string {
	if l.Machine == "" {
		return "the machine of " + l.Hostname + " at " + l.Provider
	}
	return l.Machine + " at " + l.Provider
}

// Capital makes the first letter a capital.
func Capital(s string) string { return ui.Capital(s) }

// SortedKeys returns the keys of a map in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// CsvText keeps spreadsheets from taking a name for a formula.
func CsvText(name string) string {
	if strings.ContainsAny(name[:min(len(name), 1)], "=+-@\t\r") {
		return "'" + name
	}
	return name
}
