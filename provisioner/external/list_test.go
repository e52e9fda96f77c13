package external

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"loom/app/loom"
	"loom/provisioner/provider"
)

// optional plants a provider whose manifest lists further actions.
func optional(t *testing.T, h *Host, script string, actions ...any) provider.Provider {
	t.Helper()
	dir := plant(t, KindProvider, script, func(m map[string]any) {
		m["types"].(map[string]any)["lab-provider"].(map[string]any)["actions"] = append([]any{"create", "confirm", "delete"}, actions...)
		m["timeouts"] = map[string]any{"list": 20, "reboot": 30}
	})
	return h.Provider(load(t, h, dir), "lab-provider")
}

// TestOptionalActions: a plugin lists and reboots only where its manifest says so; older ones
// do neither.
func TestOptionalActions(t *testing.T) {
	t.Parallel()
	h := host(t)
	for _, c := range []struct {
		actions         []any
		lists, restarts bool
	}{{nil, false, false}, {[]any{"list"}, true, false}, {[]any{"reboot"}, false, true}, {[]any{"list", "reboot"}, true, true}} {
		p := optional(t, h, `cat >/dev/null; [ "$2" = reboot ] && echo '{"t":"result","status":0,"message":"done"}'`, c.actions...)
		_, lists := p.(provider.Lister)
		restarts, ok := p.(provider.Rebooter)
		if lists != c.lists || ok != c.restarts || p.Type().Name != "lab-provider" {
			t.Errorf("with %v: lists %v, reboots %v", c.actions, lists, ok)
		}
		if ok {
			spec := task(loom.ActionReboot)
			if r, err := restarts.Reboot(t.Context(), spec, &record{}); err != nil || r.Status != 0 || r.Message != "done" {
				t.Errorf("with %v: %+v, %v", c.actions, r, err)
			}
		}
	}
	nothingLeft(t, h)
}

func TestList(t *testing.T) {
	t.Parallel()
	h := host(t)
	spec := task(loom.ActionCreate)
	call := &loom.ProviderCall{Tenant: spec.Tenant, Provider: spec.Provider, Sensitive: spec.Sensitive, Reach: spec.Reach}
	list := func(script string) ([]loom.TaggedMachine, error) {
		return optional(t, h, script, "list").(provider.Lister).List(t.Context(), call)
	}
	machines, err := list(`jq -e '.action == "list" and .input.fields.site == "fra" and .task' >/dev/null || exit 65
echo '{"t":"log","msg":"looking"}'
echo '{"t":"machine","id":"m1","name":"web","node":"n1","key":"k","cluster":"00000012","tenant":"acme","state":"stopped","flavor":"m2","image":"debian","addresses":["192.0.2.1"],"more":1}'
echo '{"t":"machine","id":9912}'
echo '{"t":"result","status":0,"machines":2}'`)
	want := []loom.TaggedMachine{{ID: "m1", Name: "web", Node: "n1", Key: "k", Cluster: "00000012", Tenant: "acme", State: loom.StateStopped, Flavor: "m2",
		Image: "debian", Addresses: []string{"192.0.2.1"}}, {ID: "9912"}} // what is left out is not said
	if err != nil || !reflect.DeepEqual(machines, want) {
		t.Errorf("%+v, %v", machines, err)
	}
	if machines, err := list(`echo '{"t":"result","status":0,"machines":0}'`); err != nil || len(machines) != 0 {
		t.Errorf("without machines: %+v, %v", machines, err)
	}
	const one = `echo '{"t":"machine","id":"m1"}'; `
	for script, says := range map[string]string{
		one + `echo '{"t":"result","status":0}'`:                                                         "says in “machines” that there are -1",
		one + `echo '{"t":"result","status":0,"machines":2}'`:                                            "it lists 1 machines",
		one + `echo '{"t":"result","status":0,"machines":1}'; ` + one:                                    "after the result",
		`echo '{"t":"machine"}'; echo '{"t":"result","status":0,"machines":1}'`:                          "“id” is missing",
		`echo '{"t":"machine","id":"m","addresses":7}'; echo '{"t":"result","status":0,"machines":1}'`:   "“addresses” has to be a list",
		`echo '{"t":"machine","id":"m","addresses":[7]}'; echo '{"t":"result","status":0,"machines":1}'`: "“addresses” has to hold texts",
		one + `echo '{"t":"result","status":1,"message":"the cloud is closed: s3cr3t-t0ken"}'`:           "cannot list the machines: the cloud is closed: [redacted].",
		one: "gave no result",
		one + `echo '{"t":"result","status":0,"machines":1}'; exit 3`: "exited with 3",
	} {
		if machines, err := list(script); !errors.Is(err, loom.Unavailable) || !strings.Contains(err.Error(), says) || machines != nil {
			t.Errorf("%s gave %+v, %v", script, machines, err)
		}
	}
	// Elsewhere such messages are as unknown as they were.
	r := &record{}
	if got := create(t, t.Context(), h, one+`echo '{"t":"result","status":0,"result":{"providerid":"m"}}'`, r); got.Status != 0 || !strings.Contains(r.text(), "“machine” are not known") {
		t.Errorf("%+v\n%s", got, r.text())
	}
	nothingLeft(t, h)
}
