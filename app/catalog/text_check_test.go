package catalog_test

import (
	"testing"

	"loom/app/catalog"
	"loom/app/loom"
)

// Texts of shells are parsed as their first line says; what only bash knows is wrong in sh.
func TestCheckText(t *testing.T) {
	t.Parallel()
	fine := loom.TextCheck{Language: "bash", Checked: true}
	for _, c := range []struct {
		name, text string
		want       loom.TextCheck
	}{
		{"a.sh", "set -eu\nif true; then echo; fi\n", fine},
		{"a.sh", "#!/bin/sh\nlocal x=1\n", fine},
		{"a", "#!/usr/bin/env bash\nx=(1 2)\n[[ a == b ]]\n", fine},
		{"a.sh", "#!/bin/sh\nif true; then\n", loom.TextCheck{Language: "bash", Checked: true, Problem: "“then” must be followed by a statement list", Line: 2, Column: 10}},
		{"a.sh", "#!/bin/sh\n\nx=(1 2)\n", loom.TextCheck{Language: "bash", Checked: true, Problem: "arrays are a bash/mksh/zsh feature; tried parsing as posix", Line: 3, Column: 3}},
		{"a.sh", "#!/usr/bin/python3\nif true; then", loom.TextCheck{Language: "python"}},
		{"a.sh", "#!/usr/bin/perl\n", loom.TextCheck{}},
		{"b.json", "{", loom.TextCheck{Language: "json"}},
		{"Dockerfile", "FROM x", loom.TextCheck{Language: "dockerfile"}},
		{"notes", "if then", loom.TextCheck{}},
		{"empty.sh", "", fine},
		{"a.sh", "#!", loom.TextCheck{}},
	} {
		if got := catalog.CheckText(c.name, c.text); got != c.want {
			t.Errorf("%s %q: %+v, want %+v", c.name, c.text, got, c.want)
		}
	}
}
