package hook_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"loom/app/hook"
	"loom/app/loom"
)

func TestWhatAHookMayBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, netip.MustParsePrefix("10.1.0.0/16"))
	key := func(s string) *string { return &s }
	good := hook.Input{Name: "x", URL: "https://ci.example/loom"}
	for _, c := range []struct {
		field, text string
		change      func(in *hook.Input)
	}{
		{"", "", func(*hook.Input) {}},
		{"", "", func(in *hook.Input) { in.URL = "http://10.1.2.3:8080/x?y=1" }},
		{"", "", func(in *hook.Input) { in.URL = "https://[2606:4700::1111]/" }},
		{"", "", func(in *hook.Input) { in.URL = "http://ci:8080/" }},
		{"", "", func(in *hook.Input) { in.Secret = key("0123456789abcdef") }},
		{"", "", func(in *hook.Input) { in.Actions = []loom.ClusterAction{"solve_layout", loom.ClusterDelete} }},
		{"name", "1 to 100", func(in *hook.Input) { in.Name = " " }},
		{"name", "1 to 100", func(in *hook.Input) { in.Name = "a\nb" }},
		{"url", "Enter the address", func(in *hook.Input) { in.URL = "" }},
		{"url", "http://", func(in *hook.Input) { in.URL = "ftp://ci.example/" }},
		{"url", "http://", func(in *hook.Input) { in.URL = "ci.example" }},
		{"url", "no address", func(in *hook.Input) { in.URL = "https://ci.example/ä" }},
		{"url", "no address", func(in *hook.Input) { in.URL = "https://%zz/" }},
		{"url", "no host", func(in *hook.Input) { in.URL = "https:///x" }},
		{"url", "password", func(in *hook.Input) { in.URL = "https://a:b@ci.example/" }},
		{"url", "#", func(in *hook.Input) { in.URL = "https://ci.example/#x" }},
		{"url", "port", func(in *hook.Input) { in.URL = "https://ci.example:99999/" }},
		{"url", "characters", func(in *hook.Input) { in.URL = "https://ci.example/" + strings.Repeat("x", 2000) }},
		{"url", "LOOM_HOOK_NETWORKS", func(in *hook.Input) { in.URL = "http://127.0.0.1/" }},
		{"url", "LOOM_HOOK_NETWORKS", func(in *hook.Input) { in.URL = "http://[::ffff:192.168.0.1]/" }},
		{"url", "LOOM_HOOK_NETWORKS", func(in *hook.Input) { in.URL = "http://LocalHost.:80/" }},
		{"url", "LOOM_HOOK_NETWORKS", func(in *hook.Input) { in.URL = "http://169.254.169.254/latest" }},
		{"url", "write a number", func(in *hook.Input) { in.URL = "http://2130706433/" }},
		{"url", "write a number", func(in *hook.Input) { in.URL = "http://0/" }},
		{"url", "write a number", func(in *hook.Input) { in.URL = "http://0x7f.1/" }},
		{"events[1]", "“stop”", func(in *hook.Input) { in.Events = []loom.HookEvent{"start", "stop"} }},
		{"actions[0]", "“boil”", func(in *hook.Input) { in.Actions = []loom.ClusterAction{"boil"} }},
		{"templates[0]", "letters", func(in *hook.Input) { in.Templates = []string{"a b"} }},
		{"onTimeout", "refuse", func(in *hook.Input) { in.OnTimeout = "maybe" }},
		{"blocking", "start", func(in *hook.Input) { in.Blocking, in.Events = true, []loom.HookEvent{"success"} }},
		{"secret", "16–200", func(in *hook.Input) { in.Secret = key("short") }},
		{"secret", "16–200", func(in *hook.Input) { in.Secret = key("0123456789abcde\x00") }},
	} {
		in := good
		c.change(&in)
		_, _, err := w.hooks.Create(ctx, admin, in)
		if c.field == "" {
			if err != nil {
				t.Errorf("%+v is refused: %v", in, err)
			}
			continue
		}
		var e *loom.Error
		if !errors.As(err, &e) || e.Kind != loom.Invalid || len(e.Fields) != 1 || e.Fields[0].Field != c.field || !strings.Contains(e.Fields[0].Message, c.text) {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

// A name without a dot is one of this network, which hooks reach where the operator names
// networks.
func TestHooksOfThisNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, host := range []string{"vm", "vm:8080", "vm."} {
		_, _, err := w.hooks.Create(ctx, admin, hook.Input{Name: "x", URL: "http://" + host + "/"})
		var e *loom.Error
		if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != "url" || !strings.Contains(e.Fields[0].Message, "LOOM_HOOK_NETWORKS") {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestWhoMayDoWhatWithHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := hook.Input{Name: "x", URL: "https://ci.example/"}
	h, key := w.create(admin, in)
	if len(key) != 43 {
		t.Errorf("the secret made up has %d characters", len(key))
	}
	reader := admin
	reader.Scopes = []loom.Scope{loom.ScopeRead}
	global := in
	global.Global = true
	for name, c := range map[string]struct {
		kind loom.Kind
		err  error
	}{
		"a user lists":           {loom.Forbidden, second(w.hooks.Hooks(ctx, member))},
		"a user reads":           {loom.Forbidden, second(w.hooks.Hook(ctx, member, h.ID))},
		"another tenant reads":   {loom.NotFound, second(w.hooks.Hook(ctx, foreign, h.ID))},
		"another tenant puts":    {loom.NotFound, second(w.hooks.Put(ctx, foreign, h.ID, in))},
		"another tenant deletes": {loom.NotFound, w.hooks.Delete(ctx, foreign, h.ID)},
		"a reader deletes":       {loom.Forbidden, w.hooks.Delete(ctx, reader, h.ID)},
		"a reader puts":          {loom.Forbidden, second(w.hooks.Put(ctx, reader, h.ID, in))},
		"an admin goes global":   {loom.Forbidden, second(w.hooks.Put(ctx, admin, h.ID, global))},
	} {
		if !errors.Is(c.err, c.kind) {
			t.Errorf("%s: %v, want %s", name, c.err, c.kind)
		}
	}
	if _, err := w.hooks.Hook(ctx, reader, h.ID); err != nil {
		t.Errorf("a token that may read: %v", err)
	}
	w.must(w.hooks.Delete(ctx, admin, h.ID))
	if got := w.text(`SELECT string_agg(verb || ' ' || kind || ' ' || object, ', ' ORDER BY id) FROM audit WHERE tenant_id = 't1'`); got != "create hook 1, delete hook 1" {
		t.Errorf("the audit says %s", got)
	}
}

func second[T any](_ T, err error) error { return err }
