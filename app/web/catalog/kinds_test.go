package catalog

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/ui"
)

// TestEveryFieldIsOnThePage looks for the value of each field of an entry in what its page
// shows of it.
func TestEveryFieldIsOnThePage(t *testing.T) {
	t.Parallel()
	elsewhere := []string{"name", "label", "description", "icon", "version", "deprecated", "labels.key"} // the head of every page
	// The page says these in words; a set of one service to share a node is no rule.
	worded := []string{"administration.onFailure", "constraints.layout.mustcoexist", "administration.repair.service", "administration.repair.stopped", "administration.repair.gone"}
	// Forms alone show these.
	hidden := []string{"dependencies.install.scope", "dependencies.runtime.scope", "defaults.dnsSuffix", "fixed"}
	for _, kind := range loom.TenantKinds {
		entry := testkit.FullEntry(kind)
		facts, sections := definition(entry)
		if p, is := entry.(*loom.Provider); is {
			set := map[string]ui.Def{}
			for _, name := range p.Sealed {
				set[name] = ui.Def{Text: "set"}
			}
			sections = settingsView{p: p, fields: p.Fields, set: set}.sections()
		}
		shown := fmt.Sprintf("%+v %+v", facts, sections)
		walkTexts(reflect.ValueOf(entry).Elem(), string(kind), func(at, text string) {
			field := strings.TrimPrefix(at, string(kind)+".")
			if !strings.Contains(shown, text) && !slices.Contains(slices.Concat(elsewhere, worded, hidden), field) {
				t.Errorf("the page does not show %s", at)
			}
		})
	}
}

// walkTexts visits the texts of an entry, by their place in its document.
func walkTexts(v reflect.Value, at string, visit func(at, text string)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			below := at + "." + name
			if name == "" {
				below = at
			}
			walkTexts(v.Field(i), below, visit)
		}
	case reflect.Pointer:
		walkTexts(v.Elem(), at, visit)
	case reflect.Slice:
		for i := range v.Len() {
			walkTexts(v.Index(i), at, visit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			walkTexts(v.MapIndex(key), at+"."+key.String(), visit)
		}
	case reflect.String:
		if v.Len() > 0 {
			visit(at, v.String())
		}
	}
}
