package web_test

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/route"
)

var controlName = regexp.MustCompile(` name="([^"]+)"`)

// TestEveryFieldIsInItsForm looks for a control of each field of an entry that has one of
// everything.
func TestEveryFieldIsInItsForm(t *testing.T) {
	t.Parallel()
	r := newRooms(t)
	v := r.signedIn("superadmin", "admin")
	elsewhere := []string{
		"providers fixed",                     // beside each field of the provider's type, and there is none of that name
		"services dependencies.runtime.scope", // only the phase of installing has one
		"partialtemplates administration.",    // a part that says these is refused or ignored; JSON has them
		"partialtemplates constraints.",
	}
	for _, kind := range loom.TenantKinds {
		body, err := json.Marshal(testkit.FullEntry(kind))
		check(t, err)
		var document map[string]any
		check(t, json.Unmarshal(body, &document))
		var names []string
		for _, tab := range []string{"", "compatibility", "defaults", "constraints", "includes"} {
			if tab != "" && kind != loom.KindTemplate && kind != loom.KindPartialTemplate {
				break
			}
			page := v.send(route.AdminNew(kind)+"?tab="+tab, url.Values{"do": {"form"}, "body": {string(body)}})
			for _, m := range controlName.FindAllStringSubmatch(page.body, -1) {
				names = append(names, strings.TrimPrefix(m[1], "relation.")) // a box of the table of dependencies
			}
		}
		for _, path := range leaves("", document) {
			has := slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, path) })
			if !has && !slices.ContainsFunc(elsewhere, func(e string) bool { return strings.HasPrefix(string(kind)+" "+path, e) }) {
				t.Errorf("%s: the form has no control for %s", kind, path)
			}
		}
	}
}

// leaves are the paths of the fields of a document, without what is in lists; rows of free
// keys and values are one control.
func leaves(at string, v any) []string {
	object, ok := v.(map[string]any)
	if !ok || at == "defaults.config" || at == "defaultConfig" || at == "labels" {
		return []string{at}
	}
	var out []string
	for name, member := range object {
		if _, text := member.(string); text && name == "key" {
			name = "#[0].key"
		}
		below := name
		if at != "" {
			below = at + "." + name
		}
		out = append(out, leaves(below, member)...)
	}
	slices.Sort(out)
	return out
}
