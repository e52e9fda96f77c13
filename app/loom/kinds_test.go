package loom_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/app/testkit"
)

// TestSkeleton compares the documents of new entries with the recorded ones; all of them can
// be read, and lack the name only.
func TestSkeleton(t *testing.T) {
	t.Parallel()
	for _, kind := range loom.TenantKinds {
		got := loom.Skeleton(kind)
		want, err := os.ReadFile(filepath.Join("testdata", "skeletons", string(kind)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if got+"\n" != string(want) {
			t.Errorf("a new %s starts with\n%s", kind.Word(), got)
		}
		if _, err := loom.ReadEntry(kind, []byte(got)); err != nil {
			t.Error(err)
		}
	}
}

// TestFieldsHaveATag walks the structs of the kinds. A field that answers always have says
// what a new document holds of it; one without a label is shown by code of its own.
func TestFieldsHaveATag(t *testing.T) {
	t.Parallel()
	for _, kind := range loom.TenantKinds {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(loom.NewEntry(kind)).Elem()) {
			wire, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous {
				continue
			}
			if _, tagged := f.Tag.Lookup("new"); !tagged && options != "omitempty" && f.Type.Kind() != reflect.Struct {
				t.Errorf("%s.%s: tag it new, with its value in a new document, or “-”", kind, wire)
			}
			if f.Tag.Get("label") == "" && f.Tag.Get("own") == "" {
				t.Errorf("%s.%s: tag it with a label, or own for code of its own", kind, wire)
			}
			if wire == "" {
				t.Errorf("%s.%s has no name in documents", kind, f.Name)
			}
		}
	}
}

// TestReferencesOfEveryKind finds each name of an entry that has one of everything.
func TestReferencesOfEveryKind(t *testing.T) {
	t.Parallel()
	for kind, want := range map[loom.EntityKind]string{
		loom.KindProvider:     `providertypes a Type ["providertype"] stops`,
		loom.KindHardwareType: `providers key ["providermap","key"]`,
		loom.KindService: `services a Conflicts ["dependencies","conflicts",0] provided
services a Requires ["dependencies","install","requires",0] stops provided
services a Uses ["dependencies","install","uses",0] provided
services a Requires ["dependencies","runtime","requires",0] stops provided
services a Uses ["dependencies","runtime","uses",0] provided
automatortypes a Type ["provisioner","actions","install","type"] stops
services a Follows ["follows",0] provided`,
		loom.KindTemplate: `services a Services ["defaults","services",0] stops
providers a Provider ["defaults","provider"] stops
hardwaretypes a HardwareType ["defaults","hardwaretype"] stops
imagetypes a ImageType ["defaults","imagetype"] stops
hardwaretypes a HardwareTypes ["compatibility","hardwaretypes",0]
imagetypes a ImageTypes ["compatibility","imagetypes",0]
services a Services ["compatibility","services",0]
services a MustCoexist ["constraints","layout","mustcoexist",0,0]
services a CantCoexist ["constraints","layout","cantcoexist",0,0]
services key ["constraints","services","key"]
hardwaretypes a HardwareTypes ["constraints","services","key","hardwaretypes",0]
imagetypes a ImageTypes ["constraints","services","key","imagetypes",0]
hardwaretypes a HardwareTypes ["preferences","hardwaretypes",0]
imagetypes a ImageTypes ["preferences","imagetypes",0]
clustertemplates a Name ["extends","name"] stops
partialtemplates a Name ["includes",0,"name"] stops`,
	} {
		var got []string
		for _, r := range loom.References(testkit.FullEntry(kind)) {
			at, _ := json.Marshal(r.At)
			line := string(r.Kind) + " " + r.Name + " " + string(at)
			if r.Stops {
				line += " stops"
			}
			if r.Provided {
				line += " provided"
			}
			got = append(got, line)
		}
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("%s:\n%s", kind, text)
		}
	}
}
