package page

import (
	"testing"

	"loom/app/loom"
)

func TestPlaceWords(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"":                   "",
		"/defaults/services": "defaults, services",
		"/provisioner/actions/start/fields/script":  "start action",
		"/provisioner/actions/start/fields":         "start action",
		"/provisioner/actions/fields/type":          "fields action, type",
		"/provisioner":                              "",
		"/provisioner/api_zone":                     "",
		"/dependencies":                             "",
		"/dependencies/install/requires/0":          "install requires 1",
		"/dependencies/conflicts/2":                 "conflicts 3",
		"/constraints/layout/cantcoexist/0":         "constraints, never same node 1",
		"/constraints/size/min":                     "constraints, size, minimum",
		"/administration/onFailure":                 "on failure",
		"/includes/0/name":                          "include 1",
		"/extends/name":                             "extends",
		"/providertype":                             "type",
		"/links/0/url":                              "link 1, address",
		"/defaults/config/web/peers/0":              "defaults, config, web.peers[0]",
		"/defaults/config":                          "defaults, config",
		"/defaultConfig/web/fields/provisioner/x":   "default config, web.fields.provisioner.x",
		"/defaultConfig":                            "default config",
		"/providermap/lab/flavor":                   "mapping, lab, flavor",
		"/constraints/services/a~1b/hardwaretypes/": "constraints, services, a/b, hardware types, ",
	} {
		if got := PlaceWords(pointer); got != want {
			t.Errorf("%s is %q, want %q", pointer, got, want)
		}
	}
}

// A finding that has no place in words stands without brackets.
func TestSentence(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{"": "It is so.", "/provisioner": "It is so.", "/provisioner/actions/start/fields/x": "It is so. (Start action)"} {
		if got := Sentence(loom.Finding{Field: field, Message: "It is so."}); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
}
