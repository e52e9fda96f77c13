package loom

import "testing"

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"mode", "dryRun", "clustertemplates", "services"}
	for word, want := range map[string]string{
		"Mode": "mode", "dryrun": "dryRun", "dry_run": "dryRun", "clustertemplate": "clustertemplates", "service": "services",
		"colour": "", "": "", "x": "", "mo": "", "templates": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
}
