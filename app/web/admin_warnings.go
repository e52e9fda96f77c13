package web

import (
	"strconv"
	"strings"

	"loom/app/loom"
	"loom/app/web/form"
	"loom/views/adminview"
)

// draftWarnings says what would not work of a draft in the words of its form, each with
// the way to its field; of a draft that is JSON, by the paths of that.
func draftWarnings(d draft, found []loom.Finding) []adminview.Problem {
	warnings := make([]adminview.Problem, len(found))
	fields := make([]loom.FieldError, len(found))
	for i, f := range found {
		fields[i] = loom.FieldError{Field: plainPath(f.Field), Message: f.Message}
		warnings[i] = adminview.Problem{Path: fields[i].Field, Message: f.Message}
	}
	if d.form == nil {
		return warnings
	}
	doc, err := form.Parse(d.body)
	if err != nil {
		return warnings
	}
	shown := d.form.Show(doc, "", "", fields, d.read)
	for i, item := range shown.Errors.Items {
		warnings[i] = adminview.Problem{Path: item.Label, Message: item.Message, FieldID: item.FieldID}
		if strings.Contains(item.Label, ".\u200b") || item.Label == item.Field { // a control of its own it does not have
			warnings[i].Path = capital(placeWords(found[i].Field))
		}
	}
	markTabs(d, shown, warnings)
	return warnings
}

// placeNames are the members of entries as people call them; "" is left out, as the name
// of an entry that is referred to needs no word.
var placeNames = map[string]string{
	"provisioner": "", "actions": "", "dependencies": "", "layout": "", "administration": "", "leaseduration": "lease", "onFailure": "on failure", "name": "",
	"providermap": "mapping", "providertype": "type", "links": "link", "includes": "include", "url": "address", "hardwaretypes": "hardware types", "imagetypes": "image types",
	"hardwaretype": "hardware type", "imagetype": "image type", "mustcoexist": "same node", "cantcoexist": "never same node", "dnsSuffix": "DNS suffix", "min": "minimum", "max": "maximum",
	"quantities": "nodes",
}

// placeWords says in words which value of an entry a JSON pointer names: "defaults,
// services", "start action", "link 1, address". Fields of plugins are not named: the
// finding does, by their labels. Below a config its names stay as they are written.
func placeWords(pointer string) string {
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
				return strings.Join(append(words, word, plainPath(strings.Join(parts[i+1:], "/"))), ", ")
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
