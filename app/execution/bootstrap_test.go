package execution

import (
	"reflect"
	"testing"

	"loom/app/loom"
)

func TestBootstrapFields(t *testing.T) {
	t.Parallel()
	action := func(kind string, fields map[string]string) loom.ServiceAction {
		return loom.ServiceAction{Type: kind, Fields: fields}
	}
	services := map[string]loom.Service{
		"b": {Provisioner: loom.ServiceProvisioner{Actions: map[loom.TaskAction]loom.ServiceAction{
			loom.ActionInstall: action("puppet", map[string]string{"puppet_major": "7", "puppet_distribution": "puppet"}),
			loom.ActionStart:   action("shell", map[string]string{"script": "x"}),
		}}},
		"a": {Provisioner: loom.ServiceProvisioner{Actions: map[loom.TaskAction]loom.ServiceAction{
			loom.ActionInstall: action("puppet", map[string]string{"puppet_major": "8", "puppet_distribution": " "}),
		}}},
		"elsewhere": {Provisioner: loom.ServiceProvisioner{Actions: map[loom.TaskAction]loom.ServiceAction{
			loom.ActionInstall: action("puppet", map[string]string{"installer_url": "http://x"}),
		}}},
	}
	want := map[string]map[string]string{"puppet": {"puppet_major": "8", "puppet_distribution": "puppet"}, "shell": {"script": "x"}}
	if got := bootstrapFields([]string{"b", "a"}, services); !reflect.DeepEqual(got, want) {
		t.Errorf("fields are %v", got)
	}
}
