package loom

import (
	"strings"
	"testing"
	"time"
)

func TestTaskLimits(t *testing.T) {
	t.Parallel()
	l, err := ParseTaskLimits(" create=900, shell/install=2h,aws/CREATE = 1500 ,start=1m30s,")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]PluginTimeouts{"aws": {ActionCreate: 60, ActionConfirm: 2400}, "chef": {ActionBootstrap: 3000, ActionStart: 45}, "odd": {ActionStop: 1 << 40}}
	for _, c := range []struct {
		action  TaskAction
		plugins []string
		want    time.Duration
	}{
		{ActionCreate, []string{"google"}, 900 * time.Second},
		{ActionCreate, []string{"aws"}, 1500 * time.Second}, // the installation has the last word
		{ActionConfirm, []string{"aws"}, 2400 * time.Second},
		{ActionConfirm, nil, 1800 * time.Second},
		{ActionDelete, []string{"aws"}, 900 * time.Second},
		{ActionInstall, []string{"shell"}, 2 * time.Hour},
		{ActionInstall, []string{"chef"}, 1800 * time.Second},
		{ActionStart, []string{"shell"}, 90 * time.Second},
		{ActionStart, []string{"chef"}, 45 * time.Second},
		{ActionBootstrap, []string{"shell", "chef"}, 3000 * time.Second},
		{ActionBootstrap, []string{}, 1800 * time.Second},
		{ActionStop, []string{"odd"}, MaxTaskLimit},
	} {
		if got := l.Of(c.action, own, c.plugins...); got != c.want {
			t.Errorf("%s by %v: %s, want %s", c.action, c.plugins, got, c.want)
		}
	}
	if got := l.Longest(); got != 2*time.Hour {
		t.Errorf("longest %s", got)
	}
	if got := l.Shortest(own); got != 45*time.Second {
		t.Errorf("shortest %s", got)
	}
	var none TaskLimits
	if none.Longest() != 1800*time.Second || none.Shortest(nil) != 600*time.Second || none.Of(ActionCreate, nil, "x") != 600*time.Second {
		t.Error("the defaults are others")
	}
	for text, has := range map[string]string{
		"create":                 "no limit",
		"create=":                "no time",
		"create=0":               "no time",
		"create=-1m":             "no time",
		"create=90000":           "no time",
		"create=25h":             "no time",
		"create=99999999999999s": "no time",
		"destroy=5":              "no action",
		"/create=5":              "no plugin",
		"create=5,create=6":      "already",
		"a/create=5,a/create=6":  "already",
	} {
		if _, err := ParseTaskLimits(text); err == nil || !strings.Contains(err.Error(), has) {
			t.Errorf("%q: %v", text, err)
		}
	}
	errs := (&PluginType{Base: Base{Name: "x"}, Timeouts: PluginTimeouts{"destroy": 5, ActionCreate: 0, ActionDelete: 90000}}).Validate()
	if len(errs) != 3 || errs[0].Field != "timeouts.create" || errs[1].Field != "timeouts.delete" || errs[2].Field != "timeouts.destroy" {
		t.Errorf("errors %v", errs)
	}
}

func TestDefaultTaskLimit(t *testing.T) {
	t.Parallel()
	for _, action := range TaskActions {
		if limit := DefaultTaskLimit(action); limit < 600*time.Second || limit > 1800*time.Second {
			t.Errorf("%s: %s", action, limit)
		}
	}
}
