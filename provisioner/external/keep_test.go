package external

import (
	"testing"

	"loom/app/loom"
)

// TestKeepMachine: a CONFIRM that fails may say that nothing speaks against the machine;
// of other results that means nothing.
func TestKeepMachine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		action       loom.TaskAction
		keep         bool
	}{
		{"said", `echo '{"t":"result","status":1,"message":"no answer","keep_machine":true}'; exit 1`, loom.ActionConfirm, true},
		{"not said", `echo '{"t":"result","status":1,"message":"broken"}'; exit 1`, loom.ActionConfirm, false},
		{"exit 75", `exit 75`, loom.ActionConfirm, true},
		{"exit 69", `exit 69`, loom.ActionConfirm, true},
		{"exit 1", `exit 1`, loom.ActionConfirm, false},
		{"of a success", `echo '{"t":"result","status":0,"ipaddresses":{"access_v4":"192.0.2.7"},"keep_machine":true}'`, loom.ActionConfirm, false},
		{"of a CREATE", `echo '{"t":"result","status":1,"message":"no answer","keep_machine":true}'; exit 1`, loom.ActionCreate, false},
		{"of a CREATE that exits with 75", `exit 75`, loom.ActionCreate, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := host(t)
			p := h.Provider(load(t, h, plant(t, KindProvider, "cat >/dev/null\n"+c.script, nil)), "lab-provider")
			do := p.Confirm
			if c.action == loom.ActionCreate {
				do = p.Create
			}
			got, err := do(t.Context(), task(c.action), &record{})
			if err != nil {
				t.Fatal(err)
			}
			if got.KeepMachine != c.keep {
				t.Errorf("%+v", got)
			}
		})
	}
}
