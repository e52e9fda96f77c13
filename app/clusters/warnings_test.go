package clusters_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWarningsOfMissingPlugins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	warnings := func() string {
		t.Helper()
		v := b.preview(b.ana(), request(2))
		plugins := slices.DeleteFunc(v.Warnings, func(w string) bool { return !strings.Contains(w, "plugin") })
		return strings.Join(plugins, "\n")
	}
	start := func(id, kind, plugins string, tenant any, left string) {
		b.db.MustExec(`INSERT INTO processes (id, kind, host, plugins, only_tenant, expires_at)
			VALUES ($1, $2, 'h', $3, $4, now() + $5::interval)`, id, kind, plugins, tenant, left)
	}
	if all := warnings(); all != "" {
		t.Errorf("without any provisioner: %s", all)
	}
	// None of these counts: a lost one, one of another kind, one of another tenant.
	start("p1", "provisioner", "{lab,shell}", nil, "-1 s")
	start("p2", "web", "{lab,shell}", nil, "1 h")
	start("p3", "provisioner", "{lab,shell}", "t2", "1 h")
	start("p4", "provisioner", "{local}", b.tenant, "1 h")
	all := warnings()
	if !strings.Contains(all, "provider plugin “lab”") || !strings.Contains(all, "automator plugin “shell”") || strings.Count(all, "\n") != 1 {
		t.Errorf("with neither plugin: %s", all)
	}
	start("p5", "provisioner", "{lab}", nil, "1 h")
	if all := warnings(); strings.Contains(all, "“lab”") || !strings.Contains(all, "“shell”") {
		t.Errorf("without the automator: %s", all)
	}
	start("p6", "provisioner", "{shell}", b.tenant, "1 h")
	if all := warnings(); all != "" {
		t.Errorf("with both: %s", all)
	}
}
