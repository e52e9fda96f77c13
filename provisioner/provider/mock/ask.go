package mock

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"loom/app/loom"
	"loom/provisioner/simcloud"
)

// List returns the machines that were invented and not deleted, but for those that
// list_lag_ms hides. It fails when fail_tasks names “list”.
func (p Provider) List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error) {
	if err := pause(ctx, call); err != nil {
		return nil, err
	}
	if fieldLists(call, "list") {
		return nil, loom.NewError(loom.Unavailable, "The list of machines fails, as fail_tasks asks for.")
	}
	cloud := simcloud.Of(call.Provider, p.cloud)
	if cloud == nil {
		return nil, nil
	}
	found, err := cloud.Find(ctx, simcloud.Query{Lag: time.Duration(number(call.Provider.Fields["list_lag_ms"])) * time.Millisecond})
	if err != nil {
		return nil, &loom.Error{Kind: loom.Unavailable, Message: "The simulator does not answer.", Err: err}
	}
	all := make([]loom.TaggedMachine, len(found))
	for i, m := range found {
		all[i] = loom.TaggedMachine{ID: m.ID, Name: m.Name, Node: m.Node, Key: m.Key, Cluster: m.Cluster, Tenant: m.Tenant,
			State: cmp.Or(m.State, loom.StateRunning), Flavor: m.Flavor, Image: m.Image}
		if m.Address != "" {
			all[i].Addresses = []string{m.Address}
		}
	}
	return all, nil
}

// Probe checks the fields and gives invented sizes and images. It fails when
// fail_tasks names “probe”.
func (p Provider) Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error) {
	probe := loom.NewProbe(call.Told)
	if fieldLists(call, "probe") {
		probe.Check("connect", false, "The connection fails, as fail_tasks asks for; take “probe” out of it.")
		return probe, nil
	}
	if err := pause(ctx, call); err != nil {
		return loom.Probe{}, err
	}
	probe.Check("connect", true, "There is nothing to connect to, and that works.")
	if _, _, err := place(&loom.TaskSpec{Provider: call.Provider}); err != nil {
		probe.Check("addresses", false, fmt.Sprintf("The %v.", err))
	} else {
		probe.Check("addresses", true, "Machines get their addresses.")
	}
	probe.Flavors = []loom.ProbeFlavor{
		{ID: "small", Name: "Small", VCPU: 1, RAM: 1024}, {ID: "medium", Name: "Medium", VCPU: 2, RAM: 4096}, {ID: "large", Name: "Large", VCPU: 8, RAM: 16384},
	}
	probe.Images = []loom.ProbeImage{{ID: "mock", Name: "Whatever you like"}}
	return probe, nil
}

// pause waits as long as delay_ms says.
func pause(ctx context.Context, call *loom.ProviderCall) error {
	return sleep(ctx, time.Duration(number(call.Provider.Fields["delay_ms"]))*time.Millisecond)
}

func fieldLists(call *loom.ProviderCall, name string) bool {
	list, _ := call.Provider.Fields["fail_tasks"].(string)
	return listed(list, name)
}

// Look looks at the machine of a node.
func (p Provider) Look(ctx context.Context, spec *loom.TaskSpec) (answers bool, failing []string, err error) {
	id, key := identify(spec)
	sight, err := simcloud.Of(spec.Provider, p.cloud).Look(ctx, simcloud.Look{ID: id, Key: key, Process: os.Getpid()})
	return sight.Answers, sight.Failing, err
}
